"""Which nodes does one simulated NodePool have? It launches them within its limits, while there is capacity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from autoscaler.observers.metrics import PoolKey
from autoscaler.replay.node_setup import NodeLosses, NodePoolSetup, NodesSetup
from policies.capacity_split import CapacityType
from policies.launch_breaker import LaunchFailure, LaunchResult, Offering

# Karpenter asks no more for an offering for three minutes after the provider had none.
UNAVAILABLE_SECONDS = 180.0
# How long a spot node still runs after its notice (EC2).
RECLAIM_NOTICE_SECONDS = 120.0
# For so long it can be seen how a launch has ended.
REMEMBERED_SECONDS = 3600.0


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """One node: ordered at `launched_at`, there from `ready_at` on, paid for from the order until it has gone."""

    name: str
    node_pool: str
    launched_at: float
    ready_at: float
    free_accelerators: int
    empty_since: float
    reclaim_at: float = math.inf  # its notice comes then, if nothing happens to it before
    death_at: float = math.inf
    gone_at: float = math.inf  # the end of its notice
    images: dict[PoolKey, float] = field(default_factory=dict)  # when each pool's image is on it

    @property
    def is_deleting(self) -> bool:
        """Whether it has had its notice: nothing new is placed on it."""
        return math.isfinite(self.gone_at)


class SimulatedNodePool:
    """A NodePool. Every node has chances of its own: the k-th lives as long under every policy with the same seed."""

    def __init__(self, setup: NodePoolSetup, nodes: NodesSetup, seed: tuple[int, ...], copies: int = 1) -> None:
        """With `copies` each node stands for so many, as in a sampled fleet each replica does."""
        self.setup = setup
        self.limits: Mapping[str, str] = dict(setup.limits)
        self.nodes: list[SimulatedNode] = []
        self.launched = 0
        self.refused_launches = 0  # for want of capacity
        self.reclaimed = 0
        self.died = 0
        self._shape = nodes.shape
        self._launch = nodes.launch
        self._seed = seed
        self._copies = copies
        self._unavailable_until = -math.inf
        self._ended_node_seconds = 0.0
        self._launches: tuple[LaunchResult, ...] = ()

    @property
    def is_spot(self) -> bool:
        """Whether its nodes may be reclaimed."""
        return self.setup.capacity_type is CapacityType.SPOT

    @property
    def nodes_in_use(self) -> int:
        """Nodes that are starting or there; those with a notice do not count, as with Karpenter."""
        return sum(not node.is_deleting for node in self.nodes) * self._copies

    @property
    def existing_nodes(self) -> int:
        """Nodes that are paid for: those with a notice too."""
        return len(self.nodes) * self._copies

    @property
    def launches(self) -> tuple[LaunchResult, ...]:
        """How the launches of the last hour have ended, where one of them failed."""
        return self._launches if any(each.failure is not None for each in self._launches) else ()

    def node_seconds(self, now_seconds: float) -> float:
        """What has been paid for so far."""
        lasting = sum(now_seconds - node.launched_at for node in self.nodes)
        return (self._ended_node_seconds + lasting) * self._copies

    def has_room(self) -> bool:
        """Whether the limits allow one more whole node: every limited resource together."""
        allowed = self._shape.whole_nodes(self.limits)
        return allowed is None or self.nodes_in_use + self._copies <= allowed

    def launch(self, now_seconds: float, trace_seconds: float) -> SimulatedNode | None:
        """A new node, ready after its launch; None beyond the limits and while there is no capacity.

        After a refusal nothing is asked for three minutes, so capacity that has returned is found that much later.
        """
        if now_seconds < self._unavailable_until or not self.has_room():
            return None
        spans = self.setup.out_of_capacity
        if any(span.at_seconds <= trace_seconds < span.at_seconds + span.lasts_seconds for span in spans):
            self._unavailable_until = now_seconds + UNAVAILABLE_SECONDS
            self.refused_launches += 1
            self._remember(now_seconds, LaunchFailure.CAPACITY)
            return None
        self._remember(now_seconds, None)
        return self._add(now_seconds, is_ready=False)

    def begin_with_node(self, now_seconds: float) -> SimulatedNode:
        """A node that is there from the beginning. The limits must have room for it."""
        if not self.has_room():
            raise ValueError(f"NodePool {self.setup.name} has no room for another node within its limits")
        return self._add(now_seconds, is_ready=True)

    def end(self, node: SimulatedNode, now_seconds: float) -> None:
        """The node has gone; nothing is paid for it from now on."""
        self.nodes.remove(node)
        self._ended_node_seconds += now_seconds - node.launched_at

    def _remember(self, now_seconds: float, failure: LaunchFailure | None) -> None:
        offering = Offering("any", "any", self.setup.capacity_type.value)
        recent = (each for each in self._launches if each.at_seconds > now_seconds - REMEMBERED_SECONDS)
        self._launches = (*recent, LaunchResult(now_seconds, (offering,), failure))

    def _add(self, now_seconds: float, is_ready: bool) -> SimulatedNode:
        self.launched += 1
        generator = np.random.default_rng([*self._seed, self.launched])
        launch = float(generator.lognormal(np.log(self._launch.median_seconds), self._launch.spread))
        ready_at = now_seconds if is_ready else now_seconds + launch
        node = SimulatedNode(
            name=f"{self.setup.name}-{self.launched:04d}",
            node_pool=self.setup.name,
            launched_at=now_seconds,
            ready_at=ready_at,
            free_accelerators=self._shape.accelerators,
            empty_since=ready_at,
            reclaim_at=now_seconds + _drawn_life(self.setup.reclaims, generator),
            death_at=now_seconds + _drawn_life(self.setup.deaths, generator),
        )
        self.nodes.append(node)
        return node


def _drawn_life(losses: NodeLosses, generator: np.random.Generator) -> float:
    """Seconds until a node is lost, exponential; drawn even where the rate is 0, so that other chances stay."""
    drawn = float(generator.exponential())
    return drawn * 3600.0 / losses.per_node_hour if losses.per_node_hour else math.inf
