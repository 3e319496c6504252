"""An AcceleratorPool in mode Manage as a plan needs it: what its spec says, and what its real nodes make of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from autoscaler.actuators.node_holder import HeldPool
from autoscaler.api.accelerator_pool import AcceleratorPool, NodePools
from autoscaler.api.node_shape import NodeShape, accelerators_of
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests, millis, whole
from autoscaler.api.prewarm import Prewarm
from autoscaler.controller.capacity_splits import SplitGround
from autoscaler.observers.node_pools import NodePoolSeen
from policies.capacity_split import CapacityType
from policies.dollar_sharing import NodeCost
from policies.node_capacity import NodeCapacityParameters, NodePoolState
from policies.node_packing import NodeRoom
from policies.victims import NodesOfSplit


@dataclass(frozen=True, slots=True)
class ManagedPool:
    """An AcceleratorPool in mode Manage, as far as a plan needs it."""

    name: str
    uid: str
    parameters: NodeCapacityParameters
    shape: NodeShape
    node_pools: NodePools
    prices: NodeCost | None = None  # None: nobody has said what a node costs
    prewarm: Prewarm | None = None  # None: no node is held ready but by replicas
    stated: NodeShape | None = None  # what the spec says of a node, where real ones are otherwise
    has_split: bool = False  # between nodes on demand and on spot

    @property
    def has_ceiling(self) -> bool:
        """Whether its scalers share what there is."""
        return self.parameters.ceiling_nodes is not None or self.parameters.dollar_ceiling is not None

    def held(self, node_pools: Mapping[str, NodePoolSeen]) -> HeldPool | None:
        """What is to be known to hold nodes ready; None where nobody wants that."""
        if self.prewarm is None:
            return None
        seen = node_pools.get(self.node_pools.on_demand)
        return HeldPool(
            name=self.name,
            uid=self.uid,
            prewarm=self.prewarm,
            node_pool=self.node_pools.on_demand,
            room=self.parameters.node_room,
            taints=() if seen is None else seen.taints,
        )


def managed(pool: AcceleratorPool) -> ManagedPool | None:
    """The pool as a plan needs it; None where nothing of it is managed."""
    spec, parameters = pool.spec, pool.spec.capacity_parameters()
    if parameters is None or spec.node_shape is None:
        return None
    return ManagedPool(
        pool.name,
        pool.uid,
        parameters,
        spec.node_shape.shape,
        spec.node_pools,
        _prices(pool),
        spec.held_ready,
        has_split=spec.split is not None,
    )


def _prices(pool: AcceleratorPool) -> NodeCost | None:
    prices = pool.spec.node_dollars_per_hour
    return None if prices is None else prices.node_cost


def as_seen(pool: ManagedPool, node_pools: Mapping[str, NodePoolSeen]) -> ManagedPool:
    """The pool with nodes as the real ones are, where these contradict its spec (a condition names both).

    Where they differ among themselves, limits are for the largest and replicas are packed as on the smallest.
    """
    seen = [node_pools[name] for name in pool.node_pools.names if name in node_pools]
    shape = pool.shape.as_real(capacity for each in seen for capacity in each.capacities)
    before, room = pool.parameters, _room(pool.shape, seen)
    accelerators = None if before.ceiling_nodes is None else before.ceiling_nodes * before.accelerators_per_node
    parameters = replace(
        before,
        accelerators_per_node=_fewest_accelerators(pool.shape, seen),
        ceiling_nodes=None if accelerators is None else accelerators // shape.accelerators,
        room=room,
    )
    stated = None if shape.resources == pool.shape.resources else pool.shape
    return replace(pool, parameters=parameters, shape=shape, stated=stated)


def _fewest_accelerators(stated: NodeShape, seen: Sequence[NodePoolSeen]) -> int:
    real = [count for each in seen for count in map(accelerators_of, each.capacities) if count]
    return min(real, default=stated.accelerators)


def _room(stated: NodeShape, seen: Sequence[NodePoolSeen]) -> NodeRoom:
    """What replicas may have of a new node beside DaemonSets: of the smallest that was seen, else of the stated one."""
    daemons = reduce(PodRequests.at_least, (each.daemons for each in seen), NO_REQUESTS)
    allocatables = [allocatable for each in seen for allocatable in each.allocatables] or [stated.resources]

    def left(key: str, number: Callable[[str], int], taken: int) -> int | None:
        known = [number(each[key]) for each in allocatables if key in each]
        return min(known) - taken if known else None

    return NodeRoom(
        accelerators=max(0, _fewest_accelerators(stated, seen) - daemons.accelerators),
        cpu_millis=left("cpu", millis, daemons.cpu_millis),
        memory_bytes=left("memory", whole, daemons.memory_bytes),
    )


def split_ground(pool: AcceleratorPool, node_pools: Mapping[str, NodePoolSeen]) -> SplitGround:
    """Where there is no Karpenter (or its NodePools may not be read), spot is taken to be on sale."""
    spec = pool.spec
    spot = None if spec.node_pools.spot is None else node_pools.get(spec.node_pools.spot)
    seen = [node_pools[name] for name in spec.node_pools.names if name in node_pools]
    return SplitGround(
        on_demand_floor_percent=spec.on_demand_floor_percent,
        room=None if spec.node_shape is None else _room(spec.node_shape.shape, seen),
        can_buy_spot=not node_pools if spot is None else spot.makes_nodes,
        spot_nodes=0 if spot is None else spot.nodes_in_use,
    )


def nodes_of_split(pool: AcceleratorPool, node_pools: Mapping[str, NodePoolSeen]) -> NodesOfSplit | None:
    """None without a split, and where its NodePools have not been seen."""
    split = pool.spec.split
    return None if split is None else split_in_use(split.floor_percent, states(pool.spec.node_pools, node_pools))


def split_in_use(floor_percent: int, seen: Iterable[NodePoolState]) -> NodesOfSplit | None:
    """The nodes of a pool's two NodePools that are in use, under a floor on demand; None where one was not seen."""
    in_use = {state.capacity_type: state.nodes_in_use for state in seen}
    if len(in_use) < len(CapacityType):
        return None
    return NodesOfSplit(floor_percent, in_use[CapacityType.ON_DEMAND], in_use[CapacityType.SPOT])


def states(named: NodePools, node_pools: Mapping[str, NodePoolSeen]) -> list[NodePoolState]:
    """The NodePools that are there, on demand first."""
    kinds = {named.on_demand: CapacityType.ON_DEMAND, named.spot: CapacityType.SPOT}
    return [
        NodePoolState(name, kind, seen.nodes_in_use, seen.makes_nodes, seen.nodes_deleting)
        for name, kind in kinds.items()
        if name is not None and (seen := node_pools.get(name)) is not None
    ]
