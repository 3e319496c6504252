"""What do conditions say of a pool's replicas: do all of them work, and start in the time that is counted on?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from autoscaler.api.conditions import ConditionStatus, ConditionType
from autoscaler.observers.workload import Workload
from forecasting.forecast import Forecast
from policies.bursts import BurstMemory
from policies.capacity_split import CapacityType
from policies.cold_start import ColdStart
from policies.decision import MOVE_STEP, DecisionStep, ScalingDecision
from policies.decision_input import DecisionInput
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.reasons import Reason
from policies.recommenders.recurring_bursts import recommend_recurring_bursts
from policies.signals import Signal
from policies.standing_for_bursts import standing_capacity
from policies.wording import counted, duration

NAMED_REPLICAS = 10
# A replica without room beside replicas that are half empty: the router's doing, and no reason for more replicas.
FULL_KV_CACHE, HALF_EMPTY_KV_CACHE = 0.95, 0.60
# It is over when no replica is nearly full: usage goes up and down within seconds.
RELIEVED_KV_CACHE = 0.85

Judgement: TypeAlias = tuple[ConditionStatus, Reason, str]


def judge_supply(decision_input: DecisionInput) -> Iterator[tuple[ConditionType, Judgement]]:
    """A judgement for each condition that can be judged; without any start seen there is none of cold starts."""
    yield ConditionType.REPLICAS_WORK, _replicas(decision_input.replicas, decision_input.metrics)
    if decision_input.cold_start.is_measured:
        prior_seconds = decision_input.parameters.cold_start.prior_seconds
        yield ConditionType.COLD_STARTS_IN_TIME, _cold_starts(decision_input.cold_start, prior_seconds)
    if isinstance(decision_input.forecast, Forecast):
        yield ConditionType.FORECAST_REACHES, _reach(decision_input, decision_input.forecast)


def judge_selector(workload: Workload) -> Judgement:
    """Whether all pods that the target's selector matches are its own; by their owners the others are left out."""
    if not workload.foreign_pods:
        return ConditionStatus.TRUE, Reason.SELECTOR_UNAMBIGUOUS, "every pod that it matches is the target's own"
    pods = counted(workload.foreign_pods, "pod")
    target = f"{workload.target.kind} {workload.target.name}"
    message = f"the selector of {target} also matches {pods} of others, which are not counted here"
    return ConditionStatus.FALSE, Reason.AMBIGUOUS_SELECTOR, message


def _replicas(counts: ReplicaCounts, metrics: MetricsObservation | ObservationUnavailable) -> Judgement:
    if counts.stuck == 0 and counts.leaving == 0:
        return ConditionStatus.TRUE, Reason.REPLICAS_WORK, "no replica is stuck"
    parts = []
    if counts.leaving:
        serving = f"{counts.leaving_ready} still {'serves' if counts.leaving_ready == 1 else 'serve'}"
        gone = f"{counts.leaving} of {counted(counts.spec, 'replica')}"
        parts.append(f"{gone} on a node that is noticed, being deleted, gone or not Ready: {serving}")
    if counts.stuck > counts.wedged:
        late = f"{counts.stuck - counts.wedged} of {counted(counts.spec, 'replica')}"
        parts.append(f"{late} not ready in time, or without a node")
    if counts.wedged and isinstance(metrics, MetricsObservation):
        names = ", ".join(metrics.wedged_replicas[:NAMED_REPLICAS])
        more = ", ..." if counts.wedged > NAMED_REPLICAS else ""
        parts.append(f"{counts.wedged} wedged, with requests and no progress while others go on: {names}{more}")
    if counts.stuck == 0:
        return ConditionStatus.FALSE, Reason.LEAVING_REPLICAS, "; ".join(parts)
    reason = Reason.WEDGED_REPLICAS if counts.wedged else Reason.STUCK_REPLICAS
    return ConditionStatus.FALSE, reason, "; ".join(parts)


def judge_spot(decision_input: DecisionInput, decision: ScalingDecision) -> Judgement | None:
    """Whether what could be on spot is there, or on its way; None where that is open.

    It is while something else has not been still for long enough, while spot cannot be had, and until whoever leads
    has looked at nodes after a try that came to nothing.
    """
    step = _move_step(decision)
    if step is not None and step.reason is Reason.RETURN_REFUSED:
        return ConditionStatus.FALSE, step.reason, step.message
    if step is not None and step.reason is Reason.RETURNING_TO_SPOT:
        return ConditionStatus.TRUE, step.reason, step.message
    offer = decision_input.node_move
    if offer is not None and (offer.nodes_beyond_floor or not offer.can_buy):
        return None
    if decision.next_history.node_move is not None:
        return None
    return ConditionStatus.TRUE, Reason.ON_SPOT_AGAIN, "nothing is on demand that could be on spot"


