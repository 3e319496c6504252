"""What does a pool get of which nothing, or little, is said?"""

from __future__ import annotations

from typing import Any

import pytest

from policies.constraints.behavior import UNHURRIED_BEHAVIOR, ScalingBehavior
from policies.recommenders.forecast import ForecastMode
from tests.tuning_builders import a_scaler

A_VOTE = {"signals": {"tokensInFlight": {}}}


@pytest.mark.parametrize(
    ("spec", "has_objectives", "forecast"),
    [
        pytest.param({}, True, ForecastMode.ACTIVE, id="nothing: it learns, and a forecast acts while it is good"),
        pytest.param({"objectives": {}}, True, ForecastMode.ACTIVE, id="objectives are no vote"),
        pytest.param({"forecast": {"mode": "Off"}}, True, ForecastMode.OFF, id="a forecast that is not wanted"),
        pytest.param({"forecast": {}}, True, ForecastMode.ADVISE, id="a forecast that is asked for only advises"),
        pytest.param(A_VOTE, False, None, id="a vote: nothing else votes"),
        pytest.param({"schedules": [{"name": "day", "start": "0 8 * * *", "end": "0 20 * * *", "minReplicas": 2}]},
                     False, None, id="a schedule: nothing else votes"),
    ],
)  # fmt: skip
def test_what_is_not_said(spec: dict[str, Any], has_objectives: bool, forecast: ForecastMode | None) -> None:
    parameters = a_scaler(**spec).spec.parameters
    assert (parameters.objectives is not None) is has_objectives
    assert (None if parameters.forecast is None else parameters.forecast.mode) is forecast


QUICK = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}


@pytest.mark.parametrize(
    ("spec", "window_seconds", "percent"),
    [
        pytest.param({}, 600, 20, id="nothing: no hurry"),
        pytest.param(QUICK, 60, 100, id="what is stated, with HPA's defaults beside it"),
        pytest.param(A_VOTE, 300, 100, id="a vote: HPA's defaults"),
        pytest.param({**A_VOTE, **QUICK}, 60, 100, id="a vote, and what is stated"),
    ],
)
def test_how_fast_it_shrinks(spec: dict[str, Any], window_seconds: int, percent: int) -> None:
    rules = a_scaler(**spec).spec.parameters.behavior.scale_down
    assert (rules.stabilization_window_seconds, rules.policies[0].value) == (window_seconds, percent)


def test_only_the_way_down_is_without_hurry() -> None:
    assert UNHURRIED_BEHAVIOR.scale_up == ScalingBehavior().scale_up
