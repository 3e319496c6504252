"""Between which counts may the pool be now?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.reasons import Reason
from policies.recommenders.schedule import open_windows, raising_windows

if TYPE_CHECKING:
    from policies.parameters import ScalingParameters
    from policies.situation import Situation


@dataclass(frozen=True, slots=True)
class ReplicaBounds:
    """The least and the most replicas at one moment, and the words for where each comes from."""

    minimum: int
    maximum: int
    minimum_from: str = "minReplicas"
    maximum_from: str = "maxReplicas"


def bounds_at(parameters: ScalingParameters, now_seconds: float, lead_seconds: float) -> ReplicaBounds:
    """The policy's bounds, narrowed by the schedule windows that are open; minima also by those that open soon.

    Of windows that contradict each other the minimum wins: a promise of capacity before a saving.
    """
    minimum, minimum_from = parameters.min_replicas, "minReplicas"
    maximum, maximum_from = parameters.max_replicas, "maxReplicas"
    for window in raising_windows(parameters.schedules, now_seconds, lead_seconds):
        if window.min_replicas is not None and window.min_replicas > minimum:
            minimum, minimum_from = window.min_replicas, f"schedule {window.name}"
    for window in open_windows(parameters.schedules, now_seconds):
        if window.max_replicas is not None and window.max_replicas < maximum:
            maximum, maximum_from = window.max_replicas, f"schedule {window.name}"
    if minimum > maximum:
        maximum, maximum_from = minimum, minimum_from
    return ReplicaBounds(minimum, maximum, minimum_from, maximum_from)


def limit_to_bounds(situation: Situation, replicas: int) -> Limited:
    """The count, raised to the minimum or cut to the maximum."""
    bounds = situation.bounds
    wanted = "stands at" if replicas == situation.current_replicas else "wanted"
    if replicas > bounds.maximum:
        message = f"{wanted} {replicas}, capped at {bounds.maximum} by {bounds.maximum_from}"
        return Limited(bounds.maximum, Reason.TOO_MANY_REPLICAS, message)
    if replicas < bounds.minimum:
        message = f"{wanted} {replicas}, raised to {bounds.minimum} by {bounds.minimum_from}"
        return Limited(bounds.minimum, Reason.TOO_FEW_REPLICAS, message)
    return Limited(replicas, Reason.DESIRED_WITHIN_RANGE, f"between {bounds.minimum} and {bounds.maximum}")
