"""Takes pods out of the router before they go, and puts back whoever need not go after all.

A router finds its pods by labels: a Service, an InferencePool and most gateways have a selector and nothing else. So a
pod of a template that says `tokenscaler.io/serving: "true"` is out of it as soon as the label says "false", and back
in it as soon as it says "true"; it stays Ready, its connections stay open, and its ReplicaSet, which selects by other
labels, does not notice. What stands on the pods is all that is remembered: whoever leads next goes on from there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from autoscaler.api.conditions import rfc3339
from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Forbidden, NotFound, Rejected
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import (
    DELETION_COST_ANNOTATION,
    DRAINED_AT_ANNOTATION,
    SERVING_LABEL,
    WatchedPod,
)

logger = logging.getLogger(__name__)

# A ReplicaSet takes its pods within a second or two of a smaller count; until then they are not to serve again.
GOING_SECONDS = 30.0

Name = tuple[str, str]
"""(namespace, name)"""


@dataclass(frozen=True, slots=True)
class TakenOut:
    """What became of pods that were to be taken out; `is_refused`: trying again does not help."""

    problem: str = ""
    is_refused: bool = False


class PodDrain:
    """Knows which pods are to be out of the router in a tick, and sees to it that they are, and the others not."""

    def __init__(
        self, connection: ApiConnection, cluster: WatchedCluster, fence: Callable[[], bool], clock: Clock
    ) -> None:
        self._connection = connection
        self._cluster = cluster
        self._fence = fence
        self._clock = clock
        self._lock = threading.Lock()  # pools are reconciled side by side
        self._wanted_out: set[Name] = set()
        self._going: dict[Name, float] = {}

    def now_seconds(self) -> float:
        """The clock by which deadlines are counted."""
        return self._clock.now_seconds()

    def want_out(self, pods: Iterable[WatchedPod]) -> None:
        """These stay out in this tick, if they are."""
        with self._lock:
            self._wanted_out.update((pod.namespace, pod.name) for pod in pods)

    def let_go(self, namespace: str, names: Iterable[str]) -> None:
        """A count was written by which these go: they do not serve again meanwhile."""
        now_seconds = self._clock.monotonic_seconds()
        with self._lock:
            self._going |= {(namespace, name): now_seconds for name in names}

    def take_out(self, pods: Sequence[WatchedPod]) -> TakenOut:
        """Takes pods out of the router, one after the other; a problem ends it."""
        at = rfc3339(self._clock.now_seconds())
        for pod in pods:
            problem = self._patch(pod, "false", {DRAINED_AT_ANNOTATION: at})
            if problem is not None:
                return problem
        return TakenOut()

    def put_back_others(self) -> None:
        """Puts back whoever is out and was not wanted out since the last time: load is back, or nobody decides here."""
        with self._lock:
            wanted_out, self._wanted_out = self._wanted_out, set()
            oldest_seconds = self._clock.monotonic_seconds() - GOING_SECONDS
            self._going = {name: since for name, since in self._going.items() if since > oldest_seconds}
            wanted_out |= self._going.keys()
        for pod in self._cluster.pods.all():
            if pod.drained_at_seconds is None or pod.is_terminating or (pod.namespace, pod.name) in wanted_out:
                continue
            if self._patch(pod, "true", {DRAINED_AT_ANNOTATION: None, DELETION_COST_ANNOTATION: None}) is None:
                logger.info("a pod serves again", extra={"namespace": pod.namespace, "pod": pod.name})

    def forget_all(self) -> None:
        """Drops what is remembered; the pods tell the rest."""
        with self._lock:
            self._wanted_out, self._going = set(), {}

    def _patch(self, pod: WatchedPod, serving: str, annotations: dict[str, str | None]) -> TakenOut | None:
        """None where it went well, or where the pod is gone."""
        if not self._fence():
            return TakenOut("this process does not hold the lease")
        body: dict[str, Any] = {"metadata": {"labels": {SERVING_LABEL: serving}, "annotations": annotations}}
        result = self._connection.patch(pod.path, body)
        if not isinstance(result, ApiFailure) or isinstance(result, NotFound):
            return None
        logger.warning("a pod was not drained or put back", extra={"pod": pod.name, "problem": result.message})
        return TakenOut(result.message, isinstance(result, Forbidden | Rejected))
