"""Who goes when a count falls? Said to the cluster immediately before the count is written, or first drained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autoscaler.actuators.actuator import Actuated, ActuationFailed, ReplicaActuator
from autoscaler.actuators.victim_marker import CountFall, VictimMarker
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.reasons import Reason
from policies.victims import NodesOfSplit
from policies.wording import joined


class VictimActuator:
    """A ReplicaActuator that has the victims marked before it lets another one lower the count.

    With `drain_seconds` the count falls by those that have ended their requests, at the latest after so many seconds.
    """

    def __init__(
        self,
        inner: ReplicaActuator,
        marker: VictimMarker,
        pods: Sequence[LivePod],
        split: NodesOfSplit | None,
        drain_seconds: float | None = None,
    ) -> None:
        self._inner = inner
        self._marker = marker
        self._pods = pods
        self._split = split
        self._drain_seconds = drain_seconds

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """As the inner one; the message says which nodes become empty, and who ends requests first."""
        if to_replicas >= from_replicas:
            return self._inner.scale(target, from_replicas, to_replicas)
        # A pool that goes to sleep has had no request for minutes, and without anybody in the router all would fail.
        drain_seconds = None if to_replicas == 0 else self._drain_seconds
        fall = CountFall(target, self._pods, from_replicas, to_replicas, self._split, drain_seconds)
        chosen = self._marker.mark(fall)
        kept = chosen.to_replicas - to_replicas
        if chosen.to_replicas == from_replicas:
            return Actuated(chosen.reason, chosen.message, kept)
        result = self._inner.scale(target, from_replicas, chosen.to_replicas)
        message = joined([result.message, chosen.message])
        if isinstance(result, ActuationFailed):
            return replace(result, message=message)
        if result.reason is not Reason.SUCCEEDED_RESCALE:
            return replace(result, message=message)
        self._marker.note_written(target, chosen)
        return replace(result, message=message, kept_replicas=kept, emptied_nodes=chosen.emptied_nodes)
