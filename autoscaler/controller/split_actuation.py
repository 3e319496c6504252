"""Writes the counts of two targets in such an order that the floor on demand holds in between."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.actuators.actuator import Actuated, ActuationFailed, ReplicaActuator
from autoscaler.observers.workload import TargetPart
from policies.capacity_split import CapacityType, ReplicaSplit
from policies.reasons import Reason
from policies.wording import joined


def write_split(
    parts: Sequence[TargetPart], split: ReplicaSplit | None, actuator: ReplicaActuator
) -> Actuated | ActuationFailed:
    """Writes what differs: on demand grows first and shrinks last. Where a write fails the others are not tried.

    Without a split nothing is written: its AcceleratorPool is not known, or not in force.
    """
    if split is None:
        message = "nothing is written: there is no AcceleratorPool that says how two targets share the replicas"
        return ActuationFailed(Reason.ACCELERATORS_UNKNOWN, message)
    wanted = {CapacityType.ON_DEMAND: split.on_demand, CapacityType.SPOT: split.spot}
    changes = [(part, wanted[part.capacity_type]) for part in parts if wanted[part.capacity_type] != part.counts.spec]
    if not changes:
        return Actuated(Reason.READY_FOR_NEW_SCALE, joined(["the counts are as wanted", split.message]))
    written: list[Actuated] = []
    for part, count in sorted(changes, key=_order):
        result = actuator.scale(part.target, part.counts.spec, count)
        if isinstance(result, ActuationFailed):
            message = joined([*(each.message for each in written), result.message])
            return ActuationFailed(result.reason, message, result.retry_after_seconds)
        written.append(result)
    # One that drains is told where nothing else was done.
    reason = next((each.reason for each in written if each.reason is not Reason.DRAINING), Reason.DRAINING)
    kept = sum(each.kept_replicas for each in written)
    emptied = sum(each.emptied_nodes for each in written)
    return Actuated(reason, joined([*(each.message for each in written), split.message]), kept, emptied)


def _order(change: tuple[TargetPart, int]) -> tuple[bool, bool]:
    """What grows before what shrinks; of what grows on demand first, of what shrinks spot first."""
    part, count = change
    is_on_demand, shrinks = part.capacity_type is CapacityType.ON_DEMAND, count < part.counts.spec
    return shrinks, is_on_demand == shrinks
