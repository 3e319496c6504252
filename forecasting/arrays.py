"""The array types all modules of this package share, and the one way a ring over time is read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


def mean_ignoring_missing(values: FloatArray, otherwise: FloatArray) -> FloatArray:
    """Mean over the first axis of what is not NaN; `otherwise` where nothing is known."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), otherwise)


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
