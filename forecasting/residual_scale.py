"""How wide are a pool's errors just now: after a burst, at this time of day, at this minute of the hour?

The scale of |u| is a log-linear ridge on ratios to its day-long mean: the last half hour, the last 2 hours, this time
of day (+-1 h and to the bin, 5 days), this minute of the hour (24 h), and the shape of the last hour. It starts as
sqrt(half hour x time of day). Knowing the minute is worth 17 % of pinball loss on loads with scheduled bursts.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray, TimeRing, mean_ignoring_missing, means_ignoring_missing, within
from forecasting.parameters import ForecastingParameters
from forecasting.recursive_ridge import RecursiveRidge

PRIOR = np.array([0.5, 0.5, 0, 0, 0, 0, 0, 0, 0.0])
RELATIVE_PENALTIES = np.array([*[1.0] * 8, 0.2])
REMEMBERED_DAYS = 5
ERRORS, HOUR_MEANS = 0, 1
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
        # Of each bin its errors, and in the row of HOUR_MEANS their means over the hours before and after it.
        self._remembered = TimeRing(REMEMBERED_DAYS * day, (2, *shape))
        half_lives = np.array([max(2, day // 48), max(3, day // 12), day])[:, None, None]
        self._rates = 1 - 0.5 ** (1 / half_lives)
        self._levels = np.full((len(half_lives), *shape), np.nan)  # quick, middle, slow
        ahead = np.arange(1, parameters.steps + 1)
        self._around_lags = np.arange(2 * parameters.hour_bins, -1, -1)
        day_lags = np.arange(1, REMEMBERED_DAYS + 1)[:, None] * day - ahead
        hour_lags = np.arange(1, 25)[:, None] * parameters.hour_bins - ahead
        # What is usual at this time of day, to the bin, and at this minute of the hour: a mean of each is taken.
        self._seasonal_lags = np.concatenate([day_lags, day_lags, hour_lags])
        self._seasonal_rows = np.repeat([HOUR_MEANS, ERRORS, ERRORS], [len(day_lags), len(day_lags), len(hour_lags)])
        self._seasonal_starts = np.array([0, len(day_lags), 2 * len(day_lags)])
        self._seasonal_steps = ahead - 1
        self._is_to_come = self._seasonal_lags < 0  # later than the newest bin
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
        remembered = self._remembered
        remembered.rows[now % remembered.length, ERRORS] = errors
        reach = self._parameters.hour_bins
        if now >= reach:
            around = remembered.rows[(now - self._around_lags) % remembered.length, ERRORS].astype(np.float64)
            remembered.rows[(now - reach) % remembered.length, HOUR_MEANS] = mean_ignoring_missing(around, np.nan)
        target = np.log(np.maximum(errors, SMALLEST_TARGET * slow) + 1e-12) - np.log(slow + 1e-12)
        is_telling = slow > SMALLEST_TELLING_SHARE * typical[:, None]
        self._ridge.learn(now, np.where(is_telling, target - MEAN_LOG_OF_ABSOLUTE_ERROR, np.nan))
        moved = np.where(np.isfinite(self._levels), self._levels + self._rates * (errors - self._levels), errors)
        self._levels = np.where(np.isfinite(errors), moved, self._levels)

    def predict(self, now: int, window: FloatArray) -> FloatArray:
        """Scale for the forecasts issued with bin `now`; `window` (13, pools) is g of the last bins, newest first."""
        quick, middle, slow = self._levels
        is_known = np.isfinite(slow)
        reference = np.log(np.maximum(slow, 1e-9))
        usual, to_the_bin, same_minute = self._seasonal_levels(now, slow)
        floor = 0.1 * slow + 1e-9
        levels = [
            *np.maximum(np.array([quick, usual, middle]), 1e-9),
            np.maximum(to_the_bin, floor),
            np.maximum(same_minute, floor),
        ]
        rows = np.empty((*slow.shape, PRIOR.size))
        rows[..., :5] = (np.log(np.array(levels)) - reference).transpose(1, 2, 0)
        rows[..., 5:8] = _restlessness(window)[:, None, :]
        rows[..., 8] = 1.0
        rows[~is_known] = 0.0
        logarithm = reference + within(self._ridge.predict(now, rows), *LOG_RANGE)
        scale: FloatArray = np.where(is_known, np.maximum(np.exp(logarithm), FLOOR_RATIO * slow), np.nan)
        return scale

    def _seasonal_levels(self, now: int, slow: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        bins = (now - self._seasonal_lags) % self._remembered.length
        rows = self._remembered.rows[bins, self._seasonal_rows[:, None], :, self._seasonal_steps]
        known = rows.astype(np.float64)  # lags, steps, pools
        known[self._is_to_come] = np.nan
        usual, to_the_bin, same_minute = means_ignoring_missing(known, self._seasonal_starts, slow.T)
        return usual.T, to_the_bin.T, same_minute.T


def _restlessness(window: FloatArray) -> FloatArray:
    """(pools, 3): level against the hour's median, spread of the half hour against the hour's, last step."""
    newest, median = window[0], np.sort(window, axis=0)[len(window) // 2]
    spread = _deviation(window) + 0.01
    values = [
        np.log(np.maximum(newest, 0.05) / np.maximum(median, 0.05)),
        np.log((_deviation(window[:7]) + 0.01) / spread),
        np.abs(newest - window[1]) / spread - 0.5,
    ]
    return np.where(np.isfinite(spread), values, 0.0).T  # one unknown value is enough for an unknown spread


def _deviation(values: FloatArray) -> FloatArray:
    """Standard deviation over the first axis: `std`, without what it costs on small arrays."""
    mean = values.sum(axis=0) / len(values)
    deviation: FloatArray = np.sqrt(((values - mean) ** 2).sum(axis=0) / len(values))
    return deviation
