"""What does the ridge see of a pool: its last hours, its usual day and its phase within the hour?

All values are g = sqrt(load / scale): the square root makes the noise of counts even, the scale makes pools alike.
The base is the last value plus the profile's change, so a ridge with zero weights already forecasts sensibly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.arrays import BoolArray, FloatArray, known_or, within
from forecasting.load_history import LoadHistory
from forecasting.parameters import (
    LARGEST_DEPARTURE,
    RIDGE_CONSTANT_PENALTY,
    RIDGE_PENALTY,
    ForecastingParameters,
)

WINDOW_LAGS = np.arange(13)  # a bit more than an hour of 5-minute bins
EXTRA_LAGS = [3, 4, 6, 12]
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
    steps, scale = parameters.steps, history.scale
    parts = [history.clean_lags(WINDOW_LAGS), history.hour_level[None], history.earlier, history.profiles]
    roots = np.sqrt(np.maximum(np.concatenate(parts), 0.0) / scale)
    window, hour_level = roots[: len(WINDOW_LAGS)], roots[len(WINDOW_LAGS)]
    yesterday, week, profile = roots[len(WINDOW_LAGS) + 1 :].reshape(3, steps + 1, -1)
    week = np.where(np.isfinite(week), week, yesterday)
    newest = window[0]

    rows = np.empty((newest.size, steps, FIXED_FEATURES + phase_count(parameters)))
    alike = np.array([window[1], window[2], hour_level, profile[0], yesterday[0], week[0]]) - newest
    rows[:, :, [0, 1, 2, 4, 6, 8]] = alike.T[:, None]
    by_step = np.array([profile[1:], yesterday[1:], week[1:]]) - newest
    rows[:, :, 3:8:2] = by_step.transpose(2, 1, 0)
    shape = _shape_of_last_hour(window)
    departures = history.departures / np.sqrt(scale) - (newest - profile[0])
    departures = within(departures, -LARGEST_DEPARTURE, LARGEST_DEPARTURE)
    rows[:, :, 9:19] = known_or(np.concatenate([shape, departures]), 0.0).T[:, None]
    rows[:, :, 19:-1] = _phase_indicator(history.now, parameters)
    rows[:, :, -1] = 1.0
    base = (newest + profile[1:] - profile[0]).T
    is_complete = np.isfinite(rows).all(axis=2) & np.isfinite(base)
    rows[~is_complete] = 0.0
    return Features(rows, base, scale, window, is_complete)


def _shape_of_last_hour(window: FloatArray) -> FloatArray:
    """(8, pools): earlier values, and the extremes of half an hour and of an hour, against the newest value."""
    extremes = [window[:7].max(axis=0), window[:7].min(axis=0), window.max(axis=0), window.min(axis=0)]
    shape: FloatArray = np.concatenate([window[EXTRA_LAGS], extremes]) - window[0]
    return shape


def _phase_indicator(bin_number: int, parameters: ForecastingParameters) -> FloatArray:
    count = phase_count(parameters)
    indicator = np.zeros(count)
    if count:
        indicator[(bin_number % parameters.hour_bins) * count // parameters.hour_bins] = 1.0
    return indicator
