"""What does a HorizontalPodAutoscaler do in one sync? Kubernetes 1.37, as far as External and Object metrics go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.constraints.behavior import ScalingBehavior
from policies.constraints.stabilization import stabilize
from policies.history import ScaleEvent, TimedRecommendation, store_event
from policies.hpa.memory import store_recommendation
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import FailedMetric, Metric, PodCounts, can_see_at_zero, propose
from policies.hpa.normalize import (
    LimitedReplicas,
    limit_with_behavior,
    limit_without_behavior,
    stabilize_without_behavior,
)
from policies.reasons import Reason

ABOVE_MAXIMUM = "Current number of replicas above Spec.MaxReplicas"
BELOW_MINIMUM = "Current number of replicas below Spec.MinReplicas"
ALL_BELOW_TARGET = "All metrics below target"
ABOVE_TARGET = "metric above target"


@dataclass(frozen=True, slots=True)
class HPAMemory:
    """What the controller keeps of one HPA. `recommendations` is None for a process that has just started."""

    recommendations: tuple[TimedRecommendation, ...] | None = None
    scale_up_events: tuple[ScaleEvent, ...] = ()
    scale_down_events: tuple[ScaleEvent, ...] = ()
    is_scaled_to_zero: bool = False

    @property
    def events(self) -> tuple[ScaleEvent, ...]:
        """All rescales; shrinking is negative in both lists."""
        return (*self.scale_up_events, *self.scale_down_events)


@dataclass(frozen=True, slots=True)
class HPASpec:
    """One HPA. With `behavior` its own windows and policies rule, without it the controller's window and no policies.

    `tolerance` is the one that counts, whether the controller's or the one in `behavior`.
    """

    minimum: int
    maximum: int
    metrics: tuple[Metric, ...]
    tolerance: Tolerance
    behavior: ScalingBehavior | None = None
    scale_down_window_seconds: float = 300.0
    may_scale_to_zero: bool = True  # the feature gate HPAScaleToZero


@dataclass(frozen=True, slots=True)
class HPAOutcome:
    """What one sync wrote and said; conditions are "Status/Reason" by type."""

    replicas: int
    is_rescaled: bool
    conditions: Mapping[str, str]
    rescale_reason: str
    memory: HPAMemory


@dataclass(frozen=True, slots=True)
class _Result:
    replicas: int
    conditions: dict[str, str]
    recommendations: tuple[TimedRecommendation, ...]
    rescale_reason: str = ""  # of a count that is another than the present one


def reconcile(spec: HPASpec, pods: PodCounts, memory: HPAMemory, now_seconds: float) -> HPAOutcome:
    """One sync of one HPA: what it writes, its conditions, and what it remembers."""
    current = pods.spec
    recommendations = memory.recommendations
    if recommendations is None:
        recommendations = (TimedRecommendation(now_seconds, current),)
    if _is_paused(spec, current, memory):
        result = _Result(current, {"ScalingActive": "False/ScalingDisabled"}, recommendations)
    elif current > spec.maximum:
        result = _Result(spec.maximum, {}, recommendations, ABOVE_MAXIMUM)
    elif current < spec.minimum and current > 0:
        result = _Result(spec.minimum, {}, recommendations, BELOW_MINIMUM)
    else:
        result = _from_metrics(spec, pods, recommendations, memory, now_seconds)
    conditions = {"AbleToScale": "True/SucceededGetScale", **result.conditions}
    after = HPAMemory(
        result.recommendations, memory.scale_up_events, memory.scale_down_events, memory.is_scaled_to_zero
    )
    if result.replicas == current:
        return HPAOutcome(current, False, conditions, "", after)
    is_at_zero = result.replicas == 0 and any(can_see_at_zero(metric) for metric in spec.metrics)
    conditions["AbleToScale"] = "True/SucceededRescale"
    if spec.may_scale_to_zero:
        conditions["ScaledToZero"] = "True/ScaledToZero" if is_at_zero else "False/NotScaledToZero"
    return HPAOutcome(
        result.replicas,
        True,
        conditions,
        result.rescale_reason,
        _after_rescale(after, spec.behavior, result.replicas - current, is_at_zero, now_seconds),
    )


def _is_paused(spec: HPASpec, current: int, memory: HPAMemory) -> bool:
    """Zero replicas mean "switched off" unless the HPA itself went there and can come back."""
    if current != 0:
        return False
    can_return = spec.minimum > 0 or any(can_see_at_zero(metric) for metric in spec.metrics)
    return not (spec.may_scale_to_zero and memory.is_scaled_to_zero and can_return)


def _from_metrics(
    spec: HPASpec,
    pods: PodCounts,
    recommendations: tuple[TimedRecommendation, ...],
    memory: HPAMemory,
    now_seconds: float,
) -> _Result:
    proposals = [propose(metric, pods, spec.tolerance) for metric in spec.metrics]
    failures = [proposal for proposal in proposals if isinstance(proposal, FailedMetric)]
    counts = [proposal.replicas for proposal in proposals if not isinstance(proposal, FailedMetric)]
    # A metric that fails might have asked for more: without it the pool may grow but not shrink.
    largest = _largest(counts)
    if failures and (not counts or largest < pods.spec):
        return _Result(pods.spec, {"ScalingActive": f"False/{failures[0].reason}"}, recommendations)
    proposed = max(0, largest) if counts else pods.spec
    stabilized, limited, recommendations = _normalize(spec, pods.spec, proposed, recommendations, memory, now_seconds)
    replicas = max(limited.replicas, spec.minimum)  # from zero the policies may allow less at first
    is_limited = limited.reason is not Reason.DESIRED_WITHIN_RANGE
    return _Result(
        replicas,
        {
            "ScalingActive": "True/ValidMetricFound",
            "AbleToScale": f"True/{_stabilization_reason(pods.spec, proposed, stabilized, spec.behavior)}",
            "ScalingLimited": f"{is_limited}/{limited.reason}",
        },
        recommendations,
        _rescale_reason(pods.spec, proposed, is_raised_to_minimum=limited.replicas < spec.minimum),
    )


def _largest(counts: Sequence[int]) -> int:
    """As the controller finds it: what follows a zero counts, also where it is negative."""
    largest = 0
    for count in counts:
        if largest == 0 or count > largest:
            largest = count
    return largest


def _rescale_reason(current: int, proposed: int, *, is_raised_to_minimum: bool) -> str:
    """By what the metrics ask for; so a peak in the window may raise a count of which all metrics are below target."""
    if proposed > current:
        return ABOVE_TARGET
    if proposed < current:
        return ALL_BELOW_TARGET
    return BELOW_MINIMUM if is_raised_to_minimum else ""


def _normalize(
    spec: HPASpec,
    current: int,
    proposed: int,
    recommendations: tuple[TimedRecommendation, ...],
    memory: HPAMemory,
    now_seconds: float,
) -> tuple[int, LimitedReplicas, tuple[TimedRecommendation, ...]]:
    if spec.behavior is None:
        down_window = spec.scale_down_window_seconds
        stabilized = stabilize_without_behavior(proposed, recommendations, now_seconds, down_window)
        limited = limit_without_behavior(current, stabilized, spec.minimum, spec.maximum)
        return stabilized, limited, store_recommendation(recommendations, proposed, now_seconds, down_window)
    up_window = float(spec.behavior.scale_up.stabilization_window_seconds)
    down_window = float(spec.behavior.scale_down.stabilization_window_seconds)
    stabilized = stabilize(current, proposed, recommendations, now_seconds, up_window, down_window)
    limited = limit_with_behavior(
        current, stabilized, spec.minimum, spec.maximum, spec.behavior, memory.events, now_seconds
    )
    kept_seconds = max(up_window, down_window)
    return stabilized, limited, store_recommendation(recommendations, proposed, now_seconds, kept_seconds)


def _stabilization_reason(current: int, proposed: int, stabilized: int, behavior: ScalingBehavior | None) -> Reason:
    if stabilized == proposed:
        return Reason.READY_FOR_NEW_SCALE
    if behavior is not None and proposed >= current:
        return Reason.SCALE_UP_STABILIZED
    return Reason.SCALE_DOWN_STABILIZED


def _after_rescale(
    memory: HPAMemory, behavior: ScalingBehavior | None, change: int, is_at_zero: bool, now_seconds: float
) -> HPAMemory:
    up, down = memory.scale_up_events, memory.scale_down_events
    if behavior is not None and change > 0:
        up = store_event(up, change, now_seconds, behavior.scale_up.policies)
    elif behavior is not None:
        down = store_event(down, change, now_seconds, behavior.scale_down.policies)
    return HPAMemory(memory.recommendations, up, down, is_at_zero)
