"""What does the ridge see of a pool: its last hours, its usual day and its phase within the hour?

All values are g = sqrt(load / scale): the square root makes the noise of counts even, the scale makes pools alike.
The base is the last value plus the profile's change, so a ridge with zero weights already forecasts sensibly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.arrays import BoolArray, FloatArray
from forecasting.load_history import LoadHistory
from forecasting.parameters import (
    LARGEST_DEPARTURE,
    RIDGE_CONSTANT_PENALTY,
    RIDGE_PENALTY,
    ForecastingParameters,
)

WINDOW_LAGS = list(range(13))  # a bit more than an hour of 5-minute bins
EXTRA_LAGS = (3, 4, 6, 12)
MAXIMUM_PHASES = 12
FIXED_FEATURES = 20  # 9 around the base, 8 of the shape of the last hour, 2 of the last hours, 1 constant


def phase_count(parameters: ForecastingParameters) -> int:
    """Distinguished phases of the hour: scheduled jobs start at full and half hours, so loads depend on the minute."""
    return min(MAXIMUM_PHASES, parameters.hour_bins) if parameters.hour_bins > 1 else 0


def feature_penalties(parameters: ForecastingParameters) -> FloatArray:
    """Ridge penalties (steps, features) in the order of `build_features`."""
    penalties = np.full(FIXED_FEATURES + phase_count(parameters), RIDGE_PENALTY)
    penalties[-1] = RIDGE_CONSTANT_PENALTY
    return np.tile(penalties, (parameters.steps, 1))


@dataclass(frozen=True, slots=True)
class Features:
    """Input of one origin: `rows` (pools, steps, features), `base` (pools, steps) in g, `scale` (pools,).

    `window` (13, pools) is g of the last 13 bins, newest first. `is_complete` (pools, steps) is false where a
    feature that needs yesterday is unknown; such rows hold zeros and must not be learned from.
    """

    rows: FloatArray
    base: FloatArray
    scale: FloatArray
    window: FloatArray
    is_complete: BoolArray


def build_features(history: LoadHistory, parameters: ForecastingParameters) -> Features:
    """Features of the forecasts issued when the newest bin of `history` closes."""
    steps, day, scale = parameters.steps, parameters.day_bins, history.scale
    ahead = list(range(1, steps + 1))

    def g(loads: FloatArray) -> FloatArray:
        return np.sqrt(np.maximum(loads, 0.0) / scale)

    window = g(history.clean_lags(WINDOW_LAGS))
    newest = window[0]
    seasonal = g(history.capped_lags([day, 7 * day, *(day - k for k in ahead), *(7 * day - k for k in ahead)]))
    yesterday, week = seasonal[0], seasonal[1]
    yesterday_ahead, week_ahead = seasonal[2 : 2 + steps], seasonal[2 + steps :]
    week = np.where(np.isfinite(week), week, yesterday)
    week_ahead = np.where(np.isfinite(week_ahead), week_ahead, yesterday_ahead)
    profile = g(history.profile_ahead(0))
    profile_ahead = g(np.stack([history.profile_ahead(k) for k in ahead]))

    rows = np.empty((newest.size, steps, FIXED_FEATURES + phase_count(parameters)))
    shared = (window[1], window[2], g(history.hour_level), profile, yesterday, week)
    for position, values in zip((0, 1, 2, 4, 6, 8), shared, strict=True):
        rows[:, :, position] = (values - newest)[:, None]
    for position, values in zip((3, 5, 7), (profile_ahead, yesterday_ahead, week_ahead), strict=True):
        rows[:, :, position] = (values - newest).T
    for position, values in enumerate(_shape_of_last_hour(window), start=9):
        rows[:, :, position] = np.where(np.isfinite(values), values, 0.0)[:, None]
    departures = history.departures / np.sqrt(scale) - (newest - profile)
    departures = np.clip(departures, -LARGEST_DEPARTURE, LARGEST_DEPARTURE)
    rows[:, :, 17:19] = np.where(np.isfinite(departures), departures, 0.0).T[:, None]
    rows[:, :, 19:-1] = _phase_indicator(history.now, parameters)
    rows[:, :, -1] = 1.0
    base = (newest + profile_ahead - profile).T
    is_complete = np.isfinite(rows).all(axis=2) & np.isfinite(base)
    rows[~is_complete] = 0.0
    return Features(rows, base, scale, window, is_complete)


def _shape_of_last_hour(window: FloatArray) -> list[FloatArray]:
    recent = window[:7]
    values = [window[lag] for lag in EXTRA_LAGS]
    values += [recent.max(axis=0), recent.min(axis=0), window.max(axis=0), window.min(axis=0)]
    return [value - window[0] for value in values]


def _phase_indicator(bin_number: int, parameters: ForecastingParameters) -> FloatArray:
    count = phase_count(parameters)
    indicator = np.zeros(count)
    if count:
        indicator[(bin_number % parameters.hour_bins) * count // parameters.hour_bins] = 1.0
    return indicator
