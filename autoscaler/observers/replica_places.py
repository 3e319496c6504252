"""On which nodes are a target's replicas, and which of these nodes could become empty?"""

from __future__ import annotations

from collections import Counter
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


class ReplicaPlaces:
    """A PlaceSource by what the watches say of pods and nodes."""

    def __init__(self, cluster: WatchedCluster, in_flight: InFlight) -> None:
        self._cluster = cluster
        self._in_flight = in_flight

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        """As of this moment."""
        return self.places(self.pods_of(target, pods))

    def pods_of(self, target: ScaleTarget, pods: Iterable[LivePod]) -> list[WatchedPod]:
        """The target's own of these pods that are still there."""
        found = (self._cluster.pods.get((target.namespace, pod.name)) for pod in pods)
        return [pod for pod in found if pod is not None and belongs_to(pod, target.kind, target.name)]

    def places(self, own: Sequence[WatchedPod]) -> Places:
        """The places of these pods."""
        nodes = self._cluster.nodes_by_name()
        # Pods of DaemonSets go with their node, and one that ends is gone soon; any other pod keeps it. An on-demand
        # node with placeholders alone counts as empty: what they hold is no replica's.
        staying = [
            pod
            for pod in self._cluster.pods.all()
            if pod.node is not None and not pod.is_terminating and not _is_daemon(pod)
        ]
        busy = Counter(pod.node for pod in staying)
        mine = Counter(pod.node for pod in own if not pod.is_terminating)
        placed = [self._placed(pod, nodes, 0 if pod.node is None else busy[pod.node] - mine[pod.node]) for pod in own]
        on_demand, filled = _on_demand(own, nodes), {pod.node for pod in staying if not pod.gives_way}
        return Places(placed, len(on_demand - filled), on_demand & filled)

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


def _on_demand(own: Sequence[WatchedPod], nodes: Mapping[str, WatchedNode]) -> frozenset[str]:
    """The on-demand nodes of the NodePools that the pods run on, without those that go already."""
    node_pools = {nodes[pod.node].node_pool for pod in own if pod.node is not None and pod.node in nodes}
    return frozenset(
        node.name
        for node in nodes.values()
        if node.node_pool in node_pools and node.capacity_type != CapacityType.SPOT and departure_of_node(node) is None
    )


def _is_daemon(pod: WatchedPod) -> bool:
    return pod.owner is not None and pod.owner[0] in ("DaemonSet", "Node")
