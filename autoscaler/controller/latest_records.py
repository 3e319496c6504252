"""The newest decision record of each pool, for whoever asks why."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.decision_log import DecisionLog, DecisionRecord, record_decision


class LatestRecords:
    """A reporter that makes the record of each decision, writes it to the log and keeps the newest."""

    def __init__(self, log: DecisionLog) -> None:
        self._log = log
        self._records: dict[tuple[str, str], DecisionRecord] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces the records by those of this tick (one assignment: readers need no lock)."""
        records = {}
        for report in reports:
            if not isinstance(report, Decided):
                continue
            record = record_decision(
                report.scaler.namespace, report.scaler.name, report.decision_input, report.decision, report.actuation
            )
            self._log.write(record)
            records[report.scaler.key] = record
        self._records = records

    def latest(self, namespace: str, name: str) -> DecisionRecord | None:
        """The pool's record of the last tick; None when nothing was decided for it."""
        return self._records.get((namespace, name))
