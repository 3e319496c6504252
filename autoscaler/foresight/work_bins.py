"""How much work arrived in each bin of time? Readings of ticks go in, means of whole bins come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.foresight.arriving_work import WorkReading, arriving_per_second
from autoscaler.observers.metrics import PoolKey

# A mean of less than half of a bin says little of the bin.
LEAST_SHARE = 0.5


@dataclass(slots=True)
class _Readings:
    first_at: float
    first: WorkReading
    last_at: float
    last: WorkReading
    total: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True)
class ClosedBin:
    """Arriving tokens per second by pool in bin `number` (it begins at number x width); unknown pools are not in it."""

    number: int
    loads: Mapping[PoolKey, float]


class WorkBins:
    """The bin under way. Bins begin at multiples of their width in unix time, those of all pools alike."""

    def __init__(self, bin_seconds: int) -> None:
        self._bin_seconds = bin_seconds
        self._number: int | None = None
        self._ticks: list[float] = []
        self._readings: dict[PoolKey, _Readings] = {}

    def take(self, readings: Mapping[PoolKey, WorkReading | None], now_seconds: float) -> ClosedBin | None:
        """Takes one tick's readings; the bin before, if this tick is the first of another one.

        A clock that went back takes nothing until it is where it was.
        """
        number = int(now_seconds // self._bin_seconds)
        if self._number is not None and number < self._number:
            return None
        closed = None
        if number != self._number:
            closed = None if self._number is None else ClosedBin(self._number, self._loads())
            self._number, self._ticks, self._readings = number, [], {}
        self._ticks.append(now_seconds)
        for key, reading in readings.items():
            if reading is not None:
                self._add(key, reading, now_seconds)
        return closed

    def _add(self, key: PoolKey, reading: WorkReading, now_seconds: float) -> None:
        known = self._readings.get(key)
        if known is None:
            known = self._readings[key] = _Readings(now_seconds, reading, now_seconds, reading)
        known.last_at, known.last = now_seconds, reading
        known.total += reading.processed_per_second
        known.count += 1

    def _loads(self) -> dict[PoolKey, float]:
        ticks = len(self._ticks)
        spacing = (self._ticks[-1] - self._ticks[0]) / (ticks - 1) if ticks > 1 else 0.0
        if ticks * spacing < LEAST_SHARE * self._bin_seconds:
            return {}
        return {
            key: arriving_per_second(each.total / each.count, each.first, each.last, each.last_at - each.first_at)
            for key, each in self._readings.items()
            if each.count >= LEAST_SHARE * ticks
        }
