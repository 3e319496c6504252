"""What a report means in conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.api.conditions import MAXIMUM_MESSAGE_CHARACTERS, Condition, ConditionStatus, ConditionType
from autoscaler.controller.pool_conditions import judged_conditions
from autoscaler.controller.pool_report import PoolReport
from policies.bursts import Burst, BurstMemory
from policies.capacity_split import CapacityType
from policies.cold_start import ColdStart
from policies.decision import decide
from policies.history import MoveMemory
from policies.node_capacity import CapacityOutcome
from policies.node_move import NodeMove
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import NOW, a_blackout, a_history, a_signal, an_observation
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_rejected_report,
    a_scaler,
    an_unobserved_report,
    some_waiting,
)

ACCEPTED, FOUND, METRICS = ConditionType.SPEC_ACCEPTED, ConditionType.TARGET_FOUND, ConditionType.METRICS_AVAILABLE
ABLE, ACTIVE, LIMITED = ConditionType.ABLE_TO_SCALE, ConditionType.SCALING_ACTIVE, ConditionType.SCALING_LIMITED

AT_REST = a_decision_report()
SWITCHED_OFF = a_decision_report(replicas=0, metrics=an_observation(ready=0))
SILENT = a_scaler(engine="custom", signals={})
UP_LIMITED = a_scaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}})
RECOVERING = a_decision_report(waiting=20.0, history=a_history(blind_since_seconds=NOW - 60.0))
FALLEN_BACK = a_decision_report(
    scaler=a_scaler(missingData={"holdSeconds": 60, "fallback": {"replicas": 8}}),
    metrics=a_blackout(),
    history=a_history(blind_since_seconds=NOW - 61.0),
)


def judged(report: PoolReport, before: tuple[Condition, ...] = ()) -> dict[ConditionType, Condition]:
    return {condition.type: condition for condition in judged_conditions(before, report)}


@pytest.mark.parametrize(
    ("report", "kind", "expected"),
    [
        pytest.param(AT_REST, ACCEPTED, "True SpecAccepted the spec is valid", id="a spec is accepted"),
        pytest.param(
            a_rejected_report(),
            ACCEPTED,
            "False SpecInvalid spec.maxReplica is not a known field; did you mean maxReplicas?",
            id="a spec is not",
        ),
        pytest.param(
            a_rejected_report(), ACTIVE, "False SpecInvalid nothing is decided for this spec", id="so nothing"
        ),
        pytest.param(AT_REST, FOUND, "True SucceededGetScale Deployment inference/llama", id="the target is there"),
        pytest.param(
            an_unobserved_report(), FOUND, "False TargetNotFound no Deployment inference/llama", id="there is no target"
        ),
        pytest.param(
            an_unobserved_report(Reason.TARGET_NOT_SCALABLE, message="no /scale"),
            FOUND,
            "False TargetNotScalable no /scale",
            id="a target that cannot be scaled",
        ),
        pytest.param(
            an_unobserved_report(Reason.STALE_CACHE, message="the watch is silent"),
            FOUND,
            "Unknown StaleCache the watch is silent",
            id="a target that was not heard of may be there",
        ),
        pytest.param(
            an_unobserved_report(), ABLE, "False TargetNotFound no Deployment inference/llama", id="no target, no write"
        ),
        pytest.param(
            an_unobserved_report(),
            ACTIVE,
            "False TargetNotFound no Deployment inference/llama",
            id="no target, no count",
        ),
        pytest.param(
            AT_REST,
            METRICS,
            "True ValidMetricFound 4 of 4 ready replicas have fresh samples",
            id="all replicas are seen",
        ),
        pytest.param(
            a_decision_report(replicas=20, metrics=some_waiting(200.0, ready=20, fresh=18)),
            METRICS,
            "True ValidMetricFound 18 of 20 ready replicas have fresh samples",
            id="nine in ten are enough",
        ),
        pytest.param(
            a_decision_report(replicas=20, metrics=some_waiting(200.0, ready=20, fresh=17)),
            METRICS,
            "False LowCoverage 17 of 20 ready replicas have fresh samples",
            id="fewer are not",
        ),
        pytest.param(
            a_decision_report(metrics=a_blackout()),
            METRICS,
            "False PrometheusUnreachable Prometheus does not answer",
            id="Prometheus is away",
        ),
        pytest.param(
            a_decision_report(metrics=some_waiting(40.0, warnings=("kv_cache was renamed", "a second one"))),
            METRICS,
            "True ValidMetricFound 4 of 4 ready replicas have fresh samples; kv_cache was renamed; a second one",
            id="warnings are told",
        ),
        pytest.param(AT_REST, ABLE, "True ReadyForNewScale Deployment inference/llama: 4 -> 4", id="nothing to write"),
        pytest.param(
            a_decision_report(waiting=80.0),
            ABLE,
            "True SucceededRescale Deployment inference/llama: 4 -> 8",
            id="a write that went through",
        ),
        pytest.param(
            a_decision_report(waiting=80.0, outcome=Reason.FORBIDDEN, message="grant verb patch"),
            ABLE,
            "False Forbidden grant verb patch",
            id="a write that is forbidden",
        ),
        pytest.param(
            a_decision_report(waiting=80.0, outcome=Reason.CONFLICT, message="the target has changed"),
            ABLE,
            "False Conflict the target has changed",
            id="a write that came too late",
        ),
        pytest.param(
            a_decision_report(outcome=Reason.COMPETING_AUTOSCALER, message="HorizontalPodAutoscaler x steers it too"),
            ABLE,
            "False CompetingAutoscaler HorizontalPodAutoscaler x steers it too",
            id="a competitor, whether or not there is something to write",
        ),
        pytest.param(
            a_decision_report(scaler=a_scaler(mode="DryRun")),
            ABLE,
            "False DryRun mode DryRun: decided, never written",
            id="mode DryRun with nothing to write",
        ),
        pytest.param(
            a_decision_report(scaler=a_scaler(mode="DryRun"), waiting=80.0, outcome=Reason.DRY_RUN),
            ABLE,
            "False DryRun mode DryRun: decided, never written",
            id="mode DryRun with something to write",
        ),
        pytest.param(
            a_decision_report(
                scaler=a_scaler(mode="DryRun"), outcome=Reason.COMPETING_SCALER, message="inference/older steers it too"
            ),
            ABLE,
            "False CompetingScaler inference/older steers it too",
            id="a competitor in mode DryRun",
        ),
        pytest.param(AT_REST, ACTIVE, "True ValidMetricFound votes are counted", id="votes are counted"),
        pytest.param(
            a_decision_report(metrics=a_blackout()),
            ACTIVE,
            "False MetricsUnavailable held at 4, blind for 0 s: Prometheus does not answer",
            id="blind",
        ),
        pytest.param(
            FALLEN_BACK,
            ACTIVE,
            "False Fallback fallback at 8, blind for 61 s: Prometheus does not answer",
            id="the fallback rules",
        ),
        pytest.param(RECOVERING, ACTIVE, "False Recovering held at 4, 1 of 3 good readings in a row", id="recovering"),
        pytest.param(
            a_decision_report(waiting=20.0, metrics=some_waiting(20.0, fresh=3)),
            ACTIVE,
            "True ValidMetricFound votes are counted",
            id="low coverage holds lowering only",
        ),
        pytest.param(
            SWITCHED_OFF,
            ACTIVE,
            f"False ScalingDisabled {SWITCHED_OFF.decision.message}",
            id="somebody has switched the pool off",
        ),
        pytest.param(
            a_decision_report(scaler=SILENT),
            ACTIVE,
            "False NoVotes 4: no vote has an opinion",
            id="a policy without a vote",
        ),
        pytest.param(
            a_crash_report(),
            ACTIVE,
            "False InternalError decide: ZeroDivisionError: division by zero",
            id="our own bug",
        ),
        pytest.param(AT_REST, LIMITED, "False DesiredWithinRange no limit binds", id="no limit"),
        pytest.param(
            a_decision_report(scaler=a_scaler(maxReplicas=6), waiting=80.0),
            LIMITED,
            "True TooManyReplicas wanted 8, capped at 6 by maxReplicas",
            id="the maximum",
        ),
        pytest.param(
            a_decision_report(scaler=a_scaler(mode="ScaleUpOnly"), waiting=20.0),
            LIMITED,
            "True ScaleUpOnly wanted 2, kept at 4: the mode is ScaleUpOnly",
            id="the mode",
        ),
    ],
)
def test_a_report_is_judged(report: PoolReport, kind: ConditionType, expected: str) -> None:
    condition = judged(report)[kind]
    assert f"{condition.status.value} {condition.reason} {condition.message}" == expected


def test_a_rate_limit_is_a_limit_although_the_bounds_come_after_it() -> None:
    condition = judged(a_decision_report(scaler=UP_LIMITED, waiting=80.0))[LIMITED]
    assert (condition.status, condition.reason) == (ConditionStatus.TRUE, "ScaleUpLimit")


def test_the_time_of_a_transition_is_kept_while_the_status_stays_the_same() -> None:
    first = judged_conditions((), AT_REST)
    later = judged(a_decision_report(waiting=80.0, now_seconds=NOW + 60.0), first)
    assert later[ABLE].reason == "SucceededRescale"
    assert later[ABLE].last_transition_time == "2030-03-17T17:46:40Z"
    blind = judged(a_decision_report(metrics=a_blackout(), now_seconds=NOW + 120.0), first)
    assert blind[METRICS].last_transition_time == "2030-03-17T17:48:40Z"
    assert blind[FOUND].last_transition_time == "2030-03-17T17:46:40Z"


def test_conditions_that_a_report_does_not_speak_of_are_kept() -> None:
    before = judged_conditions((), AT_REST)
    after = judged(a_rejected_report(now_seconds=NOW + 60.0), before)
    assert after[METRICS] == judged(AT_REST)[METRICS]
    assert after[ACCEPTED].observed_generation == 2


def test_every_condition_stands_once_however_often_it_is_judged() -> None:
    conditions: tuple[Condition, ...] = ()
    for report in (AT_REST, a_crash_report(), an_unobserved_report(), a_rejected_report(), AT_REST):
        conditions = judged_conditions(conditions, report)
    assert len(conditions) == len({condition.type for condition in conditions}) == 6


def test_a_message_without_end_is_cut() -> None:
    report = a_decision_report(metrics=a_blackout("x" * 100_000))
    assert len(judged(report)[METRICS].message) == MAXIMUM_MESSAGE_CHARACTERS


def test_replicas_that_are_not_seen_yet_are_no_gap() -> None:
    starting = a_decision_report(replicas=ReplicaCounts(2, 2, 0, 2), metrics=an_observation(ready=0))
    assert judged(starting)[METRICS].status is ConditionStatus.TRUE


@pytest.mark.parametrize(
    ("cold_start", "expected"),
    [
        pytest.param(None, None, id="no start was seen: nothing is said"),
        pytest.param(ColdStart(50.0, 55.0, 60.0, starts=20), None, id="as the policy says: nothing is said"),
        pytest.param(
            ColdStart(50.0, 60.0, 420.0, 90.0, 5.0, 45.0, starts=3),
            "False StartsSlowly 19 of 20 starts take up to 7 min (node 90 s, image 5 s, load 45 s, 3 seen); "
            "coldStart.priorSeconds says 60 s",
            id="slower than the policy says",
        ),
    ],
)
def test_how_long_starts_take_is_said(cold_start: ColdStart | None, expected: str | None) -> None:
    condition = judged(a_decision_report(cold_start=cold_start)).get(ConditionType.COLD_STARTS_IN_TIME)
    said = None if condition is None else f"{condition.status.value} {condition.reason} {condition.message}"
    assert said == expected


def test_that_starts_take_as_long_as_the_policy_says_is_said_where_it_was_not_so() -> None:
    slow = judged_conditions((), a_decision_report(cold_start=ColdStart(50.0, 60.0, 420.0, starts=3)))
    in_time = ColdStart(50.0, 55.0, 60.0, None, 5.0, 45.0, starts=20)
    condition = judged(a_decision_report(cold_start=in_time), slow)[ConditionType.COLD_STARTS_IN_TIME]
    assert (condition.status.value, condition.reason) == ("True", "StartsInTime")
    assert condition.message == "19 of 20 starts take up to 60 s (image 5 s, load 45 s, 20 seen)"


@pytest.mark.parametrize(
    ("replicas", "wedged", "expected"),
    [
        pytest.param(ReplicaCounts(4, 4, 4), (), None, id="all work: nothing is said"),
        pytest.param(
            ReplicaCounts(8, 8, 6, stuck=2),
            (),
            "False StuckReplicas 2 of 8 replicas not ready in time, or without a node",
            id="two do not start",
        ),
        pytest.param(
            ReplicaCounts(8, 8, 6, leaving=2, leaving_ready=1),
            (),
            "False LeavingReplicas 2 of 8 replicas on a node that is noticed, being deleted, gone or not Ready: "
            "1 still serves",
            id="the nodes of two are about to go",
        ),
        pytest.param(
            ReplicaCounts(4, 4, 4).without_wedged(1),
            ("llama-2",),
            "False WedgedReplicas 1 wedged, with requests and no progress while others go on: llama-2",
            id="one stands still",
        ),
        pytest.param(
            ReplicaCounts(20, 20, 19, stuck=1).without_wedged(11),
            tuple(f"r{number}" for number in range(11)),
            "False WedgedReplicas 1 of 20 replicas not ready in time, or without a node; 11 wedged, with requests and "
            "no progress while others go on: r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, ...",
            id="many of both kinds",
        ),
    ],
)
def test_whether_all_replicas_work(replicas: ReplicaCounts, wedged: tuple[str, ...], expected: str | None) -> None:
    metrics = an_observation(ready=replicas.ready, wedged_replicas=wedged)
    condition = judged(a_decision_report(replicas=replicas, metrics=metrics)).get(ConditionType.REPLICAS_WORK)
    said = None if condition is None else f"{condition.status.value} {condition.reason} {condition.message}"
    assert said == expected


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(a_decision_report(), None, id="all are its own: nothing is said"),
        pytest.param(
            a_decision_report(foreign_pods=3),
            "False AmbiguousSelector the selector of Deployment llama also matches 3 pods of others, which are not "
            "counted here",
            id="some are known to be others'",
        ),
        pytest.param(
            an_unobserved_report(Reason.AMBIGUOUS_SELECTOR, message="two selectors match pod a"),
            "False AmbiguousSelector two selectors match pod a",
            id="nobody knows whose they are",
        ),
    ],
)
def test_whether_the_selector_matches_the_targets_own_pods_alone(report: PoolReport, expected: str | None) -> None:
    condition = judged(report).get(ConditionType.SELECTOR_UNAMBIGUOUS)
    said = None if condition is None else f"{condition.status.value} {condition.reason} {condition.message}"
    assert said == expected


def _with_caches(*usage: float | None) -> PoolReport:
    return a_decision_report(metrics=an_observation({Signal.KV_CACHE_USAGE: a_signal(*usage)}))


SKEWED = _with_caches(0.98, 0.3, 0.4, 0.32)


@pytest.mark.parametrize(
    ("before", "report", "expected"),
    [
        pytest.param(None, _with_caches(0.9, 0.3, 0.4, 0.3), None, id="unequal, but no replica is full"),
        pytest.param(None, _with_caches(0.98, 0.8, 0.9, 0.7), None, id="full because all of them are"),
        pytest.param(None, _with_caches(0.98, None, None, None), None, id="one replica is no comparison"),
        pytest.param(
            None,
            SKEWED,
            "False RoutingImbalanced the fullest KV cache is at 98%, the mean of 4 at 50%: the router does not spread "
            "the load, and more replicas would not help",
            id="one is full, the others are half empty",
        ),
        pytest.param(
            SKEWED,
            _with_caches(0.9, 0.3, 0.4, 0.32),
            "False RoutingImbalanced the fullest KV cache is at 90%, the mean of 4 at 48%: the router does not spread "
            "the load, and more replicas would not help",
            id="a little room is not the end of it",
        ),
        pytest.param(
            SKEWED,
            _with_caches(0.5, 0.3, 0.4, 0.32),
            "True RoutingBalanced the fullest KV cache is at 50%, the mean of 4 at 38%",
            id="it is over",
        ),
    ],
)
def test_whether_the_router_spreads_the_load(
    before: PoolReport | None, report: PoolReport, expected: str | None
) -> None:
    conditions = judged_conditions((), before) if before is not None else ()
    condition = judged(report, conditions).get(ConditionType.ROUTING_BALANCED)
    said = None if condition is None else f"{condition.status.value} {condition.reason} {condition.message}"
    assert said == expected


def test_bursts_that_no_replica_can_start_for_are_named_with_their_price() -> None:
    report = replace(a_decision_report(), bursts=BurstMemory((Burst(NOW - 600.0, 45.0, 4, 9),) * 3))
    condition = judged(report)[ConditionType.BURSTS_SERVED]
    assert (condition.status.value, condition.reason) == ("False", "BurstsTooShort")
    assert condition.message == (
        "3 bursts in a day lasted up to 45 s, and a replica takes 60 s to start: 9 standing replicas would serve them "
        "(minReplicas or a schedule), 5 more for 120 replica-hours a day"
    )
    assert ConditionType.BURSTS_SERVED not in judged(a_decision_report())


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(None, None, id="it has no nodes of its own: nothing is said"),
        pytest.param(CapacityOutcome(None, Reason.LIMITS_IN_STEP, "fine"), None, id="all is well: nothing is said"),
        pytest.param(
            CapacityOutcome(None, Reason.COMPETING_WRITER, "by hand"), None, id="limits by hand are no want of nodes"
        ),
        pytest.param(
            CapacityOutcome(None, Reason.OUT_OF_CAPACITY, "NodePool spot makes no nodes: the cloud has none to give"),
            "False OutOfCapacity NodePool spot makes no nodes: the cloud has none to give",
            id="the cloud has none",
        ),
        pytest.param(
            CapacityOutcome(None, Reason.QUOTA_EXCEEDED, "raise it"), "False QuotaExceeded raise it", id="no quota"
        ),
    ],
)
def test_whether_nodes_may_be_expected(nodes: CapacityOutcome | None, expected: str | None) -> None:
    judged_by_kind = {each.type: each for each in judged_conditions((), AT_REST, nodes)}
    condition = judged_by_kind.get(ConditionType.NODES_AVAILABLE)
    said = None if condition is None else f"{condition.status.value} {condition.reason} {condition.message}"
    assert said == expected


def test_nodes_that_come_again_are_said() -> None:
    without = judged_conditions((), AT_REST, CapacityOutcome(None, Reason.OUT_OF_CAPACITY, "none"))
    condition = judged(AT_REST, without)[ConditionType.NODES_AVAILABLE]
    assert (condition.status.value, condition.reason) == ("True", "NodesAvailable")


def going_back(offer: NodeMove | None, settled_seconds: float = 0.0) -> PoolReport:
    """A calm pool of ten, whose nodes say so much of a way back to spot; calm for so long."""
    scaler = a_scaler(mode="Scale", maxReplicas=11, signals={"waitingRequests": {"perReplica": 4}})
    to = CapacityType.SPOT if offer is None else offer.to
    history = a_history(node_move=MoveMemory(NOW - settled_seconds, to=to))
    report = a_decision_report(scaler=scaler, replicas=10, waiting=40.0, history=history)
    decision_input = replace(report.decision_input, node_move=offer)
    return replace(report, decision_input=decision_input, decision=decide(decision_input))


OFFER = NodeMove(CapacityType.SPOT, can_buy=True, replicas_there=6, nodes_beyond_floor=2, surge_replicas=1)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(going_back(None), None, id="nothing was ever to be moved: not a word"),
        pytest.param(going_back(OFFER), None, id="not calm for long enough yet: not a word either"),
        pytest.param(going_back(OFFER, 900.0), "True ReturningToSpot 11 asked for", id="it begins"),
        pytest.param(
            going_back(replace(OFFER, surge_replicas=2), 900.0),
            "False ReturnRefused 2 nodes on demand beyond the floor: 2 replicas more for a while",
            id="there is no room for a surge",
        ),
    ],
)
def test_a_way_back_to_spot_is_told(report: PoolReport, expected: str | None) -> None:
    condition = judged(report).get(ConditionType.ON_SPOT_AGAIN)
    if expected is None:
        assert condition is None
    else:
        assert condition is not None
        assert f"{condition.status} {condition.reason} {condition.message}".startswith(expected)


SHORT = NodeMove(CapacityType.ON_DEMAND, can_buy=True, replicas_there=0, nodes_beyond_floor=4, surge_replicas=1)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        pytest.param(going_back(SHORT, 900.0), "False RestoringFloor 11 asked for", id="it begins"),
        pytest.param(
            going_back(replace(SHORT, surge_replicas=2), 900.0),
            "False FloorNotRestored 4 nodes on spot beyond the floor: 2 replicas more for a while",
            id="there is no room for a surge",
        ),
        pytest.param(going_back(replace(SHORT, waits=True), 900.0), None, id="nodes may mend it by themselves"),
        pytest.param(going_back(OFFER), None, id="the floor is kept, and was"),
    ],
)
def test_a_broken_floor_is_told(report: PoolReport, expected: str | None) -> None:
    condition = judged(report).get(ConditionType.SPLIT_KEPT)
    said = None if condition is None else f"{condition.status} {condition.reason} {condition.message}"
    assert said is None if expected is None else said is not None and said.startswith(expected)


def test_it_is_told_when_the_floor_is_kept_again() -> None:
    broken = judged_conditions((), going_back(replace(SHORT, surge_replicas=2), 900.0))
    condition = judged(going_back(None), broken)[ConditionType.SPLIT_KEPT]
    assert (condition.status, condition.reason) == (ConditionStatus.TRUE, Reason.SPLIT_KEPT)


def test_it_is_told_when_all_is_on_spot_again() -> None:
    refused = judged_conditions((), going_back(replace(OFFER, surge_replicas=2), 900.0))
    condition = judged(going_back(None), refused)[ConditionType.ON_SPOT_AGAIN]
    assert (condition.status, condition.reason) == (ConditionStatus.TRUE, Reason.ON_SPOT_AGAIN)


@pytest.mark.parametrize(
    ("offer", "memory"),
    [
        pytest.param(
            NodeMove(CapacityType.SPOT, can_buy=False, replicas_there=6), None, id="spot cannot be had at all"
        ),
        pytest.param(None, MoveMemory(rests_until_seconds=NOW + 900.0), id="whoever leads now has not looked yet"),
    ],
)
def test_what_is_on_demand_for_want_of_spot_is_not_said_to_be_back(
    offer: NodeMove | None, memory: MoveMemory | None
) -> None:
    refused = judged_conditions((), going_back(replace(OFFER, surge_replicas=0, because="no room")))
    report = going_back(offer)
    decision_input = replace(report.decision_input, history=a_history(node_move=memory))
    report = replace(report, decision_input=decision_input, decision=decide(decision_input))
    condition = judged(report, refused)[ConditionType.ON_SPOT_AGAIN]
    assert (condition.status, condition.reason) == (ConditionStatus.FALSE, Reason.RETURN_REFUSED)
