"""The port through which a replica count is written, and what can come of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autoscaler.observers.workload import ScaleTarget
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class Actuated:
    """What was decided was written (or, in a dry run, would have been); `reason` tells which."""

    reason: Reason
    message: str
    kept_replicas: int = 0  # more than was decided, as they end their requests first
    emptied_nodes: int = 0  # on which then nothing is left, where it was chosen who goes


@dataclass(frozen=True, slots=True)
class ActuationFailed:
    """Nothing was written. `retry_after_seconds` is what the API server asked for, if it did."""

    reason: Reason
    message: str
    retry_after_seconds: float | None = None


class ReplicaActuator(Protocol):
    """Writes one target's count. Called only when the count differs from the one observed; at most once a tick."""

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Writes `to_replicas` unless the target has changed since it was observed."""
        ...
