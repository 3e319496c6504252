"""What a report means for the object's status, and when that is worth a write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.conditions import rfc3339
from autoscaler.api.status import (
    MAXIMUM_MESSAGE_CHARACTERS,
    MAXIMUM_RECORD_CHARACTERS,
    InferenceScalerStatus,
    read_status,
    save_history,
)
from autoscaler.controller.forecast_report import forecast_status
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.learned_status import learned_status
from autoscaler.controller.pool_conditions import judged_conditions
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Unobserved, says_something
from autoscaler.controller.published_metrics import publish
from autoscaler.controller.replica_wish import accelerator_pool_of
from autoscaler.decision_record import DecisionRecord
from policies.history import ScalingHistory
from policies.node_capacity import CapacityOutcome
from policies.parameters import Mode
from policies.reasons import Reason

# While an earlier, higher recommendation still holds the count up, a restart must find it: it is saved this often.
WINDOW_SAVE_SECONDS = 30.0
# Other replicas serve what stands in the status, and call it unknown when it is two minutes old. The published time has
# whole seconds, so that at a tick of 15 s every tick is worth a write.
PUBLISH_SECONDS = 14.0
# Numbers in messages drift without meaning anything new; they are refreshed this often.
REFRESH_SECONDS = 300.0


class StatusSink(Protocol):
    """Writes statuses, the newest of each object, without making the loop wait."""

    def write(self, namespace: str, name: str, status: InferenceScalerStatus) -> None:
        """Takes one status."""
        ...


@dataclass(frozen=True, slots=True)
class _Written:
    uid: str
    status: InferenceScalerStatus
    at_seconds: float


class StatusReporter:
    """A reporter that writes a status where something a person would want to know has changed."""

    def __init__(
        self,
        sink: StatusSink,
        records: LatestRecords,
        nodes_of: Callable[[str], CapacityOutcome | None] = lambda _: None,
    ) -> None:
        """`nodes_of` tells by name what came of planning an AcceleratorPool; None where its limits are not managed."""
        self._nodes_of = nodes_of
        self._sink = sink
        self._records = records
        self._written: dict[tuple[str, str], _Written] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Compares with what was written last (at first: with what stands in the object)."""
        still_there = {report.scaler.key for report in reports}
        for key in self._written.keys() - still_there:
            del self._written[key]
        for report in filter(says_something, reports):
            self._report_one(report)

    def _report_one(self, report: PoolReport) -> None:
        scaler, now_seconds = report.scaler, report.now_seconds
        written = self._written.get(scaler.key)
        if written is None or written.uid != scaler.uid:
            written = self._written[scaler.key] = _Written(scaler.uid, read_status(scaler.status), now_seconds)
        before, seconds_since = written.status, now_seconds - written.at_seconds
        if seconds_since < 0:
            # The clock was set back: what stands there bears a time to come, and may be as old as it likes.
            seconds_since = REFRESH_SECONDS
        if seconds_since >= REFRESH_SECONDS:
            # A write that failed for good, or somebody else's: now what the object really says is what counts.
            before = read_status(scaler.status)
        status = next_status(before, report, self._nodes(report))
        if is_worth_writing(before, status, report, seconds_since):
            status = with_memory(status, report, self._records.latest(*scaler.key))
            self._sink.write(scaler.namespace, scaler.name, status)
            self._written[scaler.key] = _Written(scaler.uid, status, now_seconds)

    def _nodes(self, report: PoolReport) -> CapacityOutcome | None:
        pool = accelerator_pool_of(report.scaler)
        return None if pool is None else self._nodes_of(pool)


