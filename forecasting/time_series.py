"""One pool's load over time: evenly spaced means, with missing bins as missing.

Rows of any kind become a series here: samples of a rate are averaged per bin, requests are summed and divided by the
bin's length. A bin with less than half of its samples is missing (NaN), never zero; a bin without a request inside
the time that was recorded is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.arrays import FloatArray, IntArray

LEAST_OBSERVED_SHARE = 0.5
MAXIMUM_BINS = 2_000_000  # 19 years of 5-minute bins: more is a wrong time column


@dataclass(frozen=True, slots=True)
class TimeSeries:
    """Mean load per bin. Bin i covers [start_seconds + i step_seconds, + step_seconds); NaN is missing."""

    start_seconds: float
    step_seconds: int
    values: FloatArray

    @property
    def end_seconds(self) -> float:
        """When the last bin closed."""
        return self.start_seconds + self.step_seconds * len(self.values)

    def resampled(self, step_seconds: int) -> TimeSeries:
        """The same load in wider bins, aligned to multiples of `step_seconds`; the last bin may be missing."""
        if step_seconds % self.step_seconds != 0:
            raise ValueError(f"bins of {step_seconds} s are no multiple of {self.step_seconds} s")
        at = self.start_seconds + self.step_seconds * np.arange(len(self.values), dtype=np.float64)
        return mean_of_samples(at, self.values, self.step_seconds, step_seconds)


def mean_of_samples(
    at_seconds: FloatArray, values: FloatArray, spacing_seconds: float, step_seconds: int
) -> TimeSeries:
    """Means of samples taken every `spacing_seconds`. NaN and infinite samples are missing. Order does not matter.

    Bins are aligned to multiples of `step_seconds`. No samples: a series without bins.
    """
    if len(at_seconds) == 0:
        return TimeSeries(0.0, step_seconds, np.empty(0))
    first, bins = _bins(at_seconds, step_seconds)
    known = np.isfinite(values)
    count = np.bincount(bins[known], minlength=int(bins.max()) + 1)
    total = np.bincount(bins[known], weights=values[known], minlength=int(bins.max()) + 1)
    enough = count >= max(1.0, LEAST_OBSERVED_SHARE * step_seconds / spacing_seconds)
    return TimeSeries(float(first * step_seconds), step_seconds, np.where(enough, total / np.maximum(count, 1), np.nan))


def rate_of_events(at_seconds: FloatArray, amounts: FloatArray, step_seconds: int) -> TimeSeries:
    """Amount per second of events such as requests; bins without an event are 0, a missing amount counts as 0.

    The last bin is left out, as events may still come in it. No events: a series without bins.
    """
    if len(at_seconds) == 0:
        return TimeSeries(0.0, step_seconds, np.empty(0))
    first, bins = _bins(at_seconds, step_seconds)
    total = np.bincount(bins, weights=np.nan_to_num(amounts, posinf=0.0, neginf=0.0), minlength=int(bins.max()) + 1)
    return TimeSeries(float(first * step_seconds), step_seconds, total[:-1] / step_seconds)


def _bins(at_seconds: FloatArray, step_seconds: int) -> tuple[int, IntArray]:
    numbers = np.floor(at_seconds / step_seconds)
    if numbers.max() - numbers.min() >= MAXIMUM_BINS:
        raise ValueError(
            f"times span {numbers.max() - numbers.min():.0f} bins of {step_seconds} s; is the unit seconds?"
        )
    first = int(numbers.min())
    return first, (numbers - first).astype(np.int64)
