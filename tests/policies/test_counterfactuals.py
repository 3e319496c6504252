"""What the count would be without its binding vote, without a limit, or if an advice had acted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from policies.decision import counterfactuals_of, decide
from policies.decision_input import DecisionInput
from policies.observation import QueryUnknown, ReplicaCounts
from policies.signals import Signal
from tests.builders import a_blackout, a_decision_input, a_history, a_policy, an_even_signal, an_observation

WAITING = {"waitingRequests": {"perReplica": 10}}
PENDING = {"pendingRequests": {"query": "q", "perReplica": 10}}
CALM = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}


def a_pool(
    waiting: float, *, pending: float | QueryUnknown = 0.0, replicas: int = 4, signals: Any = WAITING, **spec: Any
) -> DecisionInput:
    metrics = an_observation(
        {Signal.WAITING_REQUESTS: an_even_signal(waiting, replicas)},
        ready=replicas,
        queries={"pendingRequests": pending},
    )
    history = a_history(recommended={100.0: 4}, last_desired_replicas=replicas, last_seen_replicas=replicas)
    return a_decision_input(a_policy(signals=signals, **spec), metrics, replicas=replicas, history=history)


@pytest.mark.parametrize(
    ("decision_input", "count", "without"),
    [
        pytest.param(a_pool(80), 8, {"waitingRequests": 4}, id="no other vote: the present count is kept"),
        pytest.param(
            a_pool(80, pending=60, signals=WAITING | PENDING),
            8,
            {"waitingRequests": 6},
            id="without the largest vote the second rules",
        ),
        pytest.param(
            a_pool(60, pending=80, signals=WAITING | PENDING),
            8,
            {"pendingRequests": 6},
            id="whichever is the largest",
        ),
        pytest.param(
            a_pool(80, behavior=CALM),
            5,
            {"waitingRequests": 4, "rateLimit": 8},
            id="a rate that holds it back, and what it would be without",
        ),
        pytest.param(
            a_pool(80, behavior=CALM, maxReplicas=4),
            4,
            {"waitingRequests": 4, "rateLimit": 4, "bounds": 5},
            id="each limit for itself, with the others as they are",
        ),
        pytest.param(
            a_pool(20),
            4,
            {"waitingRequests": 4, "stabilization": 2},
            id="what would be without the window that holds it up",
        ),
        pytest.param(a_pool(41), 4, {"waitingRequests": 4, "tolerance": 5}, id="what would be without the tolerance"),
        pytest.param(
            a_pool(20, pending=QueryUnknown("down"), signals=WAITING | PENDING),
            4,
            {"waitingRequests": 4, "missingData": 4},
            id="without the hold for an unknown vote the window still holds it up",
        ),
        pytest.param(a_pool(20, signals={"custom": []}), 4, {}, id="no vote and no limit: nothing would be otherwise"),
        pytest.param(
            a_pool(80, maxReplicas=3), 3, {"waitingRequests": 3, "bounds": 4}, id="beyond the bounds only they count"
        ),
    ],
)
def test_the_count_without_what_gave_it(decision_input: DecisionInput, count: int, without: Mapping[str, int]) -> None:
    assert decide(decision_input).desired_replicas == count
    assert counterfactuals_of(decision_input).without == without


def test_blind_the_hold_is_what_would_be_missed() -> None:
    decision_input = replace(a_pool(80), metrics=a_blackout())
    assert counterfactuals_of(decision_input).without == {}


def test_asleep_a_pool_is_judged_by_what_wakes_it() -> None:
    decision_input = a_decision_input(
        a_policy(minReplicas=0, signals=PENDING),
        an_observation(ready=0, queries={"pendingRequests": 25.0}),
        replicas=ReplicaCounts(0, 0, 0),
        history=a_history(is_scaled_to_zero=True),
    )
    assert decide(decision_input).desired_replicas == 3
    assert counterfactuals_of(decision_input).without == {"pendingRequests": 0}
    custom = {"custom": [{"name": "jobs", "query": "j", "perReplica": 10}]}
    with_another = replace(
        decision_input,
        parameters=a_policy(minReplicas=0, signals=PENDING | custom),
        metrics=an_observation(ready=0, queries={"pendingRequests": 25.0, "custom/jobs": 15.0}),
    )
    assert counterfactuals_of(with_another).without == {"pendingRequests": 2}
