"""Which nodes may a simulated fleet have? Their shape, how long a launch takes, and the NodePools that make them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autoscaler.api.node_shape import NodeShape
from autoscaler.replay.cold_start import ColdStartPhase
from policies.capacity_split import CapacityType


@dataclass(frozen=True, slots=True)
class ListedLoss:
    """So many nodes are lost at this second of the trace, those that are there the longest."""

    at_seconds: float
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class NodeLosses:
    """How a NodePool loses nodes: so many times per node and hour, drawn by seed, and at the moments of a list."""

    per_node_hour: float = 0.0
    listed: tuple[ListedLoss, ...] = ()


@dataclass(frozen=True, slots=True)
class OutOfCapacity:
    """From this second of the trace on, for so long, the provider has no node to give."""

    at_seconds: float
    lasts_seconds: float


@dataclass(frozen=True, slots=True)
class NodePoolSetup:
    """One NodePool: `limits` in Karpenter's words, {} for none. Reclaims come with a notice, deaths with none."""

    name: str
    capacity_type: CapacityType
    weight: int = 0  # the NodePool with the larger one is asked first
    limits: Mapping[str, str] = field(default_factory=dict)
    initial_nodes: int = 0
    consolidate_after_seconds: float = 0.0  # an empty node is given back after it; infinite: never
    reclaims: NodeLosses = NodeLosses()
    deaths: NodeLosses = NodeLosses()
    out_of_capacity: tuple[OutOfCapacity, ...] = ()


@dataclass(frozen=True, slots=True)
class NodesSetup:
    """The nodes of a fleet. All have one shape; `launch` is how long a new one takes from the order until pods fit."""

    shape: NodeShape
    launch: ColdStartPhase
    node_pools: tuple[NodePoolSetup, ...]
    dollars_per_accelerator_hour: Mapping[CapacityType, float]

    def most_replicas(self, accelerators_per_replica: int, copies: int = 1) -> int | None:
        """The replicas that the limits, as they stand at the beginning, have room for; None: nothing limits them.

        With `copies` each node stands for so many, and so does each replica.
        """
        counts = [self.shape.whole_nodes(pool.limits) for pool in self.node_pools]
        limited = [count // copies for count in counts if count is not None]
        if len(limited) < len(counts):
            return None
        each = self.shape.accelerators
        if accelerators_per_replica > each:
            return sum(limited) // math.ceil(accelerators_per_replica / each) * copies
        return sum(limited) * (each // accelerators_per_replica) * copies

    def only(self, capacity_type: CapacityType) -> NodesSetup:
        """The nodes of one kind."""
        return replace(self, node_pools=tuple(each for each in self.node_pools if each.capacity_type is capacity_type))

    def without_trouble(self) -> NodesSetup:
        """One NodePool on demand without limits, losses and chance; empty nodes go as soon as any of these would."""
        soonest = min(pool.consolidate_after_seconds for pool in self.node_pools)
        pool = NodePoolSetup("any", CapacityType.ON_DEMAND, consolidate_after_seconds=soonest)
        return replace(self, node_pools=(pool,), launch=self.launch.at_its_mean())
