"""Which nodes are about to go, or have gone, so that what runs on them is no supply any more?

A pod stays Ready until its node dies, and its controller makes another one only then. What is known earlier is on the
node: its own deletion, the taint of whoever drains it after a spot notice, or that its kubelet is not heard of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedPod

OWN_TAINT = "tokenscaler.io/leaving"
"""What our drain watcher puts on its node."""
# Karpenter drains; the AWS node termination handler has had a notice (each of its taints is one, but for the
# recommendation to rebalance, which most nodes outlive); GKE and the cluster autoscaler end the node.
DEPARTURE_TAINTS = frozenset(
    {
        "karpenter.sh/disrupted",
        "aws-node-termination-handler/spot-itn",
        "aws-node-termination-handler/scheduled-maintenance",
        "aws-node-termination-handler/asg-lifecycle-termination",
        "cloud.google.com/impending-node-termination",
        "ToBeDeletedByClusterAutoscaler",
        "node.kubernetes.io/out-of-service",
        OWN_TAINT,
    }
)
# As Kubernetes' own node controller: where more than 55 % of the nodes, and more than two, are not heard of, it is the
# network that is broken, and nothing is evicted.
BROKEN_NETWORK_SHARE = 0.55
BROKEN_NETWORK_NODES = 2
# Pods and nodes come by two watches: a pod that has just been placed may be known before its node is.
PLACED_SECONDS = 30.0


class Departure(StrEnum):
    """Why a node does not count."""

    NOTICED = "noticed"
    DELETING = "being deleted"
    NOT_READY = "not Ready"
    GONE = "gone"


class LeavingNodes:
    """The nodes of a moment that are about to go, asked pod by pod."""

    def __init__(self, nodes: Iterable[WatchedNode] | None, now_seconds: float) -> None:
        """`nodes` are all that there are; None: they cannot be read, and then none is taken to leave."""
        self._now_seconds = now_seconds
        self._departures: Mapping[str, Departure | None] | None = None if nodes is None else _departures(tuple(nodes))

    def takes_away(self, pod: WatchedPod) -> bool:
        """Whether the pod's node is about to go, or has gone."""
        return self.departure_of(pod) is not None

    def departure_of(self, pod: WatchedPod) -> Departure | None:
        """Why the pod's node does not count; None where it does, and for a pod that has no node yet."""
        if self._departures is None or pod.node is None:
            return None
        if pod.node in self._departures:
            return self._departures[pod.node]
        placed_at_seconds = pod.scheduled_at_seconds
        is_new = placed_at_seconds is None or self._now_seconds - placed_at_seconds < PLACED_SECONDS
        return None if is_new and not pod.is_ready else Departure.GONE


def read_nodes(nodes: WatchedKind[WatchedNode] | None, maximum_age_seconds: float) -> tuple[WatchedNode, ...] | None:
    """The nodes as watched; None where they are not, not yet, or not lately."""
    if nodes is None or not nodes.has_synced or nodes.problems or nodes.age_seconds_in("") > maximum_age_seconds:
        return None
    return nodes.all()


def departure_of_node(node: WatchedNode) -> Departure | None:
    """Why a node that exists does not count; None where it does."""
    if node.is_deleting:
        return Departure.DELETING
    if DEPARTURE_TAINTS.intersection(node.taints):
        return Departure.NOTICED
    return None if node.is_ready else Departure.NOT_READY


def _departures(nodes: tuple[WatchedNode, ...]) -> dict[str, Departure | None]:
    found = {node.name: departure_of_node(node) for node in nodes}
    silent = [name for name, departure in found.items() if departure is Departure.NOT_READY]
    if len(silent) > max(BROKEN_NETWORK_NODES, BROKEN_NETWORK_SHARE * len(nodes)):
        return found | dict.fromkeys(silent)
    return found
