"""What does a report mean in conditions: is the spec accepted, the target there, and is anything in the way?"""

from __future__ import annotations

from autoscaler.api.conditions import Condition, ConditionStatus, ConditionType, set_condition
from autoscaler.controller.capacity_condition import judge_capacity
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Unobserved
from autoscaler.controller.supply_conditions import (
    judge_bursts,
    judge_floor,
    judge_routing,
    judge_selector,
    judge_spot,
    judge_supply,
)
from autoscaler.decision_record import ActuationOutcome
from policies.decision import ScalingDecision
from policies.node_capacity import CapacityOutcome
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason
from policies.sight import FULL_COVERAGE

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN

LIMITING_REASONS = frozenset(
    {
        Reason.SCALE_UP_LIMIT,
        Reason.SCALE_DOWN_LIMIT,
        Reason.TOO_MANY_REPLICAS,
        Reason.ACCELERATOR_CEILING,
        Reason.TOO_FEW_REPLICAS,
        Reason.SCALE_UP_ONLY,
    }
)
# Reasons of a step that holds the count because of what is not known.
BLIND_REASONS = frozenset(
    {Reason.METRICS_UNAVAILABLE, Reason.LOW_COVERAGE, Reason.SIGNAL_UNKNOWN, Reason.FALLBACK, Reason.RECOVERING}
)
# The target itself is missing or wrong; for every other reason it may be there and only could not be seen.
TARGET_REASONS = frozenset({Reason.TARGET_NOT_FOUND, Reason.TARGET_NOT_SCALABLE})

# No node comes of a NodePool for these.
NO_NODES_REASONS = frozenset(
    {
        Reason.OUT_OF_CAPACITY,
        Reason.QUOTA_EXCEEDED,
        Reason.LAUNCH_MISCONFIGURED,
        Reason.NODE_POOL_NOT_READY,
        Reason.NODE_POOL_NOT_FOUND,
        Reason.KARPENTER_SILENT,
    }
)

Judgement = tuple[ConditionStatus, Reason, str]


def judged_conditions(
    before: tuple[Condition, ...], report: PoolReport, nodes: CapacityOutcome | None = None
) -> tuple[Condition, ...]:
    """The conditions after a report; those that it does not speak of are kept as they were.

    `nodes` is what came of planning the pool's AcceleratorPool; None: it has none, or nobody keeps its limits.
    """
    conditions = _Conditions(before, report.scaler.generation, report.now_seconds)
    if isinstance(report, Rejected):
        problems = "; ".join(report.scaler.problems)
        conditions.set(ConditionType.SPEC_ACCEPTED, FALSE, Reason.SPEC_INVALID, problems)
        conditions.set(ConditionType.SCALING_ACTIVE, FALSE, Reason.SPEC_INVALID, "nothing is decided for this spec")
        return conditions.result
    conditions.set(ConditionType.SPEC_ACCEPTED, TRUE, Reason.SPEC_ACCEPTED, "the spec is valid")
    match report:
        case Unobserved(unavailable=unavailable):
            reason, message = unavailable.reason, unavailable.message
            found = FALSE if reason in TARGET_REASONS else UNKNOWN
            conditions.set(ConditionType.TARGET_FOUND, found, reason, message)
            conditions.set(ConditionType.ABLE_TO_SCALE, FALSE, reason, message)
            conditions.set(ConditionType.SCALING_ACTIVE, FALSE, reason, message)
            if reason is Reason.AMBIGUOUS_SELECTOR:
                conditions.set(ConditionType.SELECTOR_UNAMBIGUOUS, FALSE, reason, message)
        case Crashed(problem=problem):
            conditions.set(ConditionType.SCALING_ACTIVE, FALSE, Reason.INTERNAL_ERROR, problem)
        case Decided():
            _judge_decided(report, conditions)
            conditions.set_if_telling(ConditionType.NODES_AVAILABLE, *_nodes(nodes))
    return conditions.result


class _Conditions:
    def __init__(self, conditions: tuple[Condition, ...], generation: int, now_seconds: float) -> None:
        self.result = conditions
        self._generation = generation
        self._now_seconds = now_seconds

    def set(self, kind: ConditionType, status: ConditionStatus, reason: Reason, message: str) -> None:
        self.result = set_condition(self.result, kind, status, reason, message, self._generation, self._now_seconds)

    def is_false(self, kind: ConditionType) -> bool:
        """Whether this condition stands, and is False."""
        return any(condition.type is kind and condition.status is FALSE for condition in self.result)

    def set_if_telling(self, kind: ConditionType, status: ConditionStatus, reason: Reason, message: str) -> None:
        """That all is well is only worth saying where it was not."""
        if status is not TRUE or any(condition.type is kind for condition in self.result):
            self.set(kind, status, reason, message)


