"""What a report means for the object's status, and when that is worth a write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.conditions import Condition, ConditionStatus, ConditionType, rfc3339, set_condition
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.api.status import MAXIMUM_RECORD_CHARACTERS, InferenceScalerStatus, read_status, save_history
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Unobserved
from policies.history import ScalingHistory
from policies.observation import ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason

TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE

# While an earlier, higher recommendation still holds the count up, a restart must find it: it is saved this often.
WINDOW_SAVE_SECONDS = 30.0
# Numbers in messages drift without meaning anything new; they are refreshed this often.
REFRESH_SECONDS = 300.0

# Reasons by which the count is held because of what is not known.
BLIND_REASONS = frozenset({Reason.METRICS_UNAVAILABLE, Reason.LOW_COVERAGE, Reason.FALLBACK, Reason.RECOVERING})
LIMITING_REASONS = frozenset(
    {Reason.SCALE_UP_LIMIT, Reason.SCALE_DOWN_LIMIT, Reason.TOO_MANY_REPLICAS, Reason.TOO_FEW_REPLICAS}
)


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

    def __init__(self, sink: StatusSink, records: LatestRecords) -> None:
        self._sink = sink
        self._records = records
        self._written: dict[tuple[str, str], _Written] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Compares with what was written last (at first: with what stands in the object)."""
        still_there = {report.scaler.key for report in reports}
        for key in self._written.keys() - still_there:
            del self._written[key]
        for report in reports:
            self._report_one(report)

    def _report_one(self, report: PoolReport) -> None:
        scaler = report.scaler
        uid = scaler.uid if isinstance(scaler, InferenceScaler) else ""
        written = self._written.get(scaler.key)
        if written is None or written.uid != uid:
            written = _Written(uid, _present(scaler), 0.0)
        record = self._records.latest(*scaler.key)
        status = next_status(written.status, report, record.to_json_line() if record else None)
        if is_worth_writing(written.status, status, report, report.now_seconds - written.at_seconds):
            self._sink.write(scaler.namespace, scaler.name, status)
            self._written[scaler.key] = _Written(uid, status, report.now_seconds)


def _present(scaler: InferenceScaler | InvalidInferenceScaler) -> InferenceScalerStatus:
    return read_status(scaler.status) if isinstance(scaler, InferenceScaler) else InferenceScalerStatus()


def next_status(before: InferenceScalerStatus, report: PoolReport, record: str | None) -> InferenceScalerStatus:
    """The status that a report leads to; what the report does not speak of is kept."""
    generation = report.scaler.generation
    conditions = _Conditions(before.conditions, generation, report.now_seconds)
    changes: dict[str, object] = {"observed_generation": generation}
    if isinstance(report, Rejected):
        problems = "; ".join(report.scaler.problems)
        conditions.set(ConditionType.SPEC_ACCEPTED, FALSE, Reason.SPEC_INVALID, problems)
        conditions.set(ConditionType.SCALING_ACTIVE, FALSE, Reason.SPEC_INVALID, "nothing is decided for this spec")
        changes |= _because(before, Reason.SPEC_INVALID, problems, report.now_seconds)
        return before.model_copy(update=changes | {"conditions": conditions.result})
    conditions.set(ConditionType.SPEC_ACCEPTED, TRUE, Reason.SPEC_ACCEPTED, "the spec is valid")
    if isinstance(report, Unobserved):
        unavailable = report.unavailable
        conditions.set(ConditionType.TARGET_FOUND, FALSE, unavailable.reason, unavailable.message)
        conditions.set(ConditionType.SCALING_ACTIVE, FALSE, unavailable.reason, unavailable.message)
        changes |= _because(before, unavailable.reason, unavailable.message, report.now_seconds)
    elif isinstance(report, Crashed):
        conditions.set(ConditionType.SCALING_ACTIVE, FALSE, Reason.INTERNAL_ERROR, report.problem)
        changes |= _because(before, Reason.INTERNAL_ERROR, report.problem, report.now_seconds)
    else:
        _judge(report, conditions)
        changes |= _counts(before, report)
        if record is not None and len(record) <= MAXIMUM_RECORD_CHARACTERS:
            changes["last_record"] = record
    return before.model_copy(update=changes | {"conditions": conditions.result})


def is_worth_writing(
    before: InferenceScalerStatus, after: InferenceScalerStatus, report: PoolReport, seconds_since: float
) -> bool:
    """True where a count, a reason, a condition or the generation changed, or what must not be lost has aged."""
    if _essence(before) != _essence(after):
        return True
    if (
        isinstance(report, Decided)
        and _is_held_up(report.decision.next_history)
        and seconds_since >= WINDOW_SAVE_SECONDS
    ):
        return True
    return seconds_since >= REFRESH_SECONDS and before.message != after.message


