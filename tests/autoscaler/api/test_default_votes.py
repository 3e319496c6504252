"""What does a pool get of which nothing, or little, is said?"""

from __future__ import annotations

from typing import Any

import pytest

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
