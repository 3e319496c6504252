"""How did the numbers of one pool move? A bounded, immutable history of named columns over common times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PoolSeries:
    """Rows in order of time; NaN where a column had no value. Single precision: it is for the eye."""

    names: tuple[str, ...]
    times_seconds: NDArray[np.float64]
    table: NDArray[np.float32]

    def appended(self, at_seconds: float, values: Mapping[str, float], limit: int) -> PoolSeries:
        """A new series with one more row and at most `limit` rows. New names get columns, empty before this row."""
        names = self.names
        table = self.table
        if not values.keys() <= set(names):
            names = (*names, *(name for name in values if name not in names))
            empty = np.full((len(table), len(names) - len(self.names)), np.nan, np.float32)
            table = np.concatenate([table.reshape(len(table), len(self.names)), empty], axis=1)
        row = np.array([[values.get(name, math.nan) for name in names]], np.float32)
        kept = slice(max(0, len(table) + 1 - limit), None)
        return PoolSeries(
            names,
            np.concatenate([self.times_seconds[kept], [at_seconds]]),
            np.concatenate([table[kept], row]),
        )

    def after(self, seconds: float) -> PoolSeries:
        """The rows later than `seconds`."""
        first = int(np.searchsorted(self.times_seconds, seconds, side="right"))
        return PoolSeries(self.names, self.times_seconds[first:], self.table[first:])


NO_SERIES = PoolSeries((), np.empty(0), np.empty((0, 0), np.float32))
