"""Says on the pods of replicas that load a model that Karpenter may not move them, and takes it back.

The annotation is a time from the pod's start, which Karpenter ends by itself: where nobody is there any more to take it
back, it holds a node no longer than a start may last. It never stands on a spot node or one that is about to go: a pod
that may not be moved gets no replacement there before it dies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.background_writer import Write
from autoscaler.kubernetes_gateway.connection import ApiConnection, Document
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import (
    DO_NOT_DISRUPT_ANNOTATION,
    PROTECTED_ANNOTATION,
    WatchedNode,
    WatchedPod,
)
from autoscaler.observers.leaving_nodes import departure_of_node
from policies.capacity_split import CapacityType


class WriteQueue(Protocol):
    """Where writes wait that nobody waits for: a start takes minutes, a write does not."""

    def submit(self, key: tuple[str, ...], write: Write) -> None:
        """Queues a write in place of an older one with the same key."""
        ...


class LoadingProtection:
    """Brings the annotation of all pods to what is wanted. One that somebody else has set is left alone."""

    def __init__(self, cluster: WatchedCluster, queue: WriteQueue, clock: Clock) -> None:
        self._cluster = cluster
        self._queue = queue
        self._clock = clock

    def bring_to(self, limits_seconds: Mapping[tuple[str, str], float]) -> None:
        """Protects these pods, by (namespace, name), while they load, for so long at most; takes it back elsewhere.

        Without a look at nodes nobody is protected anew: on spot it would do harm.
        """
        nodes, now_seconds = self._cluster.nodes_by_name(), self._clock.now_seconds()
        for pod in self._cluster.pods.all():
            limit_seconds = limits_seconds.get((pod.namespace, pod.name))
            seconds = None if limit_seconds is None else _seconds(pod, nodes, limit_seconds, now_seconds)
            if seconds is not None and pod.may_be_disrupted:
                self._annotate(pod, f"{seconds}s", "true")
            elif seconds is None and pod.is_protected and not pod.is_terminating:
                self._annotate(pod, None, None)

    def _annotate(self, pod: WatchedPod, protection: str | None, mark: str | None) -> None:
        body: Document = {
            "metadata": {"annotations": {DO_NOT_DISRUPT_ANNOTATION: protection, PROTECTED_ANNOTATION: mark}}
        }

        def patch(connection: ApiConnection) -> Document | ApiFailure:
            return connection.patch(pod.path, body)

        self._queue.submit(("protection", pod.namespace, pod.name), patch)


def _seconds(pod: WatchedPod, nodes: Mapping[str, WatchedNode], limit_seconds: float, now_seconds: float) -> int | None:
    """The time from the pod's start for which it is protected; None where it is not to be."""
    node = nodes.get(pod.node or "")
    if pod.is_ready or pod.is_terminating or node is None or node.node_pool is None:
        return None
    if node.capacity_type == CapacityType.SPOT or departure_of_node(node) is not None:
        return None
    # One that has lost its readiness loads anew.
    loads_since_seconds = max(pod.created_at_seconds, pod.ready_changed_at_seconds or 0.0)
    if now_seconds - loads_since_seconds >= limit_seconds:
        return None
    return math.ceil(loads_since_seconds + limit_seconds - (pod.scheduled_at_seconds or pod.created_at_seconds))
