"""Replicas that stand ready for bursts which come again and again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.bursts import KEPT_BURSTS, Burst, BurstMemory, BurstUnderWay
from policies.reasons import Reason
from policies.recommenders.recurring_bursts import recommend_recurring_bursts
from policies.standing_for_bursts import ExpectedBursts, RecurringBursts, expected_bursts, recurring_bursts
from tests.builders import NOW, a_decision_input, a_policy, an_observation

HOUR = 3600.0


def burst(minutes_ago: float, needed: int, lasted_seconds: float = 240.0, calm: int = 4) -> Burst:
    """One that began so long ago."""
    return Burst(NOW - 60.0 * minutes_ago, lasted_seconds, calm, needed)


@pytest.mark.parametrize(
    ("bursts", "count", "replicas"),
    [
        pytest.param([burst(20, 12)], 1, 19, id="half as many again after the first: the next may well be larger"),
        pytest.param([burst(40, 12), burst(20, 10)], 2, 15, id="a quarter more than nearly the larger of two"),
        pytest.param(
            [burst(100, 30), burst(20, 12)], 1, 19, id="one that came more than an hour before is an accident"
        ),
        pytest.param([burst(130, 8), burst(75, 8), burst(20, 8)], 3, 10, id="each within an hour of the one before"),
        pytest.param([burst(20, 10)] * 17 + [burst(20, 90)] * 3, 20, 89, id="three in twenty are served"),
        pytest.param([burst(20, 10)] * 19 + [burst(20, 90)], 20, 10, id="one in twenty is not worth its price"),
        pytest.param([burst(59, 12)], 1, 19, id="just within the hour"),
        pytest.param([burst(60, 12)], 1, 19, id="an hour ago to the second"),
        pytest.param([burst(110, 8), burst(50, 8)], 2, 10, id="an hour apart to the second"),
    ],
)
def test_how_many_stand_ready(bursts: list[Burst], count: int, replicas: int) -> None:
    found = recurring_bursts(BurstMemory(tuple(bursts)), 90.0, HOUR, NOW)
    assert found is not None
    assert (found.bursts, found.replicas) == (count, replicas)


@pytest.mark.parametrize(
    ("memory", "within_seconds"),
    [
        pytest.param(BurstMemory(), HOUR, id="none has been seen"),
        pytest.param(BurstMemory((burst(61, 12),)), HOUR, id="the last is more than an hour ago: they have stopped"),
        pytest.param(BurstMemory((burst(1, 12),)), 0.0, id="the policy wants none to stand ready"),
        pytest.param(
            BurstMemory((burst(90, 12),), BurstUnderWay(NOW - 60.0, 4, 9.0, 9.0)),
            HOUR,
            id="a new one after a long time",
        ),
    ],
)
def test_none_stand_ready(memory: BurstMemory, within_seconds: float) -> None:
    assert recurring_bursts(memory, 90.0, within_seconds, NOW) is None


@pytest.mark.parametrize(
    ("calm_bare_need", "calm"),
    [
        pytest.param(7.0, 10, id="what is calm now"),
        pytest.param(None, 4, id="what was calm before the last burst, where nothing is known of now"),
    ],
)
def test_what_stands_in_the_calm_between_them(calm_bare_need: float | None, calm: int) -> None:
    memory = BurstMemory((burst(40, 12, calm=9), burst(20, 12)), calm_bare_need=calm_bare_need)
    found = recurring_bursts(memory, 90.0, HOUR, NOW)
    assert found is not None
    assert found.calm_replicas == calm


def test_a_burst_that_is_under_way_is_the_last() -> None:
    memory = BurstMemory((burst(59, 12, 200.0), burst(50, 10)), BurstUnderWay(NOW - 30.0, 4, 9.0, 9.0), 2.8)
    assert recurring_bursts(memory, 100.0, HOUR, NOW) == RecurringBursts(2, 15, 240.0, NOW - 30.0, 4, NOW - 30.0)


@given(
    st.lists(st.integers(2, 5000), min_size=1, max_size=KEPT_BURSTS),
    st.floats(50.0, 100.0),
    st.integers(0, KEPT_BURSTS - 1),
    st.integers(1, 5000),
)
def test_larger_bursts_never_ask_for_fewer_and_the_largest_bounds_them(
    peaks: list[int], percent: float, place: int, more: int
) -> None:
    def standing(needed: list[int]) -> int:
        found = recurring_bursts(BurstMemory(tuple(burst(10, peak) for peak in needed)), percent, HOUR, NOW)
        assert found is not None
        return found.replicas

    larger = list(peaks)
    larger[place % len(peaks)] += more
    assert 0.95 * min(peaks) <= standing(peaks) <= 0.95 * 1.6 * max(peaks) + 1
    assert standing(larger) >= standing(peaks)


EXPECTED = RecurringBursts(3, 9, 240.0, NOW - 600.0, 4)


def test_they_are_a_vote_of_what_is_to_come() -> None:
    decision_input = replace(a_decision_input(a_policy(objectives={}), an_observation({})), recurring_bursts=EXPECTED)
    (vote,) = recommend_recurring_bursts(decision_input)
    assert (vote.replicas, vote.reason, vote.is_forecast, vote.reads_replicas) == (
        9.0,
        Reason.RECURRING_BURSTS,
        True,
        False,
    )
    assert vote.message == "the next of recurring bursts (3 bursts so far, the last 10 min ago) needs 9"


def a_calm(settled_bare_need: float | None, *bursts: Burst) -> BurstMemory:
    """A pool whose calm takes all the time of so many replicas."""
    return BurstMemory(bursts, None, settled_bare_need, 10.0, settled_bare_need)


@pytest.mark.parametrize(
    ("memory", "amplification", "replicas"),
    [
        pytest.param(a_calm(2.5), 6.0, 15, id="none seen: 0.95 of six times the calm's 2.5"),
        pytest.param(a_calm(5.0), 6.0, 29, id="of twice the calm twice as many"),
        pytest.param(a_calm(2.5, burst(90, 15)), 6.0, 15, id="one of as much as expected: as many"),
        pytest.param(a_calm(2.5, burst(90, 6)), 6.0, 14, id="one that was smaller counts a fifth"),
        pytest.param(a_calm(2.5, *[burst(90, 6)] * 20), 6.0, 8, id="twenty that were smaller: they rule"),
        pytest.param(a_calm(2.5, burst(90, 30)), 6.0, 29, id="one that was larger: too little was expected"),
    ],
)
def test_what_is_expected_gives_way_to_what_is_seen(memory: BurstMemory, amplification: float, replicas: int) -> None:
    found = expected_bursts(memory, 90.0, amplification)
    assert found == ExpectedBursts(replicas, amplification, memory.settled_bare_need or 0.0)


@pytest.mark.parametrize(
    ("memory", "amplification"),
    [
        pytest.param(a_calm(2.5), None, id="the policy expects none"),
        pytest.param(a_calm(None), 6.0, id="of no calm is known yet"),
    ],
)
def test_none_are_expected(memory: BurstMemory, amplification: float | None) -> None:
    assert expected_bursts(memory, 90.0, amplification) is None


def test_while_they_recur_what_is_expected_still_counts() -> None:
    memory = a_calm(2.5, burst(20, 6))
    found, without = (recurring_bursts(memory, 90.0, HOUR, NOW, amplification) for amplification in (6.0, None))
    assert found is not None
    assert without is not None
    assert (found.replicas, without.replicas) == (14, 10)


@given(st.lists(st.integers(2, 500), max_size=KEPT_BURSTS), st.floats(1.0, 50.0), st.floats(0.0, 50.0))
def test_who_expects_more_never_gets_fewer(peaks: list[int], amplification: float, more: float) -> None:
    memory = a_calm(3.0, *(burst(90, peak) for peak in peaks))
    less, larger = (expected_bursts(memory, 90.0, each) for each in (amplification, amplification + more))
    assert less is not None
    assert larger is not None
    assert less.replicas <= larger.replicas


@pytest.mark.parametrize(
    "votes",
    [
        pytest.param({"objectives": {}}, id="with objectives"),
        pytest.param(
            {"signals": {"tokenRate": {"perReplicaPerSecond": 5000}}}, id="by what the policy says of a replica"
        ),
    ],
)
def test_expected_bursts_vote_before_any_was_seen(votes: dict[str, object]) -> None:
    policy = a_policy(recurringBursts={"expectedAmplification": 6}, **votes)
    decision_input = replace(a_decision_input(policy, an_observation({})), expected_bursts=ExpectedBursts(15, 6.0, 2.5))
    (vote,) = recommend_recurring_bursts(decision_input)
    assert (vote.replicas, vote.reason, vote.is_forecast, vote.reads_replicas) == (
        15.0,
        Reason.EXPECTED_BURSTS,
        True,
        False,
    )
    assert vote.message == "bursts of 6 times the calm's load (2.50 replicas' time), which the policy expects, need 15"


def test_bursts_that_recur_vote_in_every_policy_that_expects_them() -> None:
    policy = a_policy(
        signals={"tokenRate": {"perReplicaPerSecond": 5000}}, recurringBursts={"expectedAmplification": 6}
    )
    (vote,) = recommend_recurring_bursts(
        replace(a_decision_input(policy, an_observation({})), recurring_bursts=EXPECTED)
    )
    assert (vote.replicas, vote.reason) == (9.0, Reason.RECURRING_BURSTS)


@pytest.mark.parametrize(
    ("policy", "bursts"),
    [
        pytest.param({"objectives": {}}, None, id="there are no bursts"),
        pytest.param({"signals": {"kvCache": {}}}, EXPECTED, id="without objectives nobody knows what a burst takes"),
    ],
)
def test_no_vote(policy: dict[str, object], bursts: RecurringBursts | None) -> None:
    decision_input = replace(a_decision_input(a_policy(**policy), an_observation({})), recurring_bursts=bursts)
    assert recommend_recurring_bursts(decision_input) == ()
