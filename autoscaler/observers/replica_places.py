"""On which nodes are a target's replicas, and which of these nodes could become empty?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedPod
from autoscaler.observers.leaving_nodes import departure_of_node
from autoscaler.observers.replica_groups import belongs_to
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.capacity_split import CapacityType
from policies.victims import PlacedReplica

# The requests of a pod by (namespace, name), as (when they were counted, how many); None where they are not known.
InFlight = Callable[[str, str], tuple[float, float] | None]


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The nodes of a NodePool that do not go already: by name those that something fills, and how many others."""

    filled: frozenset[str]
    empty: int


@dataclass(frozen=True, slots=True)
class Places:
    """Where a target's replicas are, and of the on-demand nodes of their NodePools those that nothing fills, or do."""

    replicas: Sequence[PlacedReplica]
    empty_on_demand: int
    filled_on_demand: frozenset[str] = frozenset()  # by name


class PlaceSource(Protocol):
    """Sees where replicas are. Never blocks on the network."""

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        """The places of these pods of a target; one that has gone since has none."""
        ...

    def nodes_of(self, node_pool: str) -> PoolNodes:
        """The nodes of a NodePool, whoever fills them; those that are not there yet are none of them."""
        ...


class ReplicaPlaces:
    """A PlaceSource by what the watches say of pods and nodes."""

    def __init__(self, cluster: WatchedCluster, in_flight: InFlight) -> None:
        self._cluster = cluster
        self._in_flight = in_flight
        self._ground: _Ground | None = None

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        """As of this moment."""
        return self.places(self.pods_of(target, pods))

    def nodes_of(self, node_pool: str) -> PoolNodes:
        """As of this moment."""
        ground = self._look()
        names = frozenset(ground.staying.get(node_pool, ()))
        return PoolNodes(names & ground.filled, len(names - ground.filled))

    def pods_of(self, target: ScaleTarget, pods: Iterable[LivePod]) -> list[WatchedPod]:
        """The target's own of these pods that are still there."""
        found = (self._cluster.pods.get((target.namespace, pod.name)) for pod in pods)
        return [pod for pod in found if pod is not None and belongs_to(pod, target.kind, target.name)]

    def places(self, own: Sequence[WatchedPod]) -> Places:
        """The places of these pods."""
        ground = self._look()
        mine = Counter(pod.node for pod in own if not pod.is_terminating)
        others = {node: max(0, ground.pods[node] - count) for node, count in mine.items() if node is not None}
        placed = [self._placed(pod, ground.nodes, others.get(pod.node or "", 0)) for pod in own]
        node_pools = {ground.nodes[node].node_pool for node in others if node in ground.nodes}
        names = [name for pool in node_pools for name in ground.staying.get(pool, ())]
        on_demand = frozenset(name for name in names if ground.nodes[name].capacity_type != CapacityType.SPOT)
        return Places(placed, len(on_demand - ground.filled), on_demand & ground.filled)

    def _look(self) -> _Ground:
        """What is the same for all targets: looked at once a tick, as long as nothing changes meanwhile."""
        watched = self._cluster.nodes
        versions = (self._cluster.pods.version, 0 if watched is None else watched.version)
        if self._ground is None or self._ground.versions != versions:
            self._ground = _ground(versions, self._cluster.nodes_by_name(), self._cluster.pods.all())
        return self._ground

    def _placed(self, pod: WatchedPod, nodes: Mapping[str, WatchedNode], others_on_node: int) -> PlacedReplica:
        node, requests = nodes.get(pod.node or ""), self._in_flight(pod.namespace, pod.name)
        return PlacedReplica(
            name=pod.name,
            node=pod.node,
            is_ready=pod.is_ready,
            work=0.0 if requests is None else requests[1],
            node_leaves=node is not None and departure_of_node(node) is not None,
            others_on_node=others_on_node,
            is_on_spot=node is not None and node.capacity_type == CapacityType.SPOT,
            is_drained=pod.drained_at_seconds is not None,
        )


@dataclass(frozen=True, slots=True)
class _Ground:
    """All nodes as of these versions of pods and nodes.

    `staying` has those of each NodePool that do not go already, `pods` how many pods keep a node, `filled` those on
    which there is more than placeholders.
    """

    versions: tuple[int, int]
    nodes: Mapping[str, WatchedNode]
    staying: Mapping[str | None, Sequence[str]]
    pods: Counter[str]
    filled: frozenset[str]


def _ground(versions: tuple[int, int], nodes: Mapping[str, WatchedNode], pods: Iterable[WatchedPod]) -> _Ground:
    going_on: dict[str | None, list[str]] = defaultdict(list)
    for node in nodes.values():
        if departure_of_node(node) is None:
            going_on[node.node_pool].append(node.name)
    # Pods of DaemonSets go with their node, and one that ends is gone soon; any other pod keeps it. What placeholders
    # hold is no replica's, and so their node is as good as empty.
    keeping = [
        (pod.node, pod.gives_way)
        for pod in pods
        if pod.node is not None and not pod.is_terminating and not _is_daemon(pod)
    ]
    filled = frozenset(node for node, gives_way in keeping if not gives_way)
    return _Ground(versions, nodes, going_on, Counter(node for node, _ in keeping), filled)


def _is_daemon(pod: WatchedPod) -> bool:
    return pod.owner is not None and pod.owner[0] in ("DaemonSet", "Node")
