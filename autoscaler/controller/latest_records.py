"""The newest decision record of each pool and the last ones that differed, for whoever asks why."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.controller.events import event_of
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.controller.recent_records import RecentRecords
from autoscaler.decision_log import DecisionLog
from autoscaler.decision_record import DecisionRecord, record_decision


class LatestRecords:
    """A reporter that writes the record of each decision to the log, and keeps the newest decision of each pool."""

    def __init__(self, log: DecisionLog | None, recent: RecentRecords | None = None) -> None:
        """Without a log a record is made only of a decision that differs from the one before, or is asked for."""
        self._log = log
        self._recent = recent or RecentRecords()
        self._decided: dict[tuple[str, str], Decided] = {}
        self._undecided: dict[tuple[str, str], str] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces the decisions by those of this tick (one assignment each: readers need no lock)."""
        decided, undecided = {}, {}
        for report in reports:
            if not isinstance(report, Decided):
                event = event_of(report)
                undecided[report.scaler.key] = f"{event.reason.value}: {event.message}"
                continue
            decided[report.scaler.key] = report
            self._keep(report)
        self._recent.retain(frozenset(decided))
        self._decided, self._undecided = decided, undecided

    def _keep(self, report: Decided) -> None:
        is_worth_keeping = self._recent.is_worth_keeping(report)
        if self._log is None and not is_worth_keeping:
            return
        record = _record_of(report)
        if self._log is not None:
            self._log.write(record)
        if is_worth_keeping:
            self._recent.keep(report, record)

    def latest(self, namespace: str, name: str) -> DecisionRecord | None:
        """The pool's record of the last tick; None when nothing was decided for it."""
        report = self._decided.get((namespace, name))
        return None if report is None else _record_of(report)

    def at(self, namespace: str, name: str, at_seconds: float) -> str | None:
        """The line of the decision that was in force at that moment (unix seconds); None where it is not known."""
        report = self._decided.get((namespace, name))
        if report is not None and report.now_seconds <= at_seconds:
            return _record_of(report).to_json_line()
        return self._recent.at((namespace, name), at_seconds)

    def back(self, namespace: str, name: str, seconds: float) -> list[str]:
        """The lines of the last so many seconds at which something changed, and the newest, in order.

        The first is the one that was in force when that time began. Empty where nothing is decided for the pool now.
        """
        report = self._decided.get((namespace, name))
        if report is None:
            return []
        lines = self._recent.since((namespace, name), report.now_seconds - seconds)
        newest = _record_of(report).to_json_line()
        return lines if lines[-1:] == [newest] else [*lines, newest]

    def undecided_because(self, namespace: str, name: str) -> str | None:
        """Why nothing was decided for the pool in the last tick; None for one that was decided, or is not known."""
        return self._undecided.get((namespace, name))


def _record_of(report: Decided) -> DecisionRecord:
    return record_decision(
        report.scaler.namespace, report.scaler.name, report.decision_input, report.decision, report.actuation
    )
