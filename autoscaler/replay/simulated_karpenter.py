"""How does the controller see the NodePools of a simulated fleet, and write their limits? Through its own ports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.prewarming import Prewarmer
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.replica_places import PlaceSource
from autoscaler.replay.simulated_holders import SimulatedBuffers, SimulatedPlaceholders
from autoscaler.replay.simulated_nodes import SimulatedNodes
from policies.reasons import Reason

# Who has written the limits last, as the API server would name the controller.
OWN_MANAGER = "tokenscaler"


class SimulatedKarpenter:
    """A NodePoolSource and a NodePoolLimits over simulated nodes."""

    def __init__(self, nodes: SimulatedNodes) -> None:
        self._nodes = nodes

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        """The NodePools as they are at the time the fleet was advanced to."""
        shape = self._nodes.setup.shape
        return {
            name: NodePoolSeen(
                name=name,
                limits=pool.limits,
                nodes_in_use=pool.nodes_in_use,
                limit_managers=(OWN_MANAGER,),
                capacities=(shape.resources,) if pool.nodes else (),
                nodes_deleting=pool.existing_nodes - pool.nodes_in_use,
                launches=pool.launches,
            )
            for name, pool in self._nodes.pools.items()
        }

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated | ActuationFailed:
        """Writes the limits, unless they are others than those that were seen."""
        pool = self._nodes.pools.get(name)
        if pool is None:
            return ActuationFailed(Reason.NODE_POOL_NOT_FOUND, f"there is no NodePool {name}")
        if dict(pool.limits) != dict(before):
            return ActuationFailed(Reason.CONFLICT, f"the limits of NodePool {name} were changed since they were read")
        self._nodes.set_limits(name, after)
        return Actuated(Reason.LIMITS_IN_STEP, f"NodePool {name}: limits written")


class FixedAcceleratorPools:
    """An AcceleratorPoolLookup over the pools of a policy's file."""

    def __init__(self, pools: Sequence[AcceleratorPool]) -> None:
        self._pools = tuple(pools)

    def accelerator_pools(self) -> Sequence[AcceleratorPool]:
        """All of them."""
        return self._pools


def node_capacity_of(
    nodes: SimulatedNodes, pools: Sequence[AcceleratorPool], places: PlaceSource
) -> NodeCapacityKeeper:
    """The live controller's own keeper of limits, on simulated nodes.

    In a sampled fleet no replica is moved back to spot: one there is several, and a surge would be of all of them.
    """
    karpenter = SimulatedKarpenter(nodes)
    return NodeCapacityKeeper(
        FixedAcceleratorPools(pools),
        karpenter,
        karpenter,
        OWN_MANAGER,
        Prewarmer(SimulatedPlaceholders(nodes, pools), SimulatedBuffers(nodes), is_dry_run=False),
        places=places if nodes.copies == 1 else None,
    )
