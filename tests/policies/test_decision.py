from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Any

import pytest

from policies.decision import DecisionStep, decide
from policies.history import TimedRecommendation
from policies.observation import PoolLatency, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_history,
    a_policy,
    a_signal,
    an_even_signal,
    an_observation,
)
from tests.forecast_builders import RISING

TOKEN_RATE = {"perReplicaPerSecond": 5000}
ALL_VOTES = a_policy(
    signals={
        "tokensInFlight": {"perReplica": 27_000},
        "tokenRate": {"perReplicaPerSecond": 5000},
        "kvCache": {"headroomPercent": 15},
        "waitingRequests": {"perReplica": 4},
    }
)
BUSY = an_observation(
    {
        Signal.KV_CACHE_USAGE: an_even_signal(3.2, 4),
        Signal.KV_CACHE_USED_TOKENS: an_even_signal(192_000, 4),
        Signal.WAITING_REQUESTS: an_even_signal(12, 4),
    }
)
FIVE_ONE_STARTING = ReplicaCounts(5, 5, 4, starting=1)


def test_a_decision_by_shares_that_the_policy_states() -> None:
    """4 ready replicas and 1 that starts, KV caches at 80 % of 60 000 tokens, 12 waiting, 27 000 tokens a replica."""
    decision = decide(a_decision_input(ALL_VOTES, BUSY, replicas=FIVE_ONE_STARTING))
    assert decision.desired_replicas == 8
    assert (decision.reason, decision.binding) == (Reason.TOKENS_IN_FLIGHT, "tokensInFlight")
    assert [(vote.recommender, round(vote.replicas or 0, 2)) for vote in decision.recommendations] == [
        ("tokensInFlight", 7.89),
        ("tokenRate", 3.68),
        ("kvCache", 3.76),
        ("waitingRequests", 3.0),
    ]
    assert decision.message == (
        "8: tokens in flight (213 000 in all, 27 000 is a replica's share) need 7.89; tokenRate 3.68, kvCache 3.76, "
        "waitingRequests 3; 1 of 5 replicas is still starting"
    )
    assert [(step.name, step.before, step.after) for step in decision.steps] == [
        ("tolerance", 8, 8),
        ("missingData", 8, 8),
        ("stabilization", 8, 8),
        ("rateLimit", 8, 8),
        ("lastReplica", 8, 8),
        ("bounds", 8, 8),
        ("accelerators", 8, 8),
        ("mode", 8, 8),
    ]


def test_each_limit_that_acts_is_a_step_with_its_numbers() -> None:
    policy = a_policy(
        maxReplicas=9,
        signals={"kvCache": {}},
        behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 6, "periodSeconds": 60}]}},
    )
    metrics = an_observation({Signal.KV_CACHE_USAGE: a_signal(*[3.0] * 4)})
    decision = decide(a_decision_input(policy, metrics))
    assert decision.steps[3:6] == (
        DecisionStep(
            "rateLimit", 15, 10, Reason.SCALE_UP_LIMIT, "wanted 15, 10 for now by scaleUp (6 replicas in 60 s)"
        ),
        DecisionStep("lastReplica", 10, 10, Reason.NOT_LIMITED, ""),
        DecisionStep("bounds", 10, 9, Reason.TOO_MANY_REPLICAS, "wanted 10, capped at 9 by maxReplicas"),
    )
    assert decision.reason is Reason.TOO_MANY_REPLICAS
    assert decision.message == (
        "9: KV cache (mean use 300 %, at most 85 %) needs 14.12; "
        "wanted 15, 10 for now by scaleUp (6 replicas in 60 s); wanted 10, capped at 9 by maxReplicas"
    )


def test_a_blind_pool_says_since_when_and_why() -> None:
    history = a_history(blind_since_seconds=1_900_000_000.0 - 45)
    message = decide(a_decision_input(ALL_VOTES, a_blackout(), history=history)).message
    assert message == "4: held at 4, blind for 45 s: Prometheus does not answer"


def test_a_vote_for_nobody_is_smaller_than_one_for_a_part_of_a_replica() -> None:
    policy = a_policy(minReplicas=0, signals={"kvCache": {}, "pendingRequests": {"query": "q", "perReplica": 10}})
    metrics = an_observation({Signal.KV_CACHE_USAGE: a_signal(0.0, 0.0, 0.0, 0.0)}, queries={"pendingRequests": 5})
    decision = decide(a_decision_input(policy, metrics))
    assert (decision.binding, decision.desired_replicas) == ("pendingRequests", 1)
    assert decision.message == "1: pending requests (5 at 10 a replica) need 0.500; kvCache 0"


def test_of_votes_for_the_same_the_first_binds() -> None:
    policy = a_policy(signals={"kvCache": {"headroomPercent": 20}, "waitingRequests": {"perReplica": 2}})
    metrics = an_observation({Signal.KV_CACHE_USAGE: a_signal(*[0.8] * 4), Signal.WAITING_REQUESTS: a_signal(*[2] * 4)})
    assert decide(a_decision_input(policy, metrics)).binding == "kvCache"