def judge_floor(decision_input: DecisionInput, decision: ScalingDecision) -> Judgement | None:
    """Whether the nodes behind the replicas keep the floor on demand; None where that is open.

    It is open while it is broken and something else goes on: nodes that are bought or emptied may mend it.
    """
    step = _move_step(decision)
    if step is not None and step.reason in (Reason.RESTORING_FLOOR, Reason.FLOOR_NOT_RESTORED):
        return ConditionStatus.FALSE, step.reason, step.message
    offer, memory = decision_input.node_move, decision.next_history.node_move
    if offer is not None and offer.to is CapacityType.ON_DEMAND and (offer.nodes_beyond_floor or not offer.can_buy):
        return None
    if memory is not None and memory.to is CapacityType.ON_DEMAND:
        return None
    return ConditionStatus.TRUE, Reason.SPLIT_KEPT, "no replica is on spot that the floor wants on demand"


def _move_step(decision: ScalingDecision) -> DecisionStep | None:
    return next((step for step in decision.steps if step.name == MOVE_STEP), None)


def judge_bursts(decision_input: DecisionInput, bursts: BurstMemory) -> Judgement:
    """Whether the pool's bursts last long enough for new replicas, or enough stand ready; else what would do."""
    standing = standing_capacity(bursts, decision_input.now_seconds)
    if standing is None:
        return ConditionStatus.TRUE, Reason.BURSTS_SERVED, "no bursts that are too short for new replicas"
    seen = (
        f"{standing.bursts} bursts in a day lasted up to {duration(standing.longest_seconds)}, and a replica takes "
        f"{duration(decision_input.cold_start.l50_seconds)} to start"
    )
    expected = next(iter(recommend_recurring_bursts(decision_input)), None)
    maximum = decision_input.parameters.max_replicas
    if expected is not None and expected.rounded_up <= maximum:
        message = f"{seen}: {expected.rounded_up} replicas stand ready while they come again and again"
        return ConditionStatus.TRUE, Reason.BURSTS_SERVED, message
    message = (
        f"{seen}: {standing.replicas} standing replicas would serve them (minReplicas or a schedule), "
        f"{standing.extra_replicas} more for {standing.replica_hours_per_day} replica-hours a day"
    )
    return ConditionStatus.FALSE, Reason.BURSTS_TOO_SHORT, message


def judge_routing(metrics: MetricsObservation | ObservationUnavailable, was_imbalanced: bool) -> Judgement | None:
    """Whether the load is spread over the replicas; None where the KV caches of fewer than two are known."""
    usage = metrics.signals.get(Signal.KV_CACHE_USAGE) if isinstance(metrics, MetricsObservation) else None
    if usage is None or usage.known_replicas < 2:
        return None
    seen = f"the fullest KV cache is at {usage.maximum:.0%}, the mean of {usage.known_replicas} at {usage.mean:.0%}"
    limit = RELIEVED_KV_CACHE if was_imbalanced else FULL_KV_CACHE
    if usage.maximum > limit and usage.mean < HALF_EMPTY_KV_CACHE:
        message = f"{seen}: the router does not spread the load, and more replicas would not help"
        return ConditionStatus.FALSE, Reason.ROUTING_IMBALANCED, message
    return ConditionStatus.TRUE, Reason.ROUTING_BALANCED, seen


def _cold_starts(cold_start: ColdStart, prior_seconds: float) -> Judgement:
    seen = f"19 of 20 starts take up to {duration(cold_start.l95_seconds)} ({_phases(cold_start)})"
    if cold_start.l95_seconds <= prior_seconds:
        return ConditionStatus.TRUE, Reason.STARTS_IN_TIME, seen
    message = f"{seen}; coldStart.priorSeconds says {duration(prior_seconds)}"
    return ConditionStatus.FALSE, Reason.STARTS_SLOWLY, message


def _reach(decision_input: DecisionInput, forecast: Forecast) -> Judgement:
    """Up to a bin of the reach has passed by the time that the next forecast comes."""
    parameters = decision_input.parameters.forecast
    needed = decision_input.cold_start.l95_seconds + (parameters.buffer_seconds if parameters else 0)
    reach = float(forecast.reach_seconds - forecast.bin_seconds)
    said = f"19 of 20 starts and the buffer take up to {duration(needed)}, the forecast reaches {duration(reach)} ahead"
    if needed <= reach:
        return ConditionStatus.TRUE, Reason.HORIZON_LONG_ENOUGH, said
    return ConditionStatus.FALSE, Reason.HORIZON_TOO_SHORT, f"{said}: slow starts come too late for what it shows"


def _phases(cold_start: ColdStart) -> str:
    """The medians of the phases that could be told apart, and how many starts were seen."""
    medians = (
        ("node", cold_start.node_seconds),
        ("image", cold_start.image_seconds),
        ("load", cold_start.load_seconds),
    )
    known = [f"{name} {duration(seconds)}" for name, seconds in medians if seconds is not None]
    return ", ".join([*known, f"{cold_start.starts} seen"])
