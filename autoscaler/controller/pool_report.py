"""What one reconcile of one pool came to: the same facts for the log, the status, Events, metrics and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.decision_record import ActuationOutcome
from autoscaler.observers.workload import Workload, WorkloadUnavailable
from policies.bursts import NO_BURSTS, BurstMemory
from policies.capacity.memory import CapacityMemory
from policies.decision import ScalingDecision
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class Rejected:
    """The spec was not accepted; nothing else was tried."""

    scaler: InvalidInferenceScaler
    now_seconds: float


@dataclass(frozen=True, slots=True)
class Unobserved:
    """The target could not be seen, so nothing was decided and nothing written."""

    scaler: InferenceScaler
    now_seconds: float
    unavailable: WorkloadUnavailable


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision was made; `actuation` says what came of it."""

    scaler: InferenceScaler
    now_seconds: float
    workload: Workload
    decision_input: DecisionInput
    decision: ScalingDecision
    actuation: ActuationOutcome
    next_history: ScalingHistory  # the decision's, with the rescale in it if there was one
    capacity: CapacityMemory | None = None  # what is remembered of a replica's capacity; None: nothing is learned
    bursts: BurstMemory = NO_BURSTS


@dataclass(frozen=True, slots=True)
class Crashed:
    """A broken invariant of ours: the traceback is in the process log, the pool keeps its replicas."""

    scaler: InferenceScaler
    now_seconds: float
    problem: str


PoolReport = Rejected | Unobserved | Decided | Crashed


def says_something(report: PoolReport) -> bool:
    """False while this process has not read the target yet, as after every start: what was said before still holds."""
    return not (isinstance(report, Unobserved) and report.unavailable.reason is Reason.NOT_READ_YET)


class Reporter(Protocol):
    """Tells somebody what a tick came to."""

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Takes all reports of one tick. Must not fail the tick and must not wait on the network."""
        ...