def test_a_vote_that_is_unknown_is_named() -> None:
    policy = a_policy(signals={"kvCache": {}, "waitingRequests": {"perReplica": 4}, "tokenRate": TOKEN_RATE})
    unseen = {name: a_signal(None, None, None, None) for name in (Signal.WAITING_REQUESTS, Signal.PROMPT_TOKENS)}
    decision = decide(a_decision_input(policy, an_observation({**unseen, Signal.KV_CACHE_USAGE: a_signal(*[1.7] * 4)})))
    assert decision.message == (
        "8: KV cache (mean use 170 %, at most 85 %) needs 8; tokenRate unknown, waitingRequests unknown"
    )
    nothing = decide(a_decision_input(a_policy(signals={"tokenRate": TOKEN_RATE}), an_observation(unseen)))
    assert nothing.message.startswith("4: held at 4, blind for 0 s: promptTokensTotal is unknown")


def test_what_is_advised_is_told_beside_what_counts() -> None:
    policy = a_policy(
        signals={"kvCache": {}, "tokenRate": TOKEN_RATE, "interTokenLatencyDivergence": {}},
        forecast={"mode": "Advise", "quantilePercent": 50},
    )
    latency = PoolLatency(
        inter_token_latency_p50_seconds=0.03, inter_token_latency_p99_seconds=0.108, measured_at_seconds=NOW
    )
    history = a_history(uneven_measurements=2, latency_measured_at_seconds=NOW - 60)
    metrics = an_observation({Signal.KV_CACHE_USAGE: a_signal(*[0.8] * 4)}, latency=latency)
    decision_input = replace(a_decision_input(policy, metrics, history=history), forecast=RISING)
    assert decide(decision_input).message == (
        "4: KV cache (mean use 80 %, at most 85 %) needs 3.76; tokenRate 3.68; "
        "interTokenLatencyDivergence 4.48 (advice only), forecast 6 (advice only)"
    )


def test_a_policy_without_votes_keeps_the_count() -> None:
    decision = decide(a_decision_input(a_policy()))
    assert (decision.desired_replicas, decision.reason, decision.binding) == (4, Reason.NO_VOTES, None)
    assert decision.message == "4: no vote has an opinion"


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        pytest.param(ReplicaCounts(4, 4, 4), "", id="all serve"),
        pytest.param(ReplicaCounts(6, 6, 4, starting=2), "2 of 6 replicas are still starting", id="two start"),
        pytest.param(
            ReplicaCounts(5, 5, 4, stuck=1), "9 asked for, so that 8 work; 1 of 5 replicas is stuck", id="one is stuck"
        ),
    ],
)
def test_the_sentence_ends_with_the_supply_that_is_not_there(replicas: ReplicaCounts, said: str) -> None:
    message = decide(a_decision_input(ALL_VOTES, BUSY, replicas=replicas)).message
    assert message.partition("waitingRequests 3")[2].removeprefix("; ") == said


def test_what_the_next_decision_is_told() -> None:
    """Three of four replicas are seen, fewer than before, and an outage that is remembered is over."""
    history = a_history(
        recommended={30: 5},
        last_desired_replicas=9,
        last_seen_replicas=7,
        blind_since_seconds=NOW - 200,
        consecutive_good_readings=2,
        is_in_fallback=True,
        low_coverage_since_seconds=NOW - 1000,
        most_missing_replicas=0,
        idle_since_seconds=NOW - 100,
        latency_measured_at_seconds=NOW - 60,
        uneven_measurements=1,
        is_scaled_to_zero=True,
    )
    metrics = an_observation(
        {Signal.KV_CACHE_USAGE: a_signal(0.9, 0.9, 0.9, None)},
        fresh=3,
        latency=PoolLatency(
            inter_token_latency_p50_seconds=0.03, inter_token_latency_p99_seconds=0.12, measured_at_seconds=NOW
        ),
    )
    policy = a_policy(signals={"kvCache": {}, "interTokenLatencyDivergence": {}})
    decision = decide(a_decision_input(policy, metrics, history=history))
    assert decision.desired_replicas == 4
    assert decision.next_history == replace(
        history,
        recommendations=(TimedRecommendation(NOW - 30, 5), TimedRecommendation(NOW, 4)),
        last_desired_replicas=4,
        last_seen_replicas=4,
        blind_since_seconds=None,
        consecutive_good_readings=3,
        is_in_fallback=False,
        low_coverage_since_seconds=NOW,
        most_missing_replicas=1,
        idle_since_seconds=None,
        latency_measured_at_seconds=NOW,
        uneven_measurements=2,
    )


def test_what_is_being_rolled_out_is_no_demand() -> None:
    """A surge pod is in the target's status and not in its spec: at the same load the spec stays."""
    surging = ReplicaCounts(spec=4, status=5, ready=5)
    metrics = an_observation({Signal.KV_CACHE_USAGE: an_even_signal(3.4, 5)}, ready=5)
    assert decide(a_decision_input(replicas=surging, metrics=metrics)).desired_replicas == 4


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param({"custom": [{"name": "a", "query": "q", "perReplica": 0.001}]}, id="a custom query"),
        pytest.param({"pendingRequests": {"query": "q", "perReplica": 1e-9}}, id="pending requests"),
    ],
)
def test_the_largest_number_there_is_ends_at_the_maximum(signals: dict[str, Any]) -> None:
    metrics = an_observation(queries={"custom/a": 1.7e308, "pendingRequests": 1.7e308})
    behavior = {"scaleUp": {"policies": [{"type": "Pods", "value": 100, "periodSeconds": 15}]}}
    decision = decide(a_decision_input(a_policy(signals=signals, behavior=behavior), metrics))
    assert (decision.desired_replicas, decision.reason) == (100, Reason.TOO_MANY_REPLICAS)
    assert all(isfinite(vote.replicas or 0.0) for vote in decision.recommendations)
