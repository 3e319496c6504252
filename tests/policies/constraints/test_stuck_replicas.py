"""What is asked for while some replicas are stuck."""

from __future__ import annotations

import pytest

from policies.constraints.stuck_replicas import count_with_stuck
from policies.decision import decide
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_decision_input, a_history, a_policy, a_signal, an_even_signal, an_observation


def counts(working: int, stuck: int = 0, *, wedged: int = 0, outlasting: int = 0, starting: int = 0) -> ReplicaCounts:
    seen = working + starting + stuck + wedged
    plain = ReplicaCounts(seen, seen, working + wedged, starting=starting, stuck=stuck, outlasting=outlasting)
    return plain.without_wedged(wedged)


@pytest.mark.parametrize(
    ("replicas", "needed", "asked"),
    [
        pytest.param(counts(8), 8, 8, id="none is stuck"),
        pytest.param(counts(6, 2), 8, 10, id="two that do not start are replaced"),
        pytest.param(counts(7, 1), 8, 9, id="one is replaced by one"),
        pytest.param(counts(4, 4), 8, 10, id="of four only two are replaced"),
        pytest.param(counts(6, 2, starting=2), 8, 8, id="what is starting in time is their replacement"),
        pytest.param(counts(6, 2), 6, 6, id="enough work: a smaller count takes the stuck ones away first"),
        pytest.param(counts(6, 2, outlasting=2), 6, 8, id="but not where others would be taken away before them"),
        pytest.param(counts(6, 2, outlasting=2), 3, 5, id="then they are left beside those that are needed"),
        pytest.param(counts(3, wedged=1), 4, 5, id="a wedged one is replaced"),
        pytest.param(counts(3, wedged=1), 1, 2, id="a wedged one is never the last that is kept"),
        pytest.param(counts(1, wedged=3), 1, 4, id="of four replicas of which three are wedged none can be given up"),
        pytest.param(counts(4, wedged=4), 8, 10, id="of four wedged ones two are replaced"),
        pytest.param(counts(4, 1, wedged=1), 6, 8, id="one of each"),
    ],
)
def test_enough_replicas_work(replicas: ReplicaCounts, needed: int, asked: int) -> None:
    assert count_with_stuck(replicas, needed) == asked


def test_a_wedged_replica_is_not_the_last_that_a_pool_keeps_that_may_not_sleep_yet() -> None:
    policy = a_policy(minReplicas=0, signals={"pendingRequests": {"query": "q", "perReplica": 1}})
    replicas = counts(1, wedged=1)
    metrics = an_observation(ready=1, queries={"pendingRequests": 0})
    decision = decide(a_decision_input(policy, metrics, replicas=replicas))
    assert (decision.desired_replicas, decision.reason) == (2, Reason.STUCK_REPLICAS)


POLICY = a_policy(signals={"kvCache": {"headroomPercent": 0}})


@pytest.mark.parametrize(
    ("replicas", "spec", "kv_usage_sum", "expected"),
    [
        pytest.param(
            counts(6, 2),
            {},
            7.7,
            "10: KV cache (mean use 128.33 %, at most 100 %) needs 7.70; 10 asked for, so that 8 work; "
            "2 of 8 replicas are stuck",
            id="the band around the count is no reason to do without",
        ),
        pytest.param(
            counts(3, wedged=1),
            {},
            0.9,
            "2: KV cache (mean use 30 %, at most 100 %) needs 0.900; 2 asked for, so that 1 work; 1 of 4 replicas is "
            "wedged",
            id="a wedged replica is not counted on when the pool shrinks",
        ),
        pytest.param(
            counts(1, 1),
            {"minReplicas": 2},
            0.5,
            "3: KV cache (mean use 50 %, at most 100 %) needs 0.500; 3 asked for, so that 2 work; 1 of 2 replicas is "
            "stuck",
            id="the minimum means replicas that work",
        ),
        pytest.param(
            counts(6, 2),
            {"maxReplicas": 9},
            8.0,
            "9: KV cache (mean use 133.33 %, at most 100 %) needs 8; 10 asked for, so that 8 work; wanted 10, "
            "capped at 9 by maxReplicas; 2 of 8 replicas are stuck",
            id="the maximum means all of them",
        ),
    ],
)
def test_a_decision_with_stuck_replicas(
    replicas: ReplicaCounts, spec: dict[str, object], kv_usage_sum: float, expected: str
) -> None:
    policy = a_policy(signals={"kvCache": {"headroomPercent": 0}}, **spec)
    seen = an_observation({Signal.KV_CACHE_USAGE: an_even_signal(kv_usage_sum, replicas.ready)}, ready=replicas.ready)
    history = a_history(recommended={15: 1})
    assert decide(a_decision_input(policy, seen, replicas=replicas, history=history)).message == expected


def test_unseen_replicas_that_may_be_full_are_needed_beside_the_wedged_ones() -> None:
    usage = a_signal(*([0.05] * 10), None)
    seen = an_observation({Signal.KV_CACHE_USAGE: usage}, ready=11, fresh=10)
    replicas = ReplicaCounts(12, 12, 12).without_wedged(1)
    decision = decide(a_decision_input(POLICY, seen, replicas=replicas, history=a_history(recommended={15: 1})))
    assert decision.reason is Reason.LOW_COVERAGE
    assert decision.desired_replicas == 3  # 10 x 0.05 + 1 of the unseen one, and the wedged one


def test_a_sleeping_pool_is_not_kept_awake_by_a_replica_that_is_stuck() -> None:
    idle = {signal: an_even_signal(0.0, 1) for signal in (Signal.RUNNING_REQUESTS, Signal.REQUESTS_FINISHED)}
    seen = an_observation(
        {**idle, Signal.KV_CACHE_USAGE: an_even_signal(0.0, 1)}, ready=1, queries={"pendingRequests": 0}
    )
    policy = a_policy(minReplicas=0, signals={"kvCache": {}, "pendingRequests": {"query": "q", "perReplica": 1}})
    history = a_history(recommended={15: 0}, idle_since_seconds=NOW - 700.0)
    decision = decide(a_decision_input(policy, seen, replicas=counts(1, wedged=1), history=history))
    assert (decision.desired_replicas, decision.reason) == (0, Reason.SCALED_TO_ZERO)
