from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from policies.constraints.replica_bounds import bounds_at
from policies.decision import decide
from policies.reasons import Reason
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
        pytest.param(
            {**WORKDAY, "start": "0 9 * * *", "end": "0 9 * * 1"},
            at("2026-11-30T09:00:00"),
            True,
            id="a start at the very minute of an end opens it",
        ),
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


HOLIDAYS = {"dates": ["2026-12-24/2026-12-26", "2026-12-31"], "timezone": "America/New_York"}


@pytest.mark.parametrize(
    ("window", "now_seconds", "is_open"),
    [
        pytest.param(HOLIDAYS, at("2026-12-23T23:59:59"), False, id="the second before the first holiday"),
        pytest.param(HOLIDAYS, at("2026-12-24T00:00:00"), True, id="midnight there, not in UTC"),
        pytest.param(HOLIDAYS, at("2026-12-26T23:59:59"), True, id="the last of several days is one of them"),
        pytest.param(HOLIDAYS, at("2026-12-27T00:00:00"), False, id="the day after"),
        pytest.param(HOLIDAYS, at("2026-12-31T12:00:00"), True, id="a single day"),
        pytest.param(
            {**WORKDAY, "dates": ["2026-11-30"]},
            at("2026-11-30T12:00:00"),
            True,
            id="a launch, at its hours of the day",
        ),
        pytest.param({**WORKDAY, "dates": ["2026-11-30"]}, at("2026-12-01T12:00:00"), False, id="on no other day"),
        pytest.param(
            {**WORKDAY, "exceptDates": ["2026-11-26"]},
            at("2026-11-26T12:00:00"),
            False,
            id="a Thursday that is a holiday",
        ),
        pytest.param(
            {**WORKDAY, "exceptDates": ["2026-11-26"]}, at("2026-11-27T12:00:00"), True, id="and the Friday after it"
        ),
        pytest.param(
            {**WORKDAY, "start": "0 22 * * *", "end": "0 6 * * *", "dates": ["2026-11-30"]},
            at("2026-12-01T03:00:00"),
            True,
            id="a window over midnight belongs to the day that it started on",
        ),
    ],
)
def test_a_calendar_says_on_which_days(window: dict[str, Any], now_seconds: float, is_open: bool) -> None:
    schedule = ScheduleWindow.model_validate({"name": "exception", **window, "minReplicas": 5})
    assert open_windows((schedule,), now_seconds) == ((schedule,) if is_open else ())


def asked_for(window: dict[str, Any], now_seconds: float, starts_take: int = 300) -> float | None:
    """What the calendar asks for with a minimum of 1 outside of the window, and 8 in it."""
    policy = a_policy(
        minReplicas=1, coldStart={"priorSeconds": starts_take}, schedules=[{"name": "w", **window, "minReplicas": 8}]
    )
    (vote,) = recommend_schedule(a_decision_input(policy, now_seconds=now_seconds))
    return vote.replicas


SHORT = {**WORKDAY, "start": "0 12 * * *", "end": "2 12 * * *"}


