"""What is asked for while replicas run on nodes that are about to go."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorAllowance
from policies.decision import decide
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory, planned_replicas
from policies.observation import ObservationUnavailable, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_even_signal, an_observation

TICK_SECONDS = 15.0
SIGNALS = {"waitingRequests": {"perReplica": 4}}


def counts(working: int, leaving: int = 0, *, starting: int = 0, stuck: int = 0) -> ReplicaCounts:
    spec = working + leaving + starting + stuck
    return ReplicaCounts(spec, spec, working, starting=starting, stuck=stuck, leaving=leaving, leaving_ready=leaving)


def seen(
    replicas: ReplicaCounts,
    needed: int,
    *,
    history: ScalingHistory | None = None,
    now_seconds: float = NOW,
    **more: object,
) -> DecisionInput:
    """A pool of which so many are needed by its queue."""
    policy = a_policy(signals=SIGNALS, **more)
    metrics = an_observation(
        {Signal.WAITING_REQUESTS: an_even_signal(4.0 * needed, replicas.serving)}, ready=replicas.serving
    )
    return a_decision_input(
        policy,
        metrics,
        replicas=replicas,
        history=history or a_history(),
        now_seconds=now_seconds,
    )


@pytest.mark.parametrize(
    ("replicas", "needed", "more", "desired"),
    [
        pytest.param(counts(8), 8, {}, 8, id="nobody leaves"),
        pytest.param(counts(6, 2), 8, {}, 10, id="two that leave are replaced at once"),
        pytest.param(counts(0, 8), 8, {}, 16, id="all of them, where all leave"),
        pytest.param(counts(6, 2), 8, {"maxReplicas": 9}, 9, id="within the maximum"),
        pytest.param(counts(6, 2), 12, {}, 14, id="beside what the load asks for"),
        pytest.param(
            counts(6, 2),
            8,
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 600, "selectPolicy": "Disabled"}}},
            10,
            id="whatever the behaviour says of growth: the plan does not grow",
        ),
        pytest.param(counts(5, 2, stuck=1), 8, {}, 11, id="beside replacements of stuck ones"),
        pytest.param(counts(1, 1), 1, {"minReplicas": 2}, 3, id="the minimum means replicas that stay"),
    ],
)
def test_replicas_that_are_about_to_go_are_replaced(
    replicas: ReplicaCounts, needed: int, more: dict[str, object], desired: int
) -> None:
    decision = decide(seen(replicas, needed, **more))

    assert decision.desired_replicas == desired, decision.message


def test_the_decision_says_why() -> None:
    decision = decide(seen(counts(6, 2), 8))

    assert decision.reason is Reason.LEAVING_REPLICAS
    assert "10 asked for: 2 replicas run on nodes about to go" in decision.message
    assert "2 of 8 replicas are on a node about to go" in decision.message


def test_accelerators_limit_replacements_too() -> None:
    given = replace(seen(counts(6, 2), 8), accelerator_allowance=AcceleratorAllowance(9, "9 of pool"))

    assert decide(given).desired_replicas == 9


def test_a_drain_from_its_notice_to_its_end_is_no_demand() -> None:
    """8 needed. Two are noticed, their replacements start and become ready, the two go, and 8 are left."""
    history: ScalingHistory | None = None
    asked = []
    for tick, replicas in enumerate(
        (counts(6, 2), counts(6, 2, starting=2), counts(8, 2), counts(8, starting=2), counts(8))
    ):
        decision = decide(seen(replicas, 8, history=history, now_seconds=NOW + tick * TICK_SECONDS))
        history = decision.next_history
        asked.append(decision.desired_replicas)

    assert asked == [10, 10, 10, 8, 8]
    assert history is not None
    assert {each.replicas for each in history.recommendations} == {8}


def test_a_replacement_that_could_not_be_written_is_asked_for_again_and_not_twice() -> None:
    first = decide(seen(counts(6, 2), 8))
    second = decide(seen(counts(6, 2), 8, history=first.next_history, now_seconds=NOW + TICK_SECONDS))

    assert (first.desired_replicas, second.desired_replicas) == (10, 10)
    assert planned_replicas(first.next_history, 8) == 8
    assert planned_replicas(first.next_history, 10) == 8


def _blind(given: DecisionInput) -> DecisionInput:
    return replace(given, metrics=ObservationUnavailable(Reason.PROMETHEUS_UNREACHABLE, "no route"))


@pytest.mark.parametrize("written", [True, False], ids=["written", "refused"])
def test_a_pool_that_is_not_seen_replaces_them_once_and_gives_none_back(written: bool) -> None:
    history: ScalingHistory | None = None
    asked = []
    for tick in range(4):
        replicas = counts(6, 2, starting=2) if tick and written else counts(6, 2)
        given = _blind(seen(replicas, 8, history=history, now_seconds=NOW + tick * TICK_SECONDS))
        decision = decide(given)
        history = decision.next_history
        asked.append(decision.desired_replicas)
    assert asked == [10, 10, 10, 10]

    gone = counts(8, starting=2) if written else counts(6, starting=2)
    decision = decide(_blind(seen(gone, 8, history=history, now_seconds=NOW + 4 * TICK_SECONDS)))
    assert decision.desired_replicas >= gone.spec


def test_a_policy_that_never_lowers_a_count_gives_none_back() -> None:
    policy = {"behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}
    first = decide(seen(counts(6, 2), 8, **policy))
    then = decide(seen(counts(8, starting=2), 8, history=first.next_history, now_seconds=NOW + 15, **policy))

    assert (then.desired_replicas, then.reason) == (10, Reason.LEAVING_REPLICAS)
    assert "2 replicas more until it is seen that they may go" in then.message


def test_the_mode_that_only_grows_gives_none_back() -> None:
    first = decide(seen(counts(6, 2), 8, mode="ScaleUpOnly"))
    then = decide(seen(counts(8, starting=2), 8, history=first.next_history, now_seconds=NOW + 15, mode="ScaleUpOnly"))

    assert then.desired_replicas == 10


def test_a_count_that_somebody_else_has_set_since_is_taken_as_it_is() -> None:
    first = decide(seen(counts(6, 2), 8))

    assert planned_replicas(first.next_history, 12) == 12


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick: how many leave, whether anything is seen, and whether what is decided gets written."""

    leaving: int
    is_seen: bool
    is_written: bool


MOMENTS = st.builds(Moment, st.integers(0, 8), st.booleans(), st.booleans())


@given(moments=st.lists(MOMENTS, min_size=1, max_size=25))
@settings(max_examples=60, deadline=None)
def test_whatever_happens_the_surplus_is_bounded_and_nothing_is_lowered_blind(moments: list[Moment]) -> None:
    """8 are needed all the time. The count is never more than that and the most that ever left at once."""
    history, spec, most_leaving = None, 8, 0
    for tick, moment in enumerate(moments):
        leaving = min(moment.leaving, spec)
        most_leaving = max(most_leaving, leaving)
        replicas = ReplicaCounts(spec, spec, spec - leaving, leaving=leaving, leaving_ready=leaving)
        given_input = seen(replicas, 8, history=history, now_seconds=NOW + tick * TICK_SECONDS)
        decision = decide(given_input if moment.is_seen else _blind(given_input))
        history = decision.next_history
        assert decision.desired_replicas <= 8 + most_leaving, decision.message
        if not moment.is_seen:
            assert decision.desired_replicas >= spec, decision.message
        if moment.is_written:
            spec = decision.desired_replicas