class _Conditions:
    def __init__(self, conditions: tuple[Condition, ...], generation: int, now_seconds: float) -> None:
        self.result = conditions
        self._generation = generation
        self._now_seconds = now_seconds

    def set(self, kind: ConditionType, status: ConditionStatus, reason: Reason, message: str) -> None:
        self.result = set_condition(self.result, kind, status, reason, message, self._generation, self._now_seconds)


def _judge(report: Decided, conditions: _Conditions) -> None:
    target, decision = report.workload.target, report.decision
    conditions.set(
        ConditionType.TARGET_FOUND, TRUE, Reason.SUCCEEDED_GET_SCALE, f"{target.kind} {target.namespace}/{target.name}"
    )
    metrics = report.decision_input.metrics
    if isinstance(metrics, ObservationUnavailable):
        conditions.set(ConditionType.METRICS_AVAILABLE, FALSE, metrics.reason, metrics.message)
    elif metrics.coverage < 1.0:
        message = f"{metrics.fresh_replicas} of {metrics.ready_replicas} ready replicas have fresh samples"
        conditions.set(ConditionType.METRICS_AVAILABLE, FALSE, Reason.LOW_COVERAGE, message)
    else:
        message = f"all {metrics.ready_replicas} ready replicas have fresh samples"
        conditions.set(ConditionType.METRICS_AVAILABLE, TRUE, Reason.VALID_METRIC_FOUND, message)
    held_blind = next((step for step in decision.steps if step.reason in BLIND_REASONS), None)
    if held_blind is not None:
        conditions.set(ConditionType.SCALING_ACTIVE, FALSE, held_blind.reason, held_blind.message)
    else:
        conditions.set(ConditionType.SCALING_ACTIVE, TRUE, Reason.VALID_METRIC_FOUND, "votes are counted")
    limiting = next((step for step in reversed(decision.steps) if step.reason in LIMITING_REASONS), None)
    if limiting is not None and limiting.before != limiting.after:
        conditions.set(ConditionType.SCALING_LIMITED, TRUE, limiting.reason, limiting.message)
    else:
        conditions.set(ConditionType.SCALING_LIMITED, FALSE, Reason.DESIRED_WITHIN_RANGE, "no limit binds")
    _judge_write(report, conditions)


def _judge_write(report: Decided, conditions: _Conditions) -> None:
    """Able to scale: nobody else steers, and the last write (if there was one to make) went through."""
    if report.workload.competing_writers:
        competitor = report.workload.competing_writers[0]
        message = f"{competitor.who} steers {report.workload.target.name} too; nothing is written while it does"
        conditions.set(ConditionType.ABLE_TO_SCALE, FALSE, competitor.reason, message)
        return
    outcome = report.actuation
    fine = {Reason.READY_FOR_NEW_SCALE, Reason.SUCCEEDED_RESCALE, Reason.DRY_RUN}
    status = TRUE if outcome.reason in fine else FALSE
    if report.scaler.spec.mode is Mode.DRY_RUN:
        conditions.set(ConditionType.ABLE_TO_SCALE, FALSE, Reason.DRY_RUN, "mode DryRun: decided, never written")
        return
    conditions.set(ConditionType.ABLE_TO_SCALE, status, outcome.reason, outcome.message)


def _counts(before: InferenceScalerStatus, report: Decided) -> dict[str, object]:
    replicas, decision = report.workload.replicas, report.decision
    rescaled = report.actuation.reason is Reason.SUCCEEDED_RESCALE
    history = save_history(report.next_history)
    return {
        "spec_replicas": replicas.spec,
        "ready_replicas": replicas.ready,
        "starting_replicas": replicas.starting,
        "desired_replicas": decision.desired_replicas,
        "accelerators_desired": _accelerators(report.workload.accelerators_per_replica, decision.desired_replicas),
        "history": history,
        "last_scale_time": rfc3339(report.now_seconds) if rescaled else before.last_scale_time,
        **_because(before, decision.reason, decision.message, report.now_seconds, decision.desired_replicas),
    }


def _accelerators(per_replica: int | None, replicas: int) -> int | None:
    return None if per_replica is None else per_replica * replicas


def _because(
    before: InferenceScalerStatus, reason: Reason, message: str, now_seconds: float, desired: int | None = None
) -> dict[str, object]:
    same = before.binding_reason == reason.value and desired in (None, before.desired_replicas)
    since = before.reason_since if same and before.reason_since else rfc3339(now_seconds)
    return {"binding_reason": reason.value, "message": message[:4096], "reason_since": since}


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
        tuple((each.type, each.status, each.reason, each.observed_generation) for each in status.conditions),
    )


def _is_held_up(history: ScalingHistory) -> bool:
    """Whether an earlier recommendation was higher than the newest: a scale-down waits for its window to pass."""
    recommendations = history.recommendations
    return bool(recommendations) and max(each.replicas for each in recommendations) > recommendations[-1].replicas
