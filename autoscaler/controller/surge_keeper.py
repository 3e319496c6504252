"""What becomes of replicas that stand beside the plan for a move of nodes when their InferenceScaler is deleted?

They were never demand, and nobody else knows of them: the count is given back as it was planned. Where it is another by
then, somebody has set it, and it is left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoscaler.actuators.actuator import ActuationFailed, ReplicaActuator
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.workload import ScaleTarget

logger = logging.getLogger(__name__)

# A target as it stands now, and its count; None where it is not there, or has not been read yet.
FindTarget = Callable[[ScaleTarget], tuple[ScaleTarget, int] | None]


@dataclass(frozen=True, slots=True)
class _Surge:
    target: ScaleTarget
    planned: int
    asked: int


class SurgeKeeper:
    """A Keeper that remembers who has a surge, and ends that of a scaler which has gone."""

    def __init__(self, find: FindTarget, actuator: ReplicaActuator) -> None:
        self._find = find
        self._actuator = actuator
        self._surges: dict[PoolKey, _Surge] = {}

    def keep(self, reports: Sequence[PoolReport]) -> None:
        """What could not be written is tried again with the next tick."""
        there = {report.scaler.key for report in reports}
        gone = {key: surge for key, surge in self._surges.items() if key not in there}
        # A scaler for which nothing is decided in this tick keeps what it had.
        undecided = {report.scaler.key for report in reports if not isinstance(report, Decided)}
        kept = {key: surge for key, surge in self._surges.items() if key in undecided}
        begun = {report.scaler.key: surge for report in reports if (surge := _surge_of(report)) is not None}
        left = {key: surge for key, surge in gone.items() if not self._end(surge)}
        self._surges = kept | begun | left

    def forget_all(self) -> None:
        """Drops what is remembered: somebody else has decided since."""
        self._surges = {}

    def _end(self, surge: _Surge) -> bool:
        """Whether nothing is left to be done."""
        found = self._find(surge.target)
        if found is None or found[0].uid != surge.target.uid or found[1] != surge.asked:
            return True
        result = self._actuator.scale(found[0], surge.asked, surge.planned)
        message = "the surge of a scaler that is gone is given back"
        logger.info(message, extra={"target": surge.target.name, "result": result.message})
        return not isinstance(result, ActuationFailed)


def _surge_of(report: PoolReport) -> _Surge | None:
    """Of a decision by which replicas are to stand beside the plan; whether they do is looked at when it matters."""
    if not isinstance(report, Decided) or report.workload.parts:
        return None
    memory, asked = report.next_history.node_move, report.decision.desired_replicas
    if memory is None or memory.moved_replicas == 0:
        return None
    return _Surge(report.workload.target, asked - memory.moved_replicas, asked)
