"""What does the HorizontalPodAutoscaler make of a proposal? Stabilization, then rate limits and bounds at once.

The two paths of `horizontal.go`: with `spec.behavior` (the rules that our own limits use as well) and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.constraints.behavior import ScalingBehavior
from policies.constraints.rate_limit import scale_down_limit, scale_up_limit
from policies.history import ScaleEvent, TimedRecommendation
from policies.reasons import Reason

# Without `behavior` a pool may double at each sync, and always grow to four.
SCALE_UP_LIMIT_FACTOR = 2.0
SCALE_UP_LIMIT_MINIMUM = 4.0


@dataclass(frozen=True, slots=True)
class LimitedReplicas:
    """The count, and the reason of HPA's condition ScalingLimited."""

    replicas: int
    reason: Reason


def limit_with_behavior(
    current: int,
    desired: int,
    minimum: int,
    maximum: int,
    behavior: ScalingBehavior,
    events: Sequence[ScaleEvent],
    now_seconds: float,
) -> LimitedReplicas:
    """The count within the policies and the bounds of its direction; an unchanged count stays as it is."""
    if desired > current:
        ceiling = max(current, scale_up_limit(current, behavior.scale_up, tuple(events), now_seconds))
        reason = Reason.SCALE_UP_LIMIT if maximum > ceiling else Reason.TOO_MANY_REPLICAS
        limit = min(maximum, ceiling)
        return LimitedReplicas(limit, reason) if desired > limit else _within_range(desired)
    if desired < current:
        floor = min(current, scale_down_limit(current, behavior.scale_down, tuple(events), now_seconds))
        reason = Reason.SCALE_DOWN_LIMIT if minimum < floor else Reason.TOO_FEW_REPLICAS
        limit = max(minimum, floor)
        return LimitedReplicas(limit, reason) if desired < limit else _within_range(desired)
    return _within_range(desired)


def stabilize_without_behavior(
    proposed: int, recommendations: Iterable[TimedRecommendation], now_seconds: float, window_seconds: float
) -> int:
    """The highest recommendation of the window (its end belongs to it), even one above the present count."""
    recent = (entry.replicas for entry in recommendations if now_seconds - entry.at_seconds <= window_seconds)
    return max([proposed, *recent])


def limit_without_behavior(
    current: int,
    desired: int,
    minimum: int,
    maximum: int,
    factor: float = SCALE_UP_LIMIT_FACTOR,
    least_ceiling: float = SCALE_UP_LIMIT_MINIMUM,
) -> LimitedReplicas:
    """The count within the bounds and the growth that one sync may bring; shrinking has no rate."""
    ceiling = int(max(factor * float(current), least_ceiling))
    limit = min(maximum, ceiling)
    if desired < minimum:
        return LimitedReplicas(minimum, Reason.TOO_FEW_REPLICAS)
    if desired > limit:
        return LimitedReplicas(limit, Reason.SCALE_UP_LIMIT if maximum > ceiling else Reason.TOO_MANY_REPLICAS)
    return _within_range(desired)


def _within_range(replicas: int) -> LimitedReplicas:
    return LimitedReplicas(replicas, Reason.DESIRED_WITHIN_RANGE)
