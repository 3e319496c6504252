"""Where do the decisions of a replay go? One JSON line each, in the format of the controller's decision log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.pool_report import PoolReport, Reporter
from autoscaler.decision_record import DecisionRecord


class DecisionFile:
    """A file that `tokenscaler explain --log` reads. Of several seeds only the first run of each policy is kept."""

    def __init__(self, lines: TextIO) -> None:
        self._lines = lines
        self._seeds: dict[str, int] = {}
        self.problem: OSError | None = None

    def reporter(self, policy: str, seed: int) -> Reporter:
        """What writes the decisions of one run."""
        if self._seeds.setdefault(policy, seed) != seed:
            return _Nowhere()
        return LatestRecords(self)

    def write(self, record: DecisionRecord) -> None:
        """Appends one record; after one that could not be written, for want of space, none."""
        if self.problem is not None:
            return
        try:
            self._lines.write(record.to_json_line() + "\n")
        except OSError as error:
            self.problem = error  # a reporter must not fail the tick; who opened the file looks here


class _Nowhere:
    def report(self, reports: Sequence[PoolReport]) -> None:
        """Keeps nothing."""
