"""Which decisions of the last hours are still known? Those at which something changed, as many as fit into memory."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from autoscaler.controller.pool_report import Decided
from autoscaler.decision_record import DecisionRecord

# Some 6 000 records of 1.3 KiB: two hours of a thousand pools of which each changes three times an hour.
MAXIMUM_BYTES = 8 * 1024 * 1024
# What lies between two records that are alike and so far apart was not all alike: say at least so often what is.
LONGEST_SILENCE_SECONDS = 900.0

PoolKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Kept:
    key: PoolKey
    at_seconds: float
    compressed: bytes


class RecentRecords:
    """Records at which a pool's count, wish or reason was another one than before; the oldest of all pools go first."""

    def __init__(self, maximum_bytes: int = MAXIMUM_BYTES) -> None:
        self._maximum_bytes = maximum_bytes
        self._kept: deque[_Kept] = deque()
        self._bytes = 0
        self._last: dict[PoolKey, tuple[tuple[object, ...], float]] = {}

    def is_worth_keeping(self, report: Decided) -> bool:
        """Whether the decision is another one than the pool's last kept one."""
        essence, at_seconds = self._last.get(report.scaler.key, (None, 0.0))
        return _essence(report) != essence or report.now_seconds - at_seconds >= LONGEST_SILENCE_SECONDS

    def keep(self, report: Decided, record: DecisionRecord) -> None:
        """Adds a record, and forgets the oldest where they have become too many."""
        kept = _Kept(report.scaler.key, report.now_seconds, zlib.compress(record.to_json_line().encode(), 1))
        self._last[kept.key] = (_essence(report), kept.at_seconds)
        self._kept.append(kept)
        self._bytes += len(kept.compressed)
        while self._bytes > self._maximum_bytes and len(self._kept) > 1:
            self._bytes -= len(self._kept.popleft().compressed)

    def retain(self, keys: frozenset[PoolKey]) -> None:
        """Forgets what the last kept record was of pools that are gone; their records age away."""
        for key in self._last.keys() - keys:
            del self._last[key]

    def since(self, key: PoolKey, since_seconds: float) -> list[str]:
        """The pool's lines from the one on that was in force at that moment, the oldest first."""
        lines: list[str] = []
        for kept in self._newest_first(key):
            lines.append(zlib.decompress(kept.compressed).decode())
            if kept.at_seconds <= since_seconds:
                break
        return lines[::-1]

    def at(self, key: PoolKey, at_seconds: float) -> str | None:
        """The pool's line that was in force at that moment; None where that is not known any more, or was not yet."""
        for kept in self._newest_first(key):
            if kept.at_seconds <= at_seconds:
                return zlib.decompress(kept.compressed).decode()
        return None

    def _newest_first(self, key: PoolKey) -> Iterator[_Kept]:
        # A copy: the loop may add to it while somebody reads.
        return (kept for kept in reversed(tuple(self._kept)) if kept.key == key)


def _essence(report: Decided) -> tuple[object, ...]:
    decision = report.decision
    return (report.workload.replicas.spec, decision.desired_replicas, decision.reason, decision.binding)
