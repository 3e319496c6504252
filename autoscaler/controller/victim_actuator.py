"""Who goes when a count falls? Said to the cluster immediately before the count is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from autoscaler.actuators.actuator import Actuated, ActuationFailed, ReplicaActuator
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.victims import NodesOfSplit
from policies.wording import joined


class Marked(Protocol):
    """What marking came to, in a sentence."""

    @property
    def message(self) -> str:
        """For the record of the decision."""
        ...


class VictimMarker(Protocol):
    """Marks the pods of a target that should go first."""

    def mark(self, target: ScaleTarget, pods: Sequence[LivePod], fewer: int, split: NodesOfSplit | None) -> Marked:
        """Chooses so many of the target's pods and marks them; where that fails the count falls all the same."""
        ...


class VictimActuator:
    """A ReplicaActuator that has the victims marked before it lets another one lower the count."""

    def __init__(
        self, inner: ReplicaActuator, marker: VictimMarker, pods: Sequence[LivePod], split: NodesOfSplit | None
    ) -> None:
        self._inner = inner
        self._marker = marker
        self._pods = pods
        self._split = split

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """As the inner one; the message says which nodes become empty."""
        if to_replicas >= from_replicas:
            return self._inner.scale(target, from_replicas, to_replicas)
        marked = self._marker.mark(target, self._pods, from_replicas - to_replicas, self._split)
        result = self._inner.scale(target, from_replicas, to_replicas)
        return replace(result, message=joined([result.message, marked.message]))
