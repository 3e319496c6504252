"""The port through which nodes are held ready: something that takes their place until replicas come."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.prewarm import PlaceholderRef, Prewarm
from autoscaler.api.taints import Taint
from policies.node_packing import NodeRoom


@dataclass(frozen=True, slots=True)
class HeldPool:
    """An AcceleratorPool some of whose nodes are held ready: the NodePool on demand, and what its nodes are like."""

    name: str
    uid: str
    prewarm: Prewarm
    node_pool: str
    room: NodeRoom
    taints: tuple[Taint, ...] = ()

    @property
    def accelerators_per_node(self) -> int:
        """What a place takes that takes a whole node."""
        return max(1, self.room.accelerators)


class NodeHolder(Protocol):
    """What holds nodes ready, as it was last seen: so many pods, real or imagined, of so many accelerators each."""

    @property
    def name(self) -> str:
        """Kind, namespace and name."""
        ...

    @property
    def pods(self) -> int:
        """How many it holds places for now."""
        ...

    @property
    def accelerators_per_pod(self) -> int:
        """Accelerators of each."""
        ...

    @property
    def complaint(self) -> ActuationFailed | None:
        """Why it holds nothing although it is there; None where nothing is known against it."""
        ...

    def hold(self, pods: int) -> Actuated | ActuationFailed:
        """Places for so many from now on; also called where the number is the same, and then writes what differs."""
        ...


class PlaceholderHolders(Protocol):
    """The NodeHolders of method PlaceholderPods."""

    def of(self, reference: PlaceholderRef) -> NodeHolder | ActuationFailed:
        """The Deployment that is named, or why there is none to be steered."""
        ...


class BufferHolders(Protocol):
    """The NodeHolders of method CapacityBuffer."""

    def of(self, pool: HeldPool, now_seconds: float) -> NodeHolder | ActuationFailed:
        """The buffer of a pool, also before it has been made; or why there can be none."""
        ...

    def release(self, pools: Collection[str]) -> None:
        """Lets go of the nodes of these pools, where there are any."""
        ...