def next_status(
    before: InferenceScalerStatus, report: PoolReport, nodes: CapacityOutcome | None = None
) -> InferenceScalerStatus:
    """The status that a report leads to, without what only a restart or `explain` reads (see `with_memory`).

    What the report does not speak of is kept: replicas last seen, conditions that were not judged. `nodes` is what came
    of planning the pool's AcceleratorPool.
    """
    changes: dict[str, object] = {
        "observed_generation": report.scaler.generation,
        "conditions": judged_conditions(before.conditions, report, nodes),
    }
    match report:
        case Rejected(scaler=scaler):
            reason, message = Reason.SPEC_INVALID, "; ".join(scaler.problems)
        case Unobserved(unavailable=unavailable):
            reason, message = unavailable.reason, unavailable.message
        case Crashed(problem=message):
            reason = Reason.INTERNAL_ERROR
        case Decided(decision=decision):
            reason, message = decision.reason, decision.message
            is_published = report.scaler.spec.mode is Mode.EXTERNAL_METRIC
            changes |= {
                **_counts(report),
                "external_metrics": publish(report) if is_published else None,
                "forecast": forecast_status(report),
            }
    return before.model_copy(update=changes | _because(before, reason, message, report))


def with_memory(
    status: InferenceScalerStatus, report: PoolReport, record: DecisionRecord | None
) -> InferenceScalerStatus:
    """The status with the history and the record of a decision; what is too large to be kept there is left out."""
    if not isinstance(report, Decided):
        return status
    line = record.to_json_line() if record is not None else None
    fits = line is not None and len(line) <= MAXIMUM_RECORD_CHARACTERS
    return status.model_copy(
        update={"history": save_history(report.next_history), "last_record": line if fits else None}
    )


def is_worth_writing(
    before: InferenceScalerStatus, after: InferenceScalerStatus, report: PoolReport, seconds_since: float
) -> bool:
    """True where a count, a reason, a condition or the generation changed, or what must not be lost has aged."""
    if _essence(before) != _essence(after):
        return True
    if after.external_metrics != before.external_metrics and seconds_since >= PUBLISH_SECONDS:
        return True
    if isinstance(report, Decided) and _is_held_up(report.next_history) and seconds_since >= WINDOW_SAVE_SECONDS:
        return True
    is_news = before.message != after.message or before.forecast != after.forecast
    return seconds_since >= REFRESH_SECONDS and is_news


def _counts(report: Decided) -> dict[str, object]:
    replicas, desired = report.workload.replicas, report.decision.desired_replicas
    accelerators = report.workload.accelerators_per_replica
    counts: dict[str, object] = {
        "spec_replicas": replicas.spec,
        "ready_replicas": replicas.serving,
        "starting_replicas": replicas.starting,
        "desired_replicas": desired,
        "accelerators_desired": None if accelerators is None else desired * accelerators,
        "learned": learned_status(report.workload, report.capacity, report.bursts),
    }
    if report.actuation.reason is Reason.SUCCEEDED_RESCALE:
        counts["last_scale_time"] = rfc3339(report.now_seconds)
    return counts


def _because(before: InferenceScalerStatus, reason: Reason, message: str, report: PoolReport) -> dict[str, object]:
    """Reason, message, and since when the count and the reason are these."""
    same_count = not isinstance(report, Decided) or report.decision.desired_replicas == before.desired_replicas
    is_kept = before.binding_reason == reason.value and same_count and before.reason_since
    return {
        "binding_reason": reason.value,
        "message": message[:MAXIMUM_MESSAGE_CHARACTERS],
        "reason_since": before.reason_since if is_kept else rfc3339(report.now_seconds),
    }


def _essence(status: InferenceScalerStatus) -> tuple[object, ...]:
    """What a person would want to know at once. Messages and times drift and are left out."""
    return (
        status.observed_generation,
        status.spec_replicas,
        status.ready_replicas,
        status.starting_replicas,
        status.desired_replicas,
        status.binding_reason,
        status.last_scale_time,
        status.forecast.acts if status.forecast else None,
        tuple((each.type, each.status, each.reason, each.observed_generation) for each in status.conditions),
        status.external_metrics is not None,
    )


def _is_held_up(history: ScalingHistory) -> bool:
    """Whether an earlier recommendation was higher than the newest: a scale-down waits for its window to pass."""
    recommendations = history.recommendations
    return bool(recommendations) and max(each.replicas for each in recommendations) > recommendations[-1].replicas
