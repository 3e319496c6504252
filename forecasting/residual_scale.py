"""How wide are a pool's errors just now: after a burst, at this time of day, at this minute of the hour?

The scale of |u| is a log-linear ridge on ratios to its day-long mean: the last half hour, the last 2 hours, this time
of day (+-1 h and to the bin, 5 days), this minute of the hour (24 h), and the shape of the last hour. It starts as
sqrt(half hour x time of day). Knowing the minute is worth 17 % of pinball loss on loads with scheduled bursts.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray, IntArray, TimeRing, mean_ignoring_missing
from forecasting.parameters import ForecastingParameters
from forecasting.recursive_ridge import RecursiveRidge

PRIOR = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0, 0.0])
RELATIVE_PENALTIES = np.array([*[1.0] * 8, 0.2])
REMEMBERED_DAYS = 6
OUTLIER = 12.0  # times the day-long mean: larger errors count as this
SMALLEST_TELLING_SHARE = 0.001
SMALLEST_TARGET = 0.05  # times the day-long mean
MEAN_LOG_OF_ABSOLUTE_ERROR = -0.6  # of errors with mean 1: makes "no knowledge" a constant near zero
LOG_RANGE = (-2.0, 2.5)  # of the scale against the day-long mean
FLOOR_RATIO = 0.3  # of the scale against the day-long mean


class ResidualScale:
    """Scale of |u| (pools, steps), u = (load - forecast) / spread; NaN until the first error is known."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        self._parameters = parameters
        day, shape = parameters.day_bins, (pools, parameters.steps)
        self._errors = TimeRing(REMEMBERED_DAYS * day, shape)
        self._hour_sums = TimeRing(REMEMBERED_DAYS * day, shape)
        self._half_lives = (max(2, day // 48), max(3, day // 12), day)
        self._levels = [np.full(shape, np.nan) for _ in self._half_lives]
        # Errors of later steps tell less, and overlap: their ratios are trusted less.
        penalties = chosen.SCALE_PENALTY * np.outer(np.arange(1, parameters.steps + 1), RELATIVE_PENALTIES)
        self._ridge = RecursiveRidge(
            shape, penalties, PRIOR, chosen.SCALE_HALF_LIFE_DAYS * day, block_bins=parameters.hour_bins
        )

    def learn(self, now: int, absolute_errors: FloatArray, typical: FloatArray) -> None:
        """Takes |u| of the forecasts that have come due with bin `now`, (pools, steps); NaN where not scored.

        `typical` (pools,) is the square root of the mean load. While errors are below 0.1 % of it (an idle or a
        constant pool) there is nothing to learn from their ratios.
        """
        slow = self._levels[2]
        errors = np.where(np.isfinite(slow), np.minimum(absolute_errors, OUTLIER * slow + 1e-12), absolute_errors)
        self._errors.write(now, errors)
        reach = self._parameters.hour_bins
        around = self._errors.read(np.arange(now - 2 * reach, now + 1), now)
        self._hour_sums.write(now - reach, mean_ignoring_missing(around, np.full(errors.shape, np.nan)))
        target = np.log(np.maximum(errors, SMALLEST_TARGET * slow) + 1e-12) - np.log(slow + 1e-12)
        is_telling = slow > SMALLEST_TELLING_SHARE * typical[:, None]
        self._ridge.learn(now, np.where(is_telling, target - MEAN_LOG_OF_ABSOLUTE_ERROR, np.nan))
        known = np.isfinite(errors)
        for position, half_life in enumerate(self._half_lives):
            level, rate = self._levels[position], 1 - 0.5 ** (1 / half_life)
            moved = np.where(np.isfinite(level), level + rate * (errors - level), errors)
            self._levels[position] = np.where(known, moved, level)

    def predict(self, now: int, window: FloatArray) -> FloatArray:
        """Scale for the forecasts issued with bin `now`; `window` (13, pools) is g of the last bins, newest first."""
        slow = self._levels[2]
        reference = np.log(np.maximum(slow, 1e-9))
        usual, to_the_bin, same_minute = self._seasonal_levels(now, slow)
        floor = 0.1 * slow + 1e-9
        levels = (
            np.maximum(self._levels[0], 1e-9),
            np.maximum(usual, 1e-9),
            np.maximum(self._levels[1], 1e-9),
            np.maximum(to_the_bin, floor),
            np.maximum(same_minute, floor),
        )
        rows = np.empty((*slow.shape, PRIOR.size))
        for position, level in enumerate(levels):
            rows[..., position] = np.log(level) - reference
        rows[..., 5:8] = _restlessness(window)[:, None, :]
        rows[..., 8] = 1.0
        rows[~np.isfinite(slow)] = 0.0
        logarithm = reference + np.clip(self._ridge.predict(now, rows), *LOG_RANGE)
        scale: FloatArray = np.where(np.isfinite(slow), np.maximum(np.exp(logarithm), FLOOR_RATIO * slow), np.nan)
        return scale

    def _seasonal_levels(self, now: int, slow: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        day, hour, steps = self._parameters.day_bins, self._parameters.hour_bins, self._parameters.steps
        days, hours = np.arange(1, 6) * day, np.arange(1, 25) * hour
        targets = now + np.arange(1, steps + 1)
        usual, to_the_bin, same_minute = (np.empty_like(slow) for _ in range(3))
        for step, target in enumerate(targets):
            otherwise = slow[:, step]
            usual[:, step] = mean_ignoring_missing(self._read(self._hour_sums, target - days, step, now), otherwise)
            to_the_bin[:, step] = mean_ignoring_missing(self._read(self._errors, target - days, step, now), otherwise)
            hourly = self._read(self._errors, target - hours, step, now)
            same_minute[:, step] = mean_ignoring_missing(hourly, otherwise)
        return usual, to_the_bin, same_minute

    @staticmethod
    def _read(ring: TimeRing, bins: IntArray, step: int, now: int) -> FloatArray:
        rows: FloatArray = ring.rows[bins % ring.length, :, step].astype(np.float64)
        rows[(bins < 0) | (bins > now)] = np.nan
        return rows


def _restlessness(window: FloatArray) -> FloatArray:
    """(pools, 3): level against the hour's median, spread of the half hour against the hour's, last step."""
    median = np.median(window, axis=0)
    spread = window.std(axis=0) + 0.01
    values = np.stack(
        [
            np.log(np.maximum(window[0], 0.05) / np.maximum(median, 0.05)),
            np.log((window[:7].std(axis=0) + 0.01) / spread),
            np.abs(window[0] - window[1]) / spread - 0.5,
        ],
        axis=1,
    )
    finite: FloatArray = np.nan_to_num(values)
    return finite
