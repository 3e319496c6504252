"""Which Kubernetes Events a tick is worth: a change of the count, or of the reason for it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Unobserved, says_something
from policies.reasons import Reason

logger = logging.getLogger(__name__)

NORMAL, WARNING = "Normal", "Warning"

# A person should look at these; everything else is the normal course of things.
WARNING_REASONS = frozenset(
    {
        Reason.METRICS_UNAVAILABLE,
        Reason.LOW_COVERAGE,
        Reason.FALLBACK,
        Reason.FAILED_UPDATE_SCALE,
        Reason.FORBIDDEN,
        Reason.COMPETING_AUTOSCALER,
        Reason.COMPETING_WRITER,
        Reason.COMPETING_SCALER,
        Reason.NO_AUTOSCALER,
        Reason.INTERNAL_ERROR,
        Reason.SPEC_INVALID,
        Reason.TARGET_NOT_FOUND,
        Reason.TARGET_NOT_SCALABLE,
        Reason.FAILED_GET_SCALE,
        Reason.STALE_CACHE,
    }
)


@dataclass(frozen=True, slots=True)
class PoolEvent:
    """An Event on an InferenceScaler. `type` is Normal or Warning."""

    scaler: InferenceScaler | InvalidInferenceScaler
    type: str
    reason: Reason
    message: str


class EventSink(Protocol):
    """Sends Events, fewer than it is given where they come too fast; never waits on the network."""

    def send(self, event: PoolEvent) -> None:
        """Takes one Event."""
        ...


class LoggedEvents:
    """An EventSink for the process log: what happens is to be found there too where no Event may be written."""

    def send(self, event: PoolEvent) -> None:
        """Logs one Event, at warning or info."""
        level = logging.WARNING if event.type == WARNING else logging.INFO
        fields = {"namespace": event.scaler.namespace, "scaler": event.scaler.name, "note": event.message}
        logger.log(level, "pool event", extra=fields | {"reason": event.reason.value})


class EventReporter:
    """A reporter that sends an Event for each rescale, and where the count or its reason has changed."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._last: dict[tuple[str, str], tuple[int | None, Reason]] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Compares with the tick before. The first sight of a pool is no change, unless it is worth a warning."""
        seen: dict[tuple[str, str], tuple[int | None, Reason]] = {}
        for report in filter(says_something, reports):
            state, before = _state(report), self._last.get(report.scaler.key)
            seen[report.scaler.key] = state
            event = event_of(report)
            is_change = event.type == WARNING if before is None else before != state
            if is_change or _has_rescaled(report):
                self._sink.send(event)
        self._last = seen


def _state(report: PoolReport) -> tuple[int | None, Reason]:
    """What stays the same while nothing happens. A rescale is an act, not a state: the tick after it is no news."""
    if not isinstance(report, Decided):
        return None, event_of(report).reason
    reason = report.decision.reason if _has_rescaled(report) else event_of(report).reason
    return report.decision.desired_replicas, reason


def event_of(report: PoolReport) -> PoolEvent:
    """The one Event that tells most about a report: what came of the write if anything did, else why the count."""
    reason, message = _reason_and_message(report)
    return PoolEvent(report.scaler, WARNING if reason in WARNING_REASONS else NORMAL, reason, message)


def _reason_and_message(report: PoolReport) -> tuple[Reason, str]:
    match report:
        case Rejected(scaler=scaler):
            return Reason.SPEC_INVALID, "; ".join(scaler.problems)
        case Unobserved(unavailable=unavailable):
            return unavailable.reason, unavailable.message
        case Crashed(problem=problem):
            return Reason.INTERNAL_ERROR, problem
        case Decided(decision=decision, actuation=actuation):
            if _has_rescaled(report):
                return actuation.reason, f"{actuation.message}: {decision.message}"
            if actuation.reason in WARNING_REASONS:
                return actuation.reason, actuation.message
            return decision.reason, decision.message


def _has_rescaled(report: PoolReport) -> bool:
    return isinstance(report, Decided) and report.actuation.reason is Reason.SUCCEEDED_RESCALE
