"""What may happen while a pool is not seen, in whole or in part."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_history,
    a_policy,
    a_signal,
    an_observation,
    without,
)

USAGE = Signal.KV_CACHE_USAGE
KV_CACHE = {"kvCache": {}}
ALWAYS = {"name": "day", "start": "* * * * *", "end": "0 0 29 2 *"}


def seen(*usage: float | None, held: int = 0, **more: Any) -> MetricsObservation:
    """Ready replicas by their KV use; None: not seen. Coverage follows."""
    known = sum(value is not None for value in usage)
    signal = a_signal(*usage, held=held)
    return an_observation({USAGE: signal}, ready=len(usage), fresh=known - held, **more)


IDLE_FOUR = seen(0.1, 0.1, 0.1, 0.1)
BUSY_FOUR = seen(0.9, 0.9, 0.9, 0.9)


@pytest.mark.parametrize(
    ("metrics", "history", "replicas", "reason"),
    [
        pytest.param(a_blackout(), {}, 4, Reason.METRICS_UNAVAILABLE, id="no answer: the present count"),
        pytest.param(
            a_blackout(),
            {"last_desired_replicas": 7, "last_seen_replicas": 4},
            7,
            Reason.METRICS_UNAVAILABLE,
            id="a wish that could not be written yet is kept up",
        ),
        pytest.param(
            a_blackout(),
            {"last_desired_replicas": 2, "last_seen_replicas": 4},
            4,
            Reason.METRICS_UNAVAILABLE,
            id="a lowering that was not carried out is not carried out blind",
        ),
        pytest.param(
            a_blackout(),
            {"last_desired_replicas": 7, "last_seen_replicas": 7},
            4,
            Reason.METRICS_UNAVAILABLE,
            id="a count that somebody else has set since is held as it is",
        ),
        pytest.param(
            seen(0.9, None, None, None), {}, 4, Reason.LOW_COVERAGE, id="fewer than half seen, and those are busy"
        ),
        pytest.param(
            seen(0.1, None, None, None), {}, 4, Reason.LOW_COVERAGE, id="fewer than half seen, and those are idle"
        ),
        pytest.param(
            an_observation({USAGE: a_signal(None, None, None, None)}),
            {},
            4,
            Reason.SIGNAL_UNKNOWN,
            id="scraped, but the metric has gone (renamed, NaN)",
        ),
        pytest.param(
            an_observation({USAGE: a_signal()}, ready=0),
            {"last_desired_replicas": 6, "last_seen_replicas": 4},
            4,
            Reason.NO_VOTES,
            id="no replica is ready yet: nothing to see is not blindness",
        ),
    ],
)
def test_a_blind_pool_holds_the_last_desired_count(
    metrics: MetricsObservation | ObservationUnavailable, history: Mapping[str, Any], replicas: int, reason: Reason
) -> None:
    decision = decide(a_decision_input(a_policy(signals=KV_CACHE), metrics, history=a_history(**history)))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("blind_seconds", "fallback", "replicas", "reason"),
    [
        pytest.param(119, {"replicas": 9}, 4, Reason.METRICS_UNAVAILABLE, id="before holdSeconds the count is held"),
        pytest.param(120, {"replicas": 7}, 7, Reason.FALLBACK, id="after holdSeconds the fallback rules"),
        pytest.param(120, {"replicas": 2}, 4, Reason.FALLBACK, id="CurrentIfHigher keeps more than the fallback"),
        pytest.param(120, None, 4, Reason.METRICS_UNAVAILABLE, id="without a fallback the count is held for good"),
    ],
)
def test_the_fallback(blind_seconds: float, fallback: dict[str, Any] | None, replicas: int, reason: Reason) -> None:
    policy = a_policy(signals=KV_CACHE, missingData={"holdSeconds": 120, "fallback": fallback})
    history = a_history(blind_since_seconds=NOW - blind_seconds)
    decision = decide(a_decision_input(policy, a_blackout(), history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


CUSTOM = [{"name": name, "query": name, "perReplica": 1} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("signals", "queries", "is_remembered"),
    [
        pytest.param({"custom": CUSTOM}, {"custom/a": 4, "custom/b": 2}, True, id="both metrics are there"),
        pytest.param(
            {"custom": CUSTOM}, {"custom/a": 2, "custom/b": QueryUnknown("empty")}, False, id="one is missing: held"
        ),
        pytest.param(
            {"custom": CUSTOM},
            {"custom/a": 9, "custom/b": QueryUnknown("empty")},
            True,
            id="one is missing, and the other raises the count",
        ),
        pytest.param(
            {"custom": CUSTOM},
            {"custom/a": QueryUnknown("empty"), "custom/b": QueryUnknown("empty")},
            False,
            id="both are missing",
        ),
        pytest.param(
            {"custom": CUSTOM, **KV_CACHE},
            {"custom/a": 2, "custom/b": QueryUnknown("empty")},
            True,
            id="beside a vote on the pool's own replicas the held count is one to look back on",
        ),
    ],
)
def test_a_refusal_in_an_hpas_terms_leaves_no_trace(
    signals: dict[str, Any], queries: Mapping[str, Any], is_remembered: bool
) -> None:
    metrics = an_observation(queries=queries)
    history = a_history(recommended={60: 7})
    kept = decide(a_decision_input(a_policy(signals=signals), metrics, history=history)).next_history.recommendations
    assert (kept[-1].at_seconds == NOW) is is_remembered


@pytest.mark.parametrize(
    ("unseen", "low_since"),
    [
        pytest.param(1, None, id="nine of ten are as good as all"),
        pytest.param(2, NOW, id="eight of ten are not"),
    ],
)
def test_when_too_few_replicas_are_seen(unseen: int, low_since: float | None) -> None:
    metrics = seen(*[0.5] * (10 - unseen), *[None] * unseen)
    decision = decide(a_decision_input(a_policy(signals=KV_CACHE), metrics, replicas=10))
    assert decision.next_history.low_coverage_since_seconds == low_since


def test_recovering_is_no_fallback_where_there_was_none() -> None:
    policy = a_policy(signals=KV_CACHE, missingData={"holdSeconds": 120, "fallback": {"replicas": 9}})
    history = a_history(blind_since_seconds=NOW - 60)
    decision = decide(a_decision_input(policy, IDLE_FOUR, history=history))
    assert (decision.desired_replicas, decision.next_history.is_in_fallback) == (4, False)


def test_where_the_engine_exposes_nothing_a_query_that_fails_is_blindness() -> None:
    metrics = without(an_observation(queries={"pendingRequests": QueryUnknown("empty")}), USAGE)
    policy = a_policy(
        signals={**KV_CACHE, "pendingRequests": {"query": "q", "perReplica": 1}},
        missingData={"holdSeconds": 120, "fallback": {"replicas": 7}},
    )
    decision = decide(a_decision_input(policy, metrics, history=a_history(blind_since_seconds=NOW - 120)))
    assert (decision.desired_replicas, decision.reason) == (7, Reason.FALLBACK)


@pytest.mark.parametrize(
    ("policy", "metrics", "replicas"),
    [
        pytest.param(
            {"signals": {**KV_CACHE, "pendingRequests": {"query": "q", "perReplica": 1}}},
            seen(0.1, None, None, None, queries={"pendingRequests": 7}),
            7,
            id="pending requests are seen without replicas",
        ),
        pytest.param(
            {"signals": {**KV_CACHE, "pendingRequests": {"query": "q", "perReplica": 1}}},
            seen(0.1, None, None, None, queries={"pendingRequests": 0}),
            4,
            id="but that there are none lowers nothing",
        ),
        pytest.param(
            {
                "signals": {**KV_CACHE, "pendingRequests": {"query": "q", "perReplica": 1}},
                "schedules": [{**ALWAYS, "minReplicas": 3}],
            },
            seen(0.1, None, None, None, queries={"pendingRequests": 7}),
            7,
            id="the largest of them",
        ),
        pytest.param(
            {"signals": {**KV_CACHE, "custom": [{"name": "depth", "query": "q", "perReplica": 1}]}},
            seen(0.1, None, None, None, queries={"custom/depth": 6}),
            6,
            id="a query of the user's own is seen without replicas",
        ),
        pytest.param(
            {"signals": KV_CACHE, "schedules": [{**ALWAYS, "minReplicas": 8}]},
            a_blackout(),
            8,
            id="a schedule needs no metrics",
        ),
        pytest.param(
            {"schedules": [{**ALWAYS, "minReplicas": 3}]},
            a_blackout(),
            3,
            id="a policy of nothing but schedules is never blind",
        ),
    ],
)
def test_votes_that_need_no_replica_act_while_blind(policy: dict[str, Any], metrics: Any, replicas: int) -> None:
    assert decide(a_decision_input(a_policy(**policy), metrics)).desired_replicas == replicas


@pytest.mark.parametrize(
    ("usage", "low_coverage_seconds", "most_missing", "replicas", "reason"),
    [
        pytest.param((0.1,) * 20, None, 0, 3, Reason.KV_CACHE, id="all seen: down to what is needed"),
        pytest.param(
            (*(0.1,) * 19, None),
            None,
            0,
            4,
            Reason.LOW_COVERAGE,
            id="1 of 20 unseen: it may be full, and is counted so",
        ),
        pytest.param((*(0.1,) * 17, None, None, None), 0, 3, 20, Reason.LOW_COVERAGE, id="3 of 20 unseen: no lowering"),
        pytest.param((*(0.1,) * 17, None, None, None), 899, 3, 20, Reason.LOW_COVERAGE, id="for 15 minutes"),
        pytest.param(
            (*(0.1,) * 17, None, None, None), 900, 3, 19, Reason.LOW_COVERAGE, id="then one replica at a time"
        ),
        pytest.param(
            (*(0.1,) * 16, None, None, None, None), 900, 3, 20, Reason.LOW_COVERAGE, id="one more lost: 15 minutes anew"
        ),
        pytest.param(
            (*(0.1,) * 17, None, None, None), 900, 4, 19, Reason.LOW_COVERAGE, id="one come back begins nothing anew"
        ),
        pytest.param(
            (*(0.75,) * 17, None, None, None), 900, 3, 20, Reason.LOW_COVERAGE, id="not below what full ones would need"
        ),
        pytest.param(
            (*(1.0,) * 17, None, None, None), 0, 3, 24, Reason.KV_CACHE, id="more is always possible: unseen as peers"
        ),
    ],
)
def test_lowering_in_part_sight(
    usage: tuple[float | None, ...],
    low_coverage_seconds: float | None,
    most_missing: int,
    replicas: int,
    reason: Reason,
) -> None:
    history = a_history(
        low_coverage_since_seconds=None if low_coverage_seconds is None else NOW - low_coverage_seconds,
        most_missing_replicas=most_missing,
    )
    decision = decide(a_decision_input(a_policy(signals=KV_CACHE), seen(*usage), replicas=20, history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


def test_of_votes_that_are_partly_seen_the_one_that_needs_most_keeps_the_count() -> None:
    policy = a_policy(signals={**KV_CACHE, "waitingRequests": {"perReplica": 4}})
    metrics = seen(*(0.1,) * 19, None)
    waiting = a_signal(*(0.0,) * 18, 36.0, None)  # the unseen queue may be as long as the longest: 72 / 4 = 18
    metrics = replace(metrics, signals={**metrics.signals, Signal.WAITING_REQUESTS: waiting})
    assert decide(a_decision_input(policy, metrics, replicas=20)).desired_replicas == 20
    assert decide(a_decision_input(a_policy(signals=KV_CACHE), metrics, replicas=20)).desired_replicas == 4


def test_an_aged_sample_may_raise_and_does_not_lower() -> None:
    policy = a_policy(signals=KV_CACHE)
    busy = seen(*(0.95,) * 19, 0.95, held=1)
    assert decide(a_decision_input(policy, busy, replicas=20)).desired_replicas == 23
    idle = seen(*(0.8,) * 19, 0.0, held=1)
    assert decide(a_decision_input(policy, idle, replicas=20)).desired_replicas == 20


def test_a_vote_whose_signal_is_unknown_blocks_lowering_and_leaves_raising_to_the_others() -> None:
    signals = {**KV_CACHE, "custom": [{"name": "depth", "query": "q", "perReplica": 1}]}
    queries = {"custom/depth": QueryUnknown("empty")}
    idle, busy = seen(*(0.1,) * 4, queries=queries), seen(*(1.0,) * 4, queries=queries)
    held = decide(a_decision_input(a_policy(signals=signals), idle))
    assert (held.desired_replicas, held.reason) == (4, Reason.SIGNAL_UNKNOWN)
    assert decide(a_decision_input(a_policy(signals=signals), busy)).desired_replicas == 5


def test_a_signal_that_the_engine_does_not_have_blocks_nothing() -> None:
    policy = a_policy(signals={**KV_CACHE, "waitingRequests": {"perReplica": 4}})
    idle = seen(0.1, 0.1, 0.1, 0.1)
    absent = replace(idle, signals={USAGE: idle.signals[USAGE]})
    assert decide(a_decision_input(policy, absent)).desired_replicas == 1


class Pool:
    """A pool through time: each tick is decided, written and remembered."""

    def __init__(self, replicas: int, **spec: Any) -> None:
        self.policy, self.replicas, self.now = a_policy(signals=KV_CACHE, **spec), replicas, NOW
        self.history: ScalingHistory = a_history()

    def tick(self, metrics: MetricsObservation | ObservationUnavailable, seconds: float = 15.0) -> ScalingDecision:
        self.now += seconds
        counts = ReplicaCounts(self.replicas, self.replicas, self.replicas)
        decision = decide(DecisionInput(self.now, self.policy, counts, metrics, self.history))
        self.history, self.replicas = decision.next_history, decision.desired_replicas
        return decision


def test_out_of_blindness_lead_three_good_readings_in_a_row() -> None:
    pool = Pool(
        4,
        missingData={"fallback": {"replicas": 6}},
        behavior={"scaleDown": {"stabilizationWindowSeconds": 0}},
        coldStart={"priorSeconds": 1},
    )
    for _ in range(8):
        assert pool.tick(a_blackout()).desired_replicas == 4
    assert pool.tick(a_blackout()).reason is Reason.FALLBACK
    assert pool.replicas == 6
    assert pool.tick(IDLE_FOUR).reason is Reason.RECOVERING
    assert pool.tick(IDLE_FOUR).reason is Reason.RECOVERING
    assert pool.tick(a_blackout()).reason is Reason.FALLBACK  # the third was none: begin anew, still in the fallback
    assert [pool.tick(IDLE_FOUR).desired_replicas for _ in range(3)] == [6, 6, 1]
    assert pool.history.blind_since_seconds is None


def test_while_recovering_a_good_reading_may_raise() -> None:
    pool = Pool(4)
    pool.tick(a_blackout())
    assert pool.tick(seen(1.0, 1.0, 1.0, 1.0)).desired_replicas == 5


def test_a_gap_that_lasts_does_not_ratchet_the_fleet_up() -> None:
    """30 % of the replicas unseen for three hours: after the block the pool comes down to what it needs, and stays."""
    pool = Pool(20)
    counts = []
    for _ in range(3 * 240):
        ready = pool.replicas
        unseen = 6 if ready > 12 else ready * 3 // 10
        pool.tick(seen(*(0.4 * 20 / ready,) * (ready - unseen), *(None,) * unseen))
        counts.append(pool.replicas)
    assert counts[:60] == [20] * 60  # 15 min
    assert max(before - after for before, after in itertools.pairwise(counts)) == 1
    assert counts[-1] == counts[-40]
    assert counts[-1] <= 14


def test_a_steady_gap_falls_by_one_replica_a_window() -> None:
    pool = Pool(20)
    falls = []
    for tick in range(240):
        before = pool.replicas
        pool.tick(seen(*(0.1,) * (pool.replicas - 3), None, None, None))
        if pool.replicas < before:
            falls.append(tick * 15)
    assert falls[:3] == [1185, 1485, 1785]  # 900 s of block, then a window of 300 s for each


def test_of_a_pool_that_shows_nothing_it_is_said_what_to_look_for() -> None:
    nothing = seen(None, None, warnings=("a query was slow", "another too", "are they scraped?"))
    assert "0 of 2 ready replicas have fresh samples: are they scraped?" in message(nothing)
    half = seen(0.1, None, None, warnings=("are they scraped?",))
    assert "scraped" not in message(half)


def message(metrics: MetricsObservation) -> str:
    return decide(a_decision_input(a_policy(signals=KV_CACHE), metrics=metrics)).message


@pytest.mark.parametrize(
    ("unready_usage", "replicas", "reason"),
    [
        pytest.param(0.0, 2, Reason.KV_CACHE, id="it has nothing to do"),
        pytest.param(0.9, 3, Reason.UNSTEADY_REPLICAS, id="it serves as much as a busy one: it is needed"),
        pytest.param(9.0, 4, Reason.UNSTEADY_REPLICAS, id="whatever it serves, it is no reason to grow"),
    ],
)
def test_what_an_unready_replica_serves_is_not_given_up(unready_usage: float, replicas: int, reason: Reason) -> None:
    usage = replace(a_signal(0.5, 0.5, 0.5), unsteady_total=unready_usage)
    metrics = an_observation({USAGE: usage}, ready=3, unsteady_replicas=int(unready_usage > 0))
    counts = ReplicaCounts(4, 4, 3, starting=1)
    history = a_history(recommended={15: 2})
    decision = decide(a_decision_input(a_policy(signals=KV_CACHE), metrics, replicas=counts, history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


def test_a_pool_with_an_unready_replica_that_serves_is_not_idle() -> None:
    signals = {
        signal: replace(a_signal(0.0), unsteady_total=1.0)
        for signal in (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
    }
    metrics = an_observation(signals, ready=1, unsteady_replicas=1)
    history = a_history(recommended={15: 0}, idle_since_seconds=NOW - 5000.0)
    policy = a_policy(signals=KV_CACHE, minReplicas=0, schedules=[ALWAYS | {"minReplicas": 0}])
    decision = decide(a_decision_input(policy, metrics, replicas=2, history=history))
    assert decision.next_history.idle_since_seconds is None
