"""Loads for tests of the forecaster: made ones with a known shape, and committed traces."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forecasting.series_text import read_series
from forecasting.time_series import TimeSeries

TRACES = Path(__file__).parents[1] / "data" / "traces"
DAY_BINS = 288


def diurnal(days: float, seed: int = 0, day_bins: int = DAY_BINS, noise: float = 3.0) -> NDArray[np.float64]:
    """A clean day between 40 and 160 with Gaussian noise, never below 0."""
    bins = np.arange(round(days * day_bins))
    clean = 100 + 60 * np.sin(2 * np.pi * bins / day_bins)
    return np.maximum(clean + np.random.default_rng(seed).normal(0, noise, len(bins)), 0.0)


def trace(name: str, column: str) -> TimeSeries:
    """A committed trace in its own bins."""
    series = read_series((TRACES / f"{name}.csv").read_text(), column)
    assert isinstance(series, TimeSeries)
    return series