@pytest.mark.parametrize(
    ("window", "now_seconds", "replicas"),
    [
        pytest.param(WORKDAY, at("2026-11-30T07:24:59"), 1, id="more than a start before it opens"),
        pytest.param(WORKDAY, at("2026-11-30T07:25:00"), 8, id="a start of five minutes before it opens"),
        pytest.param(WORKDAY, at("2026-11-30T07:30:00"), 8, id="when it opens"),
        pytest.param(WORKDAY, at("2026-11-30T19:00:00"), 1, id="it closes when it says"),
        pytest.param(
            {**WORKDAY, "readyBy": False}, at("2026-11-30T07:29:59"), 1, id="without readyBy not before it opens"
        ),
        pytest.param({**WORKDAY, "readyBy": False}, at("2026-11-30T07:30:00"), 8, id="but then"),
        pytest.param(SHORT, at("2026-11-30T11:56:00"), 8, id="a window that is shorter than a start"),
        pytest.param(SHORT, at("2026-11-30T12:02:00"), 1, id="and is over"),
        pytest.param(HOLIDAYS, at("2026-12-23T23:55:00"), 8, id="a day of the calendar"),
        pytest.param(
            {**WORKDAY, "exceptDates": ["2026-11-30"]},
            at("2026-11-30T07:28:00"),
            1,
            id="a day on which it does not open",
        ),
        pytest.param(
            {**WORKDAY, "start": "30 3 * * *", "end": "0 5 * * *"},
            at("2026-03-08T01:57:00"),
            1,
            id="33 minutes before a start, across the hour that the clock leaves out",
        ),
        pytest.param(
            {**WORKDAY, "start": "2 3 * * *", "end": "0 5 * * *"},
            at("2026-03-08T01:57:00"),
            8,
            id="five minutes before 03:02, when the clock goes from 02:00 to 03:00",
        ),
        pytest.param(
            {**WORKDAY, "start": "2 2 * * *", "end": "0 5 * * *"},
            at("2026-11-01T01:57:00", fold=0),
            1,
            id="an hour and five minutes before 02:02, when the clock goes back from 02:00 to 01:00",
        ),
        pytest.param(
            {**WORKDAY, "start": "2 2 * * *", "end": "0 5 * * *"},
            at("2026-11-01T01:57:00", fold=1),
            8,
            id="and five minutes before it, an hour later",
        ),
    ],
)
def test_a_window_that_opens_is_prepared_for(window: dict[str, Any], now_seconds: float, replicas: float) -> None:
    assert asked_for(window, now_seconds) == replicas


def test_a_window_that_is_prepared_for_acts_at_once_and_says_so() -> None:
    policy = a_policy(minReplicas=1, schedules=[{**WORKDAY, "minReplicas": 8}], coldStart={"priorSeconds": 300})
    decision = decide(a_decision_input(policy, now_seconds=at("2026-11-30T07:26:00")))
    assert decision.desired_replicas == 8
    assert "schedule workday (it opens within the 5 min that starts take) asks for 8" in decision.message


def test_a_maximum_is_not_brought_forward() -> None:
    window = {**WORKDAY, "maxReplicas": 3, "minReplicas": None}
    policy = a_policy(schedules=[window])
    assert bounds_at(policy, at("2026-11-30T07:29:00"), 300.0).maximum == 100
    assert bounds_at(policy, at("2026-11-30T07:30:00"), 300.0).maximum == 3


ALWAYS = {"timezone": "UTC", "start": "* * * * *", "end": "0 0 29 2 *"}
NEVER = {"timezone": "UTC", "start": "0 0 29 2 *", "end": "* * * * *"}


@pytest.mark.parametrize(
    ("schedules", "replicas", "message"),
    [
        pytest.param([{**ALWAYS, "name": "a", "minReplicas": 7}], 7.0, "schedule a asks for 7", id="an open window"),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 7}, {**ALWAYS, "name": "b", "minReplicas": 9}],
            9.0,
            "schedule b asks for 9",
            id="the larger of two open windows",
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 7}, {**ALWAYS, "name": "b", "minReplicas": 7}],
            7.0,
            "schedule a asks for 7",
            id="the first of two that ask for the same",
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 2}],
            2.0,
            "schedule (no window raises the minimum now) asks for 2",
            id="an open window that asks for the policy's own minimum",
        ),
        pytest.param(
            [{**NEVER, "name": "a", "minReplicas": 7}],
            2.0,
            "schedule (no window raises the minimum now) asks for 2",
            id="no window is open: the policy's minimum",
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "maxReplicas": 7}, {**ALWAYS, "name": "b", "minReplicas": 9}],
            9.0,
            "schedule b asks for 9",
            id="beside a window that only caps",
        ),
        pytest.param([{**ALWAYS, "name": "a", "maxReplicas": 7}], None, "", id="a window that only caps does not vote"),
    ],
)
def test_the_vote_of_the_calendar(schedules: list[dict[str, Any]], replicas: float | None, message: str) -> None:
    votes = recommend_schedule(a_decision_input(a_policy(minReplicas=2, schedules=schedules)))
    assert [vote.replicas for vote in votes] == ([] if replicas is None else [replicas])
    assert all(vote.message == message and vote.values == {"replicas": replicas} for vote in votes)
    assert all((vote.recommender, vote.reason) == ("schedule", Reason.SCHEDULE) for vote in votes)
    assert all(vote.is_exact and not vote.reads_replicas for vote in votes)
