"""What holds nodes ready in a simulated fleet? Imagined pods that give way: placeholders and buffers come to the same.

Each takes a whole node. A replica gets its node at once, as it has the higher priority; the node is handed over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_holder import HeldPool
from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.prewarm import PlaceholderRef
from autoscaler.replay.simulated_nodes import SimulatedNodes
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class SimulatedHolder:
    """A NodeHolder on the nodes of one NodePool."""

    nodes: SimulatedNodes
    node_pool: str
    name: str

    @property
    def pods(self) -> int:
        """The nodes that are held."""
        return self.nodes.held_ready(self.node_pool)

    @property
    def accelerators_per_pod(self) -> int:
        """Those of a node."""
        return self.nodes.setup.shape.accelerators

    @property
    def complaint(self) -> ActuationFailed | None:
        """None: they can be held."""
        return None

    def hold(self, pods: int) -> Actuated | ActuationFailed:
        """So many from now on."""
        self.nodes.hold_ready(self.node_pool, pods)
        return Actuated(Reason.NODES_HELD_READY, "")


class SimulatedBuffers:
    """The BufferHolders of a simulated fleet."""

    def __init__(self, nodes: SimulatedNodes) -> None:
        self._nodes = nodes
        self._node_pools: dict[str, str] = {}

    def of(self, pool: HeldPool, now_seconds: float) -> SimulatedHolder:
        """The buffer of a pool."""
        self._node_pools[pool.name] = pool.node_pool
        return SimulatedHolder(self._nodes, pool.node_pool, f"CapacityBuffer {pool.name}")

    def release(self, pools: Collection[str]) -> None:
        """Lets go of the nodes of these pools, where there are any."""
        for name in sorted(self._node_pools.keys() & set(pools)):
            self._nodes.hold_ready(self._node_pools.pop(name), 0)


class SimulatedPlaceholders:
    """The PlaceholderHolders of a simulated fleet: what an AcceleratorPool names is there, and begins with no pods."""

    def __init__(self, nodes: SimulatedNodes, pools: Iterable[AcceleratorPool]) -> None:
        self._nodes = nodes
        self._node_pools = {
            pool.spec.prewarm.placeholder_ref: pool.spec.node_pools.on_demand
            for pool in pools
            if pool.spec.prewarm is not None and pool.spec.prewarm.placeholder_ref is not None
        }

    def of(self, reference: PlaceholderRef) -> SimulatedHolder:
        """The Deployment that is named."""
        name = f"Deployment {reference.namespace}/{reference.name}"
        return SimulatedHolder(self._nodes, self._node_pools[reference], name)
