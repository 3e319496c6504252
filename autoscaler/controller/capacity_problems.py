"""What keeps the limits of NodePools from doing their work, in words?"""

from __future__ import annotations

from autoscaler.api.node_shape import NodeShape
from autoscaler.observers.node_pools import NodePoolSeen
from policies.accelerator_sharing import AcceleratorDemand
from policies.node_packing import NodeRoom
from policies.reasons import Reason


def shape_problem(seen: NodePoolSeen, shape: NodeShape) -> tuple[Reason, str] | None:
    """That a limit cannot be reckoned in nodes, or that real nodes are not as the AcceleratorPool says."""
    unknown = shape.unknown_keys(seen.limits)
    if unknown:
        message = (
            f"NodePool {seen.name} limits {', '.join(unknown)}, and nodeShape does not say what a node takes of it"
        )
        return Reason.NODE_SHAPE_CONTRADICTED, message
    contradictions = {text for capacity in seen.capacities for text in shape.contradictions(capacity)}
    if contradictions:
        message = f"NodePool {seen.name}: {'; '.join(sorted(contradictions))}; limits are set for what nodes bring"
        return Reason.NODE_SHAPE_CONTRADICTED, message
    return None


def fit_problem(demand: AcceleratorDemand, room: NodeRoom) -> tuple[Reason, str] | None:
    """That a replica fits on no node of the pool, so that the limits are none of its troubles."""
    is_wanted = demand.wanted_replicas or demand.current_replicas
    if not is_wanted or room.replicas_of(demand) or demand.accelerators_per_replica > room.accelerators:
        return None
    asked, left = [], []
    if room.cpu_millis is not None and demand.cpu_millis > room.cpu_millis:
        asked.append(f"{demand.cpu_millis / 1000:g} CPUs")
        left.append(f"{room.cpu_millis / 1000:g}")
    if room.memory_bytes is not None and demand.memory_bytes > room.memory_bytes:
        asked.append(f"{demand.memory_bytes / 2**30:.1f} GiB of memory")
        left.append(f"{room.memory_bytes / 2**30:.1f} GiB")
    message = (
        f"a replica of {demand.scaler} fits on no node: it asks for {' and '.join(asked)}, and beside the system and "
        f"DaemonSets a node leaves {' and '.join(left)}"
    )
    return Reason.REPLICA_FITS_NO_NODE, message


def readiness_problem(seen: NodePoolSeen) -> tuple[Reason, str] | None:
    """Why a NodePool makes no nodes, whatever its limits are."""
    if seen.makes_nodes:
        return None
    if seen.launch_problem is not None:
        return seen.launch_problem.reason, f"NodePool {seen.name} makes no nodes: {seen.launch_problem.message}"
    return Reason.NODE_POOL_NOT_READY, f"NodePool {seen.name} makes no nodes: {seen.problem}"
