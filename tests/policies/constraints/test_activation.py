"""To zero replicas and back."""

from __future__ import annotations

from typing import Any

import pytest

from policies.decision import decide
from policies.observation import MetricsObservation, QueryUnknown, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_blackout, a_decision_input, a_history, a_policy, a_signal, an_observation, without

SIGNALS = {"waitingRequests": {"perReplica": 4}, "pendingRequests": {"query": "q", "perReplica": 2}}
SLEEPY = a_policy(minReplicas=0, maxReplicas=20, signals=SIGNALS)


def quiet(pending: float | QueryUnknown = 0.0, **signals: Any) -> MetricsObservation:
    """One ready replica that has nothing to do, but for the given signals."""
    nothing = {
        Signal.RUNNING_REQUESTS: a_signal(0.0),
        Signal.WAITING_REQUESTS: a_signal(0.0),
        Signal.REQUESTS_FINISHED: a_signal(0.0),
    }
    given = {Signal[name]: signal for name, signal in signals.items()}
    return an_observation({**nothing, **given}, ready=1, queries={"pendingRequests": pending})


@pytest.mark.parametrize(
    ("metrics", "idle_seconds", "replicas", "reason"),
    [
        pytest.param(quiet(), 600, 0, Reason.SCALED_TO_ZERO, id="ten minutes without a request"),
        pytest.param(quiet(), 599, 1, Reason.RECENTLY_ACTIVE, id="not quite ten minutes"),
        pytest.param(quiet(), None, 1, Reason.RECENTLY_ACTIVE, id="idle since just now"),
        pytest.param(
            quiet(REQUESTS_FINISHED=a_signal(0.1)), 600, 1, Reason.RECENTLY_ACTIVE, id="a request came and went unseen"
        ),
        pytest.param(quiet(RUNNING_REQUESTS=a_signal(1.0)), 600, 1, Reason.RECENTLY_ACTIVE, id="a request runs"),
        pytest.param(
            quiet(REQUESTS_FINISHED=a_signal(None)),
            600,
            1,
            Reason.RECENTLY_ACTIVE,
            id="a counter just met proves nothing",
        ),
        pytest.param(
            quiet(RUNNING_REQUESTS=a_signal(0.0, held=1)), 600, 1, Reason.RECENTLY_ACTIVE, id="nor does an aged sample"
        ),
        pytest.param(
            without(quiet(), Signal.REQUESTS_FINISHED),
            600,
            1,
            Reason.RECENTLY_ACTIVE,
            id="an engine without that counter",
        ),
        pytest.param(quiet(pending=1), 600, 1, Reason.PENDING_REQUESTS, id="a request waits at the gateway"),
        pytest.param(
            quiet(pending=QueryUnknown("empty")), 600, 1, Reason.SIGNAL_UNKNOWN, id="the gateway does not answer"
        ),
        pytest.param(a_blackout(), 600, 1, Reason.METRICS_UNAVAILABLE, id="Prometheus does not answer"),
    ],
)
def test_the_last_replica_goes_when_nothing_has_come_for_ten_minutes(
    metrics: Any, idle_seconds: float | None, replicas: int, reason: Reason
) -> None:
    history = a_history(idle_since_seconds=None if idle_seconds is None else NOW - idle_seconds)
    decision = decide(a_decision_input(SLEEPY, metrics, replicas=1, history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


def test_idleness_is_remembered_from_its_first_moment_and_forgotten_with_the_first_request() -> None:
    first = decide(a_decision_input(SLEEPY, quiet(), replicas=1)).next_history
    assert first.idle_since_seconds == NOW
    later = decide(a_decision_input(SLEEPY, quiet(), replicas=1, history=first, now_seconds=NOW + 60)).next_history
    assert later.idle_since_seconds == NOW
    busy = quiet(RUNNING_REQUESTS=a_signal(1.0))
    assert decide(a_decision_input(SLEEPY, busy, replicas=1, history=first)).next_history.idle_since_seconds is None


def test_replicas_that_are_not_ready_prove_nothing() -> None:
    nobody = {
        signal: a_signal() for signal in (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
    }
    metrics = an_observation(nobody, ready=0, queries={"pendingRequests": 0.0})
    starting = ReplicaCounts(1, 1, 0, starting=1)
    assert decide(a_decision_input(SLEEPY, metrics, replicas=starting)).next_history.idle_since_seconds is None


def test_what_a_cache_still_holds_is_no_request() -> None:
    policy = a_policy(minReplicas=0, signals={**SIGNALS, "kvCache": {}})
    metrics = quiet(KV_CACHE_USAGE=a_signal(0.2))
    assert decide(a_decision_input(policy, metrics, replicas=1)).next_history.idle_since_seconds == NOW


def test_a_minimum_above_zero_keeps_its_own_reason() -> None:
    policy = a_policy(minReplicas=1, signals=SIGNALS)
    decision = decide(a_decision_input(policy, quiet(), replicas=1))
    assert (decision.desired_replicas, decision.reason) == (1, Reason.TOO_FEW_REPLICAS)


ASLEEP = ReplicaCounts(0, 0, 0)
ALWAYS = {"name": "day", "start": "* * * * *", "end": "0 0 29 2 *"}


def asleep(pending: float | QueryUnknown) -> MetricsObservation:
    return an_observation({Signal.WAITING_REQUESTS: a_signal()}, ready=0, queries={"pendingRequests": pending})


@pytest.mark.parametrize(
    ("spec", "metrics", "replicas", "reason"),
    [
        pytest.param({}, asleep(0), 0, Reason.SCALED_TO_ZERO, id="nobody waits: sleep on"),
        pytest.param({}, asleep(1), 1, Reason.PENDING_REQUESTS, id="one request wakes one replica"),
        pytest.param({}, asleep(17), 9, Reason.PENDING_REQUESTS, id="many wake the computed count at once"),
        pytest.param(
            {"behavior": {"scaleUp": {"policies": [{"type": "Percent", "value": 50, "periodSeconds": 60}]}}},
            asleep(17),
            9,
            Reason.PENDING_REQUESTS,
            id="a percent of nothing is no limit",
        ),
        pytest.param(
            {"behavior": {"scaleUp": {"stabilizationWindowSeconds": 600}}},
            asleep(17),
            9,
            Reason.PENDING_REQUESTS,
            id="nor is a window",
        ),
        pytest.param({"maxReplicas": 5}, asleep(17), 5, Reason.TOO_MANY_REPLICAS, id="the maximum is"),
        pytest.param(
            {"minReplicas": 2}, asleep(0), 2, Reason.TOO_FEW_REPLICAS, id="a minimum that was raised meanwhile"
        ),
        pytest.param(
            {"schedules": [{**ALWAYS, "minReplicas": 3}]}, asleep(0), 3, Reason.SCHEDULE, id="a window that opens"
        ),
        pytest.param({}, asleep(QueryUnknown("empty")), 0, Reason.SIGNAL_UNKNOWN, id="the gateway does not answer"),
        pytest.param({}, a_blackout(), 0, Reason.METRICS_UNAVAILABLE, id="blind and asleep: sleep on"),
        pytest.param(
            {"missingData": {"holdSeconds": 0, "fallback": {"replicas": 3}}},
            a_blackout(),
            3,
            Reason.FALLBACK,
            id="blind and asleep for too long: requests would be lost unseen",
        ),
    ],
)
def test_a_pool_that_we_put_to_sleep_wakes_up(
    spec: dict[str, Any], metrics: Any, replicas: int, reason: Reason
) -> None:
    policy = a_policy(**{"minReplicas": 0, "maxReplicas": 20, "signals": SIGNALS, **spec})
    history = a_history(recommended={15: 0}, is_scaled_to_zero=True)
    decision = decide(a_decision_input(policy, metrics, replicas=ASLEEP, history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


@pytest.mark.parametrize("minimum", [0, 2])
def test_a_pool_that_somebody_else_has_switched_off_stays_off(minimum: int) -> None:
    policy = a_policy(minReplicas=minimum, maxReplicas=20, signals=SIGNALS)
    decision = decide(a_decision_input(policy, asleep(17), replicas=ASLEEP))
    assert (decision.desired_replicas, decision.reason) == (0, Reason.SCALING_DISABLED)
    assert [step.name for step in decision.steps] == ["switchedOff"]


def test_the_count_that_it_woke_up_to_is_kept_for_a_window() -> None:
    history = a_history(recommended={15: 0}, is_scaled_to_zero=True)
    woken = decide(a_decision_input(SLEEPY, asleep(17), replicas=ASLEEP, history=history))
    assert woken.desired_replicas == 9
    starting = ReplicaCounts(9, 9, 0, starting=9)
    later = decide(
        a_decision_input(SLEEPY, asleep(0), replicas=starting, history=woken.next_history, now_seconds=NOW + 15)
    )
    assert later.desired_replicas == 9
