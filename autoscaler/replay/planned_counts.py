"""A policy that does what was planned beforehand: a fixed count, or one count for each bin of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.replay.steered_fleet import SteeredFleet, SteeredPool
from autoscaler.replay.virtual_clock import Recurring


@dataclass(frozen=True, slots=True)
class PlannedCounts:
    """Counts from the run's start, `bin_seconds` each; the last one stays. The fleet has one pool."""

    name: str
    counts: tuple[int, ...]
    bin_seconds: float = 15.0

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """One loop, once a bin."""
        (pool,) = fleet.pools.values()
        return (_Plan(pool, self.counts, self.bin_seconds),)


class _Plan:
    def __init__(self, pool: SteeredPool, counts: tuple[int, ...], bin_seconds: float) -> None:
        self.interval_seconds = bin_seconds
        self._pool = pool
        self._counts = counts
        self._next = 0

    def tick(self, now_seconds: float) -> None:
        """Writes the bin's count where it is another."""
        count = self._counts[min(self._next, len(self._counts) - 1)]
        self._next += 1
        if count != self._pool.spec_replicas:
            self._pool.scale(count, "Planned", f"{count}: planned beforehand")