def _judge_decided(report: Decided, conditions: _Conditions) -> None:
    target, outcome = report.workload.target, report.actuation
    found = f"{target.kind} {target.namespace}/{target.name}"
    conditions.set(ConditionType.TARGET_FOUND, TRUE, Reason.SUCCEEDED_GET_SCALE, found)
    conditions.set(ConditionType.METRICS_AVAILABLE, *_metrics(report.decision_input.metrics))
    conditions.set(ConditionType.ABLE_TO_SCALE, *_ability(report.scaler.spec.mode, outcome))
    conditions.set(ConditionType.SCALING_ACTIVE, *_activity(report.decision))
    conditions.set(ConditionType.SCALING_LIMITED, *_limit(report.decision))
    conditions.set_if_telling(ConditionType.SELECTOR_UNAMBIGUOUS, *judge_selector(report.workload))
    was_imbalanced = conditions.is_false(ConditionType.ROUTING_BALANCED)
    routing = judge_routing(report.decision_input.metrics, was_imbalanced)
    if routing is not None:
        conditions.set_if_telling(ConditionType.ROUTING_BALANCED, *routing)
    conditions.set_if_telling(ConditionType.BURSTS_SERVED, *judge_bursts(report.decision_input, report.bursts))
    spot = judge_spot(report.decision_input, report.decision)
    if spot is not None and spot[1] is not Reason.ON_SPOT_AGAIN:
        conditions.set(ConditionType.ON_SPOT_AGAIN, *spot)
    elif spot is not None:
        conditions.set_if_telling(ConditionType.ON_SPOT_AGAIN, *spot)
    floor = judge_floor(report.decision_input, report.decision)
    if floor is not None:
        conditions.set_if_telling(ConditionType.SPLIT_KEPT, *floor)
    for kind, judgement in judge_supply(report.decision_input):
        conditions.set_if_telling(kind, *judgement)
    if report.capacity is not None:
        conditions.set(ConditionType.CAPACITY_LEARNED, *judge_capacity(report.capacity))


def _nodes(outcome: CapacityOutcome | None) -> Judgement:
    """Whether replicas may expect nodes. A ceiling, or limits that are not in step yet, are no want of nodes."""
    if outcome is None or outcome.reason not in NO_NODES_REASONS:
        return TRUE, Reason.NODES_AVAILABLE, "nothing is known to keep nodes from coming"
    return FALSE, outcome.reason, outcome.message


def _metrics(metrics: MetricsObservation | ObservationUnavailable) -> Judgement:
    if isinstance(metrics, ObservationUnavailable):
        return FALSE, metrics.reason, metrics.message
    seen = f"{metrics.fresh_replicas} of {metrics.ready_replicas} ready replicas have fresh samples"
    message = "; ".join((seen, *metrics.warnings))
    # The share that the decision asks for too; a replica that has just become ready is not worth a condition.
    is_seen = metrics.coverage >= FULL_COVERAGE
    return (TRUE, Reason.VALID_METRIC_FOUND, message) if is_seen else (FALSE, Reason.LOW_COVERAGE, message)


def _ability(mode: Mode, outcome: ActuationOutcome) -> Judgement:
    """Able to scale: nobody else steers, and the last write (if there was one to make) went through."""
    if outcome.reason in {
        Reason.READY_FOR_NEW_SCALE,
        Reason.SUCCEEDED_RESCALE,
        Reason.DRAINING,
        Reason.ON_DEMAND_FLOOR,
        Reason.DRY_RUN,
        Reason.EXTERNAL_METRIC,
    }:
        if mode is Mode.DRY_RUN:
            return FALSE, Reason.DRY_RUN, "mode DryRun: decided, never written"
        return FALSE if outcome.reason is Reason.DRY_RUN else TRUE, outcome.reason, outcome.message
    return FALSE, outcome.reason, outcome.message


def _activity(decision: ScalingDecision) -> Judgement:
    """Active: the count follows from signals, and nothing of it is held because of what is not known."""
    if decision.reason is Reason.SCALING_DISABLED:
        return FALSE, decision.reason, decision.message
    if decision.next_history.blind_since_seconds is not None:
        held = next((step for step in decision.steps if step.reason in BLIND_REASONS), None)
        if held is not None:
            return FALSE, held.reason, held.message
        is_recovering = decision.next_history.consecutive_good_readings > 0
        return FALSE, Reason.RECOVERING if is_recovering else Reason.METRICS_UNAVAILABLE, decision.message
    if decision.binding is None:
        return FALSE, Reason.NO_VOTES, decision.message
    return TRUE, Reason.VALID_METRIC_FOUND, "votes are counted"


def _limit(decision: ScalingDecision) -> Judgement:
    limits = [step for step in decision.steps if step.reason in LIMITING_REASONS and step.before != step.after]
    if not limits:
        return FALSE, Reason.DESIRED_WITHIN_RANGE, "no limit binds"
    return TRUE, limits[-1].reason, limits[-1].message
