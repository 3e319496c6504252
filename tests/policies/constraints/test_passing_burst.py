"""No growth in a burst that what stands ready serves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.reasons import Reason
from policies.signals import Signal
from policies.standing_for_bursts import RecurringBursts
from tests.builders import NOW, a_blackout, a_decision_input, a_history, a_policy, an_even_signal, an_observation

CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=16_000, decode_tokens_per_second=750, tokens_in_flight=54_000, safe_utilization=0.70
)
BURSTS = RecurringBursts(3, 20, 240.0, NOW - 600.0, 4)


def a_pool(
    requests_a_second: float,
    bursts: RecurringBursts | None = BURSTS,
    replicas: int = 20,
    objectives: bool = True,
) -> DecisionInput:
    """Requests of half a second of a replica each; calm takes 4 replicas."""
    arrived = an_even_signal(requests_a_second, replicas)
    observation = an_observation(
        {Signal.REQUESTS_ARRIVED: arrived, Signal.REQUESTS_ARRIVED_RECENTLY: arrived}, ready=replicas
    )
    policy = a_policy(objectives={}) if objectives else a_policy(signals={"waitingRequests": {"perReplica": 1}})
    history = a_history(recommended={30.0: replicas})
    given_input = a_decision_input(policy, observation, replicas=replicas, history=history, capacity=CAPACITY)
    return replace(given_input, recurring_bursts=bursts)


def step_of(decision: ScalingDecision) -> tuple[int, int, Reason]:
    (step,) = (step for step in decision.steps if step.name == "passingBurst")
    return step.before, step.after, step.reason


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        pytest.param(a_pool(8), (20, 20, Reason.NOT_LIMITED), id="calm: 4 replicas' work, and 20 stand ready"),
        pytest.param(a_pool(36), (26, 20, Reason.PASSING_BURST), id="18 of 20: no more than they can do"),
        pytest.param(a_pool(41), (30, 30, Reason.NOT_LIMITED), id="20.5: larger than those before it"),
        pytest.param(
            a_pool(36, replace(BURSTS, under_way_since_seconds=NOW - 240.0)),
            (26, 20, Reason.PASSING_BURST),
            id="as long as the longest",
        ),
        pytest.param(
            a_pool(36, replace(BURSTS, under_way_since_seconds=NOW - 241.0)),
            (26, 26, Reason.NOT_LIMITED),
            id="longer than the longest",
        ),
        pytest.param(
            a_pool(36, replace(BURSTS, calm_replicas=15)),
            (26, 26, Reason.NOT_LIMITED),
            id="calm has grown to nearly as much: no burst",
        ),
        pytest.param(a_pool(28, replicas=10), (20, 20, Reason.NOT_LIMITED), id="what should stand is ordered"),
        pytest.param(a_pool(30, replicas=10), (22, 20, Reason.PASSING_BURST), id="and no more than that"),
        pytest.param(a_pool(40, replicas=22), (29, 22, Reason.PASSING_BURST), id="nor more than there is already"),
    ],
)
def test_the_limit(pool: DecisionInput, expected: tuple[int, int, Reason]) -> None:
    assert step_of(decide(pool)) == expected


def test_its_sentence() -> None:
    assert decide(a_pool(36)).message == (
        "20: work rate (18 replicas' time: 36 requests a second take 0.500 s of one each at 0.700 a replica) needs "
        "25.71; tokensInFlight 17.78, recurringBursts 20; kept at 20, which stand ready for it: it is like 3 "
        "bursts before it, which lasted up to 4 min"
    )


def test_in_calm_they_stand_ready_and_the_sentence_says_what_would_be_without() -> None:
    decision = decide(a_pool(8))
    assert (decision.desired_replicas, decision.binding) == (20, "recurringBursts")
    assert "the next of recurring bursts (3 bursts so far, the last 10 min ago) needs 20" in decision.message


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(a_pool(36, None), id="no bursts"),
        pytest.param(a_pool(36, replicas=0), id="a pool that is switched off"),
    ],
)
def test_no_step(pool: DecisionInput) -> None:
    assert "passingBurst" not in [step.name for step in decide(pool).steps]


def test_without_objectives_it_limits_nothing() -> None:
    assert step_of(decide(a_pool(36, objectives=False)))[2] is Reason.NOT_LIMITED


def test_blind_it_limits_nothing() -> None:
    assert step_of(decide(replace(a_pool(36), metrics=a_blackout())))[2] is Reason.NOT_LIMITED


@given(st.floats(0.0, 200.0), st.floats(0.0, 200.0), st.sampled_from([None, 30.0, 240.0, 900.0]), st.integers(4, 30))
def test_more_load_never_asks_for_fewer(one: float, other: float, since: float | None, replicas: int) -> None:
    bursts = replace(BURSTS, under_way_since_seconds=None if since is None else NOW - since)
    less, more = sorted((one, other))
    assert (
        decide(a_pool(less, bursts, replicas)).desired_replicas
        <= decide(a_pool(more, bursts, replicas)).desired_replicas
    )
