from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from policies.recommenders.schedule import ScheduleWindow, open_windows, recommend_schedule
from tests.builders import a_decision_input, a_policy

WORKDAY = {"name": "workday", "timezone": "America/New_York", "start": "30 7 * * 1-5", "end": "0 19 * * 1-5"}


def at(moment: str, timezone: str = "America/New_York", fold: int = 0) -> float:
    return datetime.fromisoformat(moment).replace(tzinfo=ZoneInfo(timezone), fold=fold).timestamp()


@pytest.mark.parametrize(
    ("window", "now_seconds", "is_open"),
    [
        pytest.param(WORKDAY, at("2026-11-30T07:29:59"), False, id="a second before it starts"),
        pytest.param(WORKDAY, at("2026-11-30T07:30:00"), True, id="at the second it starts"),
        pytest.param(WORKDAY, at("2026-11-30T18:59:59"), True, id="a second before it ends"),
        pytest.param(WORKDAY, at("2026-11-30T19:00:00"), False, id="at the second it ends"),
        pytest.param(WORKDAY, at("2026-11-28T12:00:00"), False, id="on a Saturday"),
        pytest.param(WORKDAY, at("2026-07-01T08:00:00"), True, id="in summer time"),
        pytest.param(WORKDAY, at("2026-07-01T12:00:00", "UTC"), True, id="08:00 there is 12:00 UTC in summer"),
        pytest.param(WORKDAY, at("2026-12-01T12:00:00", "UTC"), False, id="and 07:00 there in winter"),
        pytest.param(
            {**WORKDAY, "start": "0 22 * * *", "end": "0 6 * * *"},
            at("2026-11-30T03:00:00"),
            True,
            id="a window over midnight",
        ),
        pytest.param(
            {**WORKDAY, "start": "0 20 * * 5", "end": "0 8 * * 1"},
            at("2026-11-29T12:00:00"),
            True,
            id="a weekend that starts on Friday evening",
        ),
        pytest.param(
            {**WORKDAY, "start": "30 2 * * *", "end": "0 5 * * *"},
            at("2026-03-08T03:10:00"),
            True,
            id="a start that the clock change leaves out comes right after it",
        ),
        pytest.param(
            {**WORKDAY, "start": "30 1 * * *", "end": "30 3 * * *"},
            at("2026-11-01T01:10:00", fold=1),
            True,
            id="a window that started in the hour that comes twice stays open when it comes again",
        ),
        pytest.param(
            {**WORKDAY, "start": "0 22 * * *", "end": "30 1 * * *"},
            at("2026-11-01T01:10:00", fold=1),
            False,
            id="and one that ended in it stays closed",
        ),
        pytest.param(
            {**WORKDAY, "timezone": "UTC", "start": "0 0 1 1 *", "end": "0 0 2 1 *"},
            at("2026-11-30T00:00:00", "UTC"),
            False,
            id="once a year",
        ),
    ],
)
def test_when_a_window_is_open(window: dict[str, Any], now_seconds: float, is_open: bool) -> None:
    schedule = ScheduleWindow.model_validate({**window, "minReplicas": 5})
    assert open_windows((schedule,), now_seconds) == ((schedule,) if is_open else ())


ALWAYS = {"timezone": "UTC", "start": "* * * * *", "end": "0 0 29 2 *"}
NEVER = {"timezone": "UTC", "start": "0 0 29 2 *", "end": "* * * * *"}


@pytest.mark.parametrize(
    ("schedules", "replicas"),
    [
        pytest.param([{**ALWAYS, "name": "a", "minReplicas": 7}], 7.0, id="an open window"),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 7}, {**ALWAYS, "name": "b", "minReplicas": 9}],
            9.0,
            id="the larger of two open windows",
        ),
        pytest.param([{**NEVER, "name": "a", "minReplicas": 7}], 2.0, id="no window is open: the policy's minimum"),
        pytest.param([{**ALWAYS, "name": "a", "maxReplicas": 7}], None, id="a window that only caps does not vote"),
    ],
)
def test_the_vote_of_the_calendar(schedules: list[dict[str, Any]], replicas: float | None) -> None:
    votes = recommend_schedule(a_decision_input(a_policy(minReplicas=2, schedules=schedules)))
    assert [vote.replicas for vote in votes] == ([] if replicas is None else [replicas])
    assert all(vote.is_exact and not vote.reads_replicas for vote in votes)
