"""The array types all modules of this package share, the two rings over time, and what is done with missing values.

A bin of few pools costs what hundreds of calls of numpy cost, however small the arrays: so `within` instead of np.clip,
and `known_or` instead of np.nan_to_num, which make several calls of their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def mean_ignoring_missing(values: FloatArray, otherwise: FloatArray | float) -> FloatArray:
    """Mean over the first axis of what is not NaN; `otherwise` where nothing is known."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), otherwise)


def means_ignoring_missing(values: FloatArray, starts: IntArray, otherwise: FloatArray) -> FloatArray:
    """The same of each part of the first axis, parts beginning at `starts`: (parts, ...)."""
    known = np.isfinite(values)
    count = np.add.reduceat(known, starts, axis=0, dtype=np.int64)
    total = np.add.reduceat(np.where(known, values, 0.0), starts, axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), otherwise)


def known_or(values: FloatArray, otherwise: FloatArray | float) -> FloatArray:
    """`values`, and `otherwise` where they are NaN."""
    return np.where(np.isnan(values), otherwise, values)


def known_loads(loads: FloatArray) -> FloatArray:
    """`loads` with NaN for what is no load: infinite and negative values."""
    return np.where(np.isfinite(loads) & (loads >= 0), loads, np.nan)


def within(values: FloatArray, low: FloatArray | float, high: FloatArray | float) -> FloatArray:
    """`values` cut to low..high; NaN stays."""
    cut: FloatArray = np.minimum(np.maximum(values, low), high)
    return cut


class TimeRing:
    """The last `length` bins of an array per bin, NaN where nothing was written; time is the first axis.

    Bins are numbered from 0. float32 halves the memory of a fleet; loads keep 7 digits.
    """

    def __init__(self, length: int, shape: tuple[int, ...]) -> None:
        self.length = length
        self.rows = np.full((length, *shape), np.nan, np.float32)

    def write(self, bin_number: int, values: FloatArray) -> None:
        """Stores the values of one bin over those of `length` bins before."""
        self.rows[bin_number % self.length] = values

    def read(self, bin_numbers: IntArray | list[int], now: int) -> FloatArray:
        """Rows of the given bins, oldest known is `now - length + 1`; NaN for bins outside (now - length, now]."""
        wanted = np.asarray(bin_numbers)
        rows: FloatArray = self.rows[wanted % self.length].astype(np.float64)
        rows[(wanted < 0) | (wanted > now) | (wanted <= now - self.length)] = np.nan
        return rows

    def read_lags(self, lags: IntArray, now: int) -> FloatArray:
        """Rows of the bins `lags` before `now`, the newest one written, with 0 <= lag < length; NaN before bin 0."""
        rows: FloatArray = self.rows[(now - lags) % self.length].astype(np.float64)
        return rows


class ForecastRing:
    """What is said of the bins to come, kept until they close.

    Values are (pools, columns, ...); a column is about the bin that is `bins_ahead[column]` >= 1 after the origin.
    """

    def __init__(self, pools: int, bins_ahead: IntArray, shape: tuple[int, ...] = ()) -> None:
        length = int(bins_ahead.max()) + 1
        self._columns = np.arange(len(bins_ahead))
        self._rows = np.full((length, pools, len(bins_ahead), *shape), np.nan)
        self._places = (np.arange(length)[:, None] + bins_ahead) % length  # by the origin's own place

    def say(self, origin: int, values: FloatArray) -> None:
        """Stores what is said when bin `origin` has closed."""
        self._rows[self._places[origin % len(self._rows)], :, self._columns] = values.swapaxes(0, 1)

    def take(self, bin_number: int) -> FloatArray:
        """What was said of a bin that has closed, NaN where nothing was; it is forgotten then."""
        row = self._rows[bin_number % len(self._rows)]
        said: FloatArray = row.copy()
        row.fill(np.nan)
        return said
