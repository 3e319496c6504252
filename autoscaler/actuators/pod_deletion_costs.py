"""Marks the pods that a ReplicaSet is to take when its count falls, so that whole nodes become empty.

The annotation is the only word that a ReplicaSet hears on this. It is written where a count is about to fall and at no
other time; what an earlier choice left on pods that stay is taken away with the next one.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import DELETION_COST_ANNOTATION as ANNOTATION
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedPod
from autoscaler.observers.leaving_nodes import departure_of_node
from autoscaler.observers.replica_groups import belongs_to
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.capacity_split import CapacityType
from policies.victims import NodesOfSplit, PlacedReplica, Victims, choose_victims
from policies.wording import counted, joined

logger = logging.getLogger(__name__)

# Of ours the first to go has the lowest. Karpenter takes a pod of -134 217 728 and less for one that costs nothing.
HIGHEST_COST, LOWEST_COST = -1000, -1999
MOST_MARKED = HIGHEST_COST - LOWEST_COST


@dataclass(frozen=True, slots=True)
class MarkedVictims:
    """What was chosen; `problem` is why it could not all be written (empty: it was)."""

    victims: Victims
    problem: str = ""

    @property
    def message(self) -> str:
        """The nodes that become empty, in words; what a fall of the count saves is nodes, not replicas."""
        nodes = self.victims.emptied_nodes
        named = f": {', '.join(nodes[:5])}{', ...' if len(nodes) > 5 else ''}" if nodes else ""
        return joined([f"{counted(len(nodes), 'node')} will be empty{named}", self.problem])


class PodDeletionCosts:
    """Chooses victims by what the watches say of pods and nodes, and marks them.

    `in_flight` gives the requests of a pod by (namespace, name), None where not known. `note_emptied` is told how many
    nodes a fall of a count leaves empty.
    """

    def __init__(
        self,
        connection: ApiConnection,
        cluster: WatchedCluster,
        fence: Callable[[], bool],
        in_flight: Callable[[str, str], float | None],
        note_emptied: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._cluster = cluster
        self._fence = fence
        self._in_flight = in_flight
        self._note_emptied = note_emptied

    def mark(
        self, target: ScaleTarget, pods: Sequence[LivePod], fewer: int, split: NodesOfSplit | None
    ) -> MarkedVictims:
        """Marks the pods that are to go when `target` gets so many fewer. Where that fails they go as ever."""
        own = self._pods_of(target, pods)
        watched = self._cluster.nodes
        nodes = {node.name: node for node in watched.all()} if watched is not None else {}
        # Pods of DaemonSets go with their node; any other pod keeps it.
        busy = Counter(pod.node for pod in self._cluster.pods.all() if pod.node is not None and not _is_daemon(pod))
        filled = None if split is None else replace(split, on_demand=split.on_demand - _empty(own, nodes, busy))
        victims = choose_victims(self._placed(own, nodes, busy), fewer, filled)
        foreign = sorted(pod.name for pod in own if pod.deletion_cost is not None and not _is_ours(pod.deletion_cost))
        if foreign:
            return MarkedVictims(victims, f"somebody else sets {ANNOTATION} ({foreign[0]}): it is left alone")
        self._note_emptied(len(victims.emptied_nodes))
        return MarkedVictims(victims, self._write(own, victims))

    def _pods_of(self, target: ScaleTarget, pods: Iterable[LivePod]) -> list[WatchedPod]:
        found = (self._cluster.pods.get((target.namespace, pod.name)) for pod in pods)
        return [pod for pod in found if pod is not None and belongs_to(pod, target.kind, target.name)]

    def _placed(
        self, own: Sequence[WatchedPod], nodes: Mapping[str, WatchedNode], busy: Mapping[str, int]
    ) -> list[PlacedReplica]:
        mine = Counter(pod.node for pod in own if pod.node is not None)
        placed = []
        for pod in own:
            node = nodes.get(pod.node or "")
            placed.append(
                PlacedReplica(
                    name=pod.name,
                    node=pod.node,
                    is_ready=pod.is_ready,
                    work=self._in_flight(pod.namespace, pod.name) or 0.0,
                    node_leaves=node is not None and departure_of_node(node) is not None,
                    others_on_node=0 if pod.node is None else busy.get(pod.node, 0) - mine[pod.node],
                    is_on_spot=node is not None and node.capacity_type == CapacityType.SPOT,
                )
            )
        return placed

    def _write(self, own: Sequence[WatchedPod], victims: Victims) -> str:
        wanted = {name: str(LOWEST_COST + rank) for rank, name in enumerate(victims.names[:MOST_MARKED])}
        for pod in own:
            cost = wanted.get(pod.name)
            if cost == pod.deletion_cost:
                continue
            if not self._fence():
                return "the pods were not marked: this process does not hold the lease"
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            result = self._connection.patch(path, {"metadata": {"annotations": {ANNOTATION: cost}}})
            if isinstance(result, ApiFailure) and not isinstance(result, NotFound):
                logger.warning("a pod was not marked", extra={"pod": pod.name, "problem": result.message})
                return f"the pods were not marked: {result.message}"
        return ""


def _empty(own: Sequence[WatchedPod], nodes: Mapping[str, WatchedNode], busy: Mapping[str, int]) -> int:
    """On-demand nodes of the NodePools that the pods run on which nothing fills: they are about to go by themselves."""
    node_pools = {nodes[pod.node].node_pool for pod in own if pod.node is not None and pod.node in nodes}
    return sum(
        node.node_pool in node_pools
        and node.capacity_type != CapacityType.SPOT
        and departure_of_node(node) is None
        and not busy.get(node.name)
        for node in nodes.values()
    )


def _is_ours(cost: str) -> bool:
    digits = cost.removeprefix("-")
    return digits.isdigit() and LOWEST_COST <= int(cost) <= HIGHEST_COST


def _is_daemon(pod: WatchedPod) -> bool:
    return pod.owner is not None and pod.owner[0] in ("DaemonSet", "Node")
