"""Whether what was found is written, and what it changes."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.tuning.dimension import Choice, NumberRange, Values
from autoscaler.tuning.figures import Figures, RunFigures
from autoscaler.tuning.objective import AttainmentAtLeast
from autoscaler.tuning.policy_text import Change
from autoscaler.tuning.verdict import Judged, at_ends, changes, judge
from tests.tuning_builders import a_scaler

OBJECTIVE = AttainmentAtLeast(0.99)
VOTES = {"signals": {"tokensInFlight": {}}}


def outcome(missed: int, hours: float) -> Figures:
    return Figures((RunFigures("day", 1, 1.0, 1000, missed, hours, 4, 2, 3),))


def judged(search: tuple[int, float], held_out: tuple[int, float] | None) -> Judged:
    return Judged("x", {}, outcome(*search), None if held_out is None else outcome(*held_out))


@pytest.mark.parametrize(
    ("given", "found", "keeps", "said"),
    [
        pytest.param((5, 3.0), (9, 2.0), False, "it is better: 99.10 % within", id="as good and cheaper"),
        pytest.param((5, 3.0), (11, 2.0), True, "is no better: 98.90 % within", id="cheaper, and not good enough"),
        pytest.param((5, 3.0), (5, 3.0), True, "is no better", id="the same is no reason to change"),
        pytest.param((50, 3.0), (20, 4.0), False, "; 99 % is not reached there", id="nearer to it, and not there"),
    ],
)
def test_the_held_out_part_alone_decides(
    given: tuple[int, float], found: tuple[int, float], keeps: bool, said: str
) -> None:
    verdict = judge(judged((0, 9.0), given), judged((0, 1.0), found), OBJECTIVE)
    assert verdict is not None
    assert verdict.keeps_given is keeps
    assert said in verdict.reason


def test_where_the_given_policy_is_the_best_it_is_kept() -> None:
    verdict = judge(judged((0, 9.0), (20, 3.0)), judged((0, 9.0), (20, 3.0)), OBJECTIVE)
    assert verdict is not None
    assert verdict.keeps_given
    assert verdict.reason == "nothing that was tried is better than the given policy; 99 % is not reached there"


def test_what_was_not_run_there_is_not_judged() -> None:
    assert judge(judged((0, 9.0), None), judged((0, 1.0), (0, 1.0)), OBJECTIVE) is None


@pytest.mark.parametrize(
    ("spec", "values", "expected"),
    [
        pytest.param({}, {"minReplicas": 1}, [], id="the default is no change"),
        pytest.param({}, {"minReplicas": 2}, [Change("minReplicas", "1 (default)", 2)], id="a default that changes"),
        pytest.param({"minReplicas": 3}, {"minReplicas": 2}, [Change("minReplicas", "3", 2)], id="a stated value"),
        pytest.param(
            {},
            {"signals.kvCache.headroomPercent": 15},
            [Change("signals.kvCache.headroomPercent", "not set", 15)],
            id="a vote that was not there",
        ),
        pytest.param(VOTES, {"forecast.mode": "Off", "forecast.quantilePercent": 80.0}, [], id="no forecast as before"),
        pytest.param({}, {"forecast.mode": "Active"}, [], id="a pool that names no vote has a forecast"),
        pytest.param(
            {},
            {"forecast.mode": "Off"},
            [Change("forecast.mode", "Active (default)", "Off")],
            id="a forecast that was there unsaid",
        ),
        pytest.param(
            VOTES,
            {"forecast.mode": "Active"},
            [Change("forecast.mode", "Off (default)", "Active")],
            id="a forecast that was not there was off",
        ),
        pytest.param(
            {"forecast": {"mode": "Active"}},
            {"forecast.mode": "Off", "forecast.quantilePercent": 80.0},
            [Change("forecast.mode", "Active", "Off")],
            id="without a forecast its quantile says nothing",
        ),
    ],
)
def test_what_changes(spec: dict[str, Any], values: Values, expected: list[Change]) -> None:
    scaler = a_scaler(**spec)
    assert list(changes(scaler, {"spec": spec}, values)) == expected


def test_a_value_at_the_end_of_its_range_is_said() -> None:
    dimensions = (NumberRange("a", 0.0, 100.0), NumberRange("b", 0.0, 100.0), Choice("c", (1, 2)))
    assert list(at_ends({"a": 99.5, "b": 50.0, "c": 2}, dimensions)) == [
        "a 99.5 lies at the end of what was searched (a=0..100)"
    ]
