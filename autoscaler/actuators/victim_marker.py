"""The port through which it is said which replicas go when a count falls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.reasons import Reason
from policies.victims import NodesOfSplit


@dataclass(frozen=True, slots=True)
class CountFall:
    """A count that is about to fall: of which target, whose pods these are, and the nodes behind them.

    `split` None: no floor is to be kept. `drain_seconds` None: those that are to go do so at once; else they end their
    requests out of the router first, for so long at most.
    """

    target: ScaleTarget
    pods: Sequence[LivePod]
    from_replicas: int
    to_replicas: int
    split: NodesOfSplit | None = None
    drain_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ChosenVictims:
    """Who goes by a count of `to_replicas`, and how many nodes are empty then; `message` is for the record.

    The count is higher than was asked for where some are to end their requests first, or stay for the floor on demand
    for a while; `reason` says which, where nobody goes yet.
    """

    to_replicas: int
    names: tuple[str, ...]
    emptied_nodes: int
    message: str
    reason: Reason = Reason.DRAINING


class VictimMarker(Protocol):
    """Chooses and marks the pods of a target that should go first."""

    def mark(self, fall: CountFall) -> ChosenVictims:
        """Chooses the pods that are to go and marks those that may go now; where that fails they go as ever."""
        ...

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        """The count was written by which these go."""
        ...
