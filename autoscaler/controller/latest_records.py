"""The newest decision record of each pool, for whoever asks why."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.controller.events import event_of
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.decision_log import DecisionLog
from autoscaler.decision_record import DecisionRecord, record_decision


class LatestRecords:
    """A reporter that makes the record of each decision, writes it to the log and keeps the newest."""

    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._records: dict[tuple[str, str], DecisionRecord] = {}
        self._undecided: dict[tuple[str, str], str] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces the records by those of this tick (one assignment each: readers need no lock)."""
        records, undecided = {}, {}
        for report in reports:
            if not isinstance(report, Decided):
                event = event_of(report)
                undecided[report.scaler.key] = f"{event.reason.value}: {event.message}"
                continue
            record = record_decision(
                report.scaler.namespace, report.scaler.name, report.decision_input, report.decision, report.actuation
            )
            self._log.write(record)
            records[report.scaler.key] = record
        self._records, self._undecided = records, undecided

    def latest(self, namespace: str, name: str) -> DecisionRecord | None:
        """The pool's record of the last tick; None when nothing was decided for it."""
        return self._records.get((namespace, name))

    def undecided_because(self, namespace: str, name: str) -> str | None:
        """Why nothing was decided for the pool in the last tick; None for one that was decided, or is not known."""
        return self._undecided.get((namespace, name))
