"""What did the nodes of a run come to? Whole nodes while they existed, in hours and dollars by capacity type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.replay.simulated_nodes import LimitsChange, SimulatedNodes
from policies.capacity_split import CapacityType


@dataclass(frozen=True, slots=True)
class NodeUse:
    """What was paid for of one capacity type: from the order of each node until it had gone."""

    node_hours: float
    accelerator_hours: float
    cost_dollars: float


@dataclass(frozen=True, slots=True)
class NodeResult:
    """The nodes of a run up to its end. `spot_reclaims` are notices; `refused_launches` were for want of capacity."""

    by_capacity_type: Mapping[CapacityType, NodeUse]
    launched_nodes: int
    max_nodes: int
    spot_reclaims: int
    node_deaths: int
    refused_launches: int
    limit_changes: tuple[LimitsChange, ...]

    @property
    def node_hours(self) -> float:
        """Of all capacity types."""
        return sum(use.node_hours for use in self.by_capacity_type.values())

    @property
    def accelerator_hours(self) -> float:
        """Of all capacity types: the accelerators that no replica used are paid for too."""
        return sum(use.accelerator_hours for use in self.by_capacity_type.values())

    @property
    def cost_dollars(self) -> float:
        """Of all capacity types."""
        return sum(use.cost_dollars for use in self.by_capacity_type.values())


def node_result(nodes: SimulatedNodes, now_seconds: float) -> NodeResult:
    """What has been paid for, and has happened, up to `now_seconds`."""
    pools = nodes.pools.values()
    seconds: dict[CapacityType, float] = {}
    for pool in pools:
        kind = pool.setup.capacity_type
        seconds[kind] = seconds.get(kind, 0.0) + pool.node_seconds(now_seconds)
    each = nodes.copies
    return NodeResult(
        by_capacity_type={kind: _use(nodes, kind, spent) for kind, spent in sorted(seconds.items())},
        launched_nodes=sum(pool.launched for pool in pools) * each,
        max_nodes=nodes.most_nodes,
        spot_reclaims=sum(pool.reclaimed for pool in pools) * each,
        node_deaths=sum(pool.died for pool in pools) * each,
        refused_launches=sum(pool.refused_launches for pool in pools) * each,
        limit_changes=tuple(nodes.limit_changes),
    )


def _use(nodes: SimulatedNodes, kind: CapacityType, node_seconds: float) -> NodeUse:
    node_hours = node_seconds / 3600.0
    accelerator_hours = node_hours * nodes.setup.shape.accelerators
    return NodeUse(node_hours, accelerator_hours, accelerator_hours * nodes.setup.dollars_per_accelerator_hour[kind])
