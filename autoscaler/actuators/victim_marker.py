"""The port through which it is said which replicas go when a count falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.victims import NodesOfSplit


@dataclass(frozen=True, slots=True)
class ChosenVictims:
    """Who goes by a count of `to_replicas`, and how many nodes are empty then; `message` is for the record.

    The count is higher than was asked for where some are to end their requests first.
    """

    to_replicas: int
    names: tuple[str, ...]
    emptied_nodes: int
    message: str


class VictimMarker(Protocol):
    """Chooses and marks the pods of a target that should go first."""

    def mark(
        self,
        target: ScaleTarget,
        pods: Sequence[LivePod],
        from_replicas: int,
        to_replicas: int,
        split: NodesOfSplit | None,
    ) -> ChosenVictims:
        """Chooses the pods that go by the smaller count and marks them; where that fails it falls all the same."""
        ...

    def drain(
        self,
        target: ScaleTarget,
        pods: Sequence[LivePod],
        from_replicas: int,
        to_replicas: int,
        split: NodesOfSplit | None,
        deadline_seconds: float,
    ) -> ChosenVictims:
        """Takes those that are to go out of the router, and marks those of them that may go now."""
        ...

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        """The count was written by which these go."""
        ...
