"""How much load will each pool carry in the next bins? The model that acts, for all pools in one set of arrays.

Point: a recursive ridge around the last value and the day's profile. Interval: recent errors, standardised by a
learned scale and calibrated online. `forecasting/README.md` has the design and its measurements.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import BoolArray, FloatArray, ForecastRing, IntArray, within
from forecasting.calibrated_quantiles import CalibratedQuantiles, CalibrationParameters
from forecasting.features import Features, build_features, feature_penalties
from forecasting.forecast import FleetPrediction
from forecasting.load_history import LoadHistory
from forecasting.outage_memory import OutageMemory
from forecasting.parameters import ForecastingParameters
from forecasting.recursive_ridge import RecursiveRidge
from forecasting.residual_scale import ResidualScale

SPREAD_FLOOR = 0.02  # of the mean load, under the square root of the spread


class FleetModel:
    """Forecaster of a fixed number of pools whose bins close together.

    Columns 0..steps-1 are the steps; columns steps..2 steps-2 are the maxima of the first 2..steps bins.
    """

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        day, shape = parameters.day_bins, (pools, parameters.steps)
        self._parameters = parameters
        self.history = LoadHistory(pools, parameters)
        penalties = feature_penalties(parameters)
        self._ridge = RecursiveRidge(
            shape, penalties, np.zeros(penalties.shape[1]), chosen.RIDGE_HALF_LIFE_DAYS * day, parameters.hour_bins
        )
        self._trained_rows = np.zeros(shape)
        self._usual_residual = np.full(shape, np.nan)
        self._scale = ResidualScale(pools, parameters)
        calibration = CalibrationParameters(
            parameters.levels,
            chosen.RESIDUAL_RING_DAYS * day,
            chosen.LEVEL_ADAPTATION,
            evaluation_bins=parameters.hour_bins,
            prior_weight=chosen.PRIOR_CURVE_WEIGHT,
            largest_error=chosen.LARGEST_ERROR,
        )
        self._quantiles = CalibratedQuantiles(pools, 2 * parameters.steps - 1, calibration)
        self._outages = OutageMemory(pools, parameters)
        ahead = np.arange(1, parameters.steps + 1)
        self._issued = ForecastRing(pools, np.concatenate([ahead, ahead[1:]]), (3 + len(parameters.levels),))
        self._bases = ForecastRing(pools, ahead, (2,))
        self._pool, self._step = np.arange(pools)[:, None], np.tile(ahead - 1, (pools, 1))
        self._recent = np.full((parameters.steps, pools), np.nan)  # observed loads, newest first

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """Takes the loads (pools,) of the bin that has just closed; forecasts the bins after it.

        Missing loads are NaN (infinite and negative ones count as missing). A pool without any observation has
        zeros: ask `has_data` first. Quantiles are finite, >= 0, ascending, at most 3 times the largest load seen.
        """
        self.history.accept(loads)
        loads = self.history.loads
        observed = np.where(self.history.is_missing, np.nan, loads)
        self._recent = np.concatenate([observed[None], self._recent[:-1]])
        self._learn(observed, loads)
        self._outages.learn(self.history.now, loads, self.history)
        return self._predict(loads)

    @property
    def has_data(self) -> BoolArray:
        """Pools (pools,) with at least one observation."""
        return self.history.observed_bins > 0

    def _learn(self, observed: FloatArray, loads: FloatArray) -> None:
        now, steps, history = self.history.now, self._parameters.steps, self.history
        issued = self._issued.take(now)
        point, spread, scale, quantiles = issued[..., 0], issued[..., 1], issued[..., 2], issued[..., 3:]
        maxima = np.maximum.accumulate(self._recent, axis=0)[1:].T
        outcome = np.concatenate([np.repeat(observed[:, None], steps, axis=1), maxima], axis=1)
        errors = (outcome - point) / np.maximum(spread, np.sqrt(SPREAD_FLOOR * history.scale)[:, None])
        counted = np.concatenate([np.repeat(loads[:, None], steps, axis=1), maxima], axis=1)[..., None]
        covered = np.where(np.isfinite(counted) & np.isfinite(quantiles), counted <= quantiles, np.nan)
        residuals = self._residuals(observed)
        self._ridge.learn(now, self._clipped(residuals))
        self._trained_rows += np.isfinite(residuals)
        self._scale.learn(now, np.abs(errors[:, :steps]), np.sqrt(np.maximum(history.mean, 0.0)))
        self._quantiles.learn(now, errors / scale, covered)

    def _residuals(self, observed: FloatArray) -> FloatArray:
        """What the ridge's corrections should have been, in g; NaN where features or the load are missing."""
        issued = self._bases.take(self.history.now)
        base, scale = issued[..., 0], issued[..., 1]
        residuals: FloatArray = np.sqrt(observed[:, None] / scale) - base
        return residuals

    def _clipped(self, residuals: FloatArray) -> FloatArray:
        """Residuals within 3 running 0.8-quantiles: a median would be 0 where more than half the bins are empty."""
        usual, size = self._usual_residual, np.abs(residuals)
        is_known = np.isfinite(usual)
        bound = np.where(is_known, chosen.RESIDUAL_CLIP * usual, np.inf) + 1e-9
        moved = np.maximum(usual * (1 + 0.05 * ((size > usual) - 0.2)), 1e-6)
        moved = np.where(is_known, moved, np.maximum(size, 1e-3))
        self._usual_residual = np.where(np.isfinite(residuals), moved, usual)
        return within(residuals, -bound, bound)

    def _predict(self, loads: FloatArray) -> FleetPrediction:
        history, steps = self.history, self._parameters.steps
        features = build_features(history, self._parameters)
        point = self._point(features)
        mean = np.maximum(history.mean, 0.0)[:, None]
        spread = np.sqrt(point + SPREAD_FLOOR * mean + 1e-30)
        scale = self._scale.predict(history.now, features.window)
        scale = np.where(np.isfinite(scale), scale, chosen.SCALE_START_SHARE * point / spread)
        scale = np.fmax(scale, chosen.SCALE_FLOOR_SHARE * np.maximum(point, mean) / spread + 1e-15)
        pool, step = self._pool, self._steps_of_columns(point)
        said = np.array([point, spread, scale]).transpose(1, 2, 0)[pool, step]
        raw = said[..., :1] + (said[..., 1:2] * said[..., 2:]) * self._quantiles.multiples
        ceiling = chosen.QUANTILE_CEILING * history.largest_seen[:, None, None]
        quantiles = np.maximum.accumulate(np.minimum(np.fmax(raw, 0.0), ceiling), axis=2)
        self._issued.say(history.now, np.concatenate([said, quantiles], axis=2))
        by_step = self._outages.apply(history.now, loads, quantiles[:, :steps], history)
        by_window = np.concatenate([by_step[:, :1], quantiles[:, steps:]], axis=1)
        # A maximum is at least each of its bins, so its quantiles are at least theirs.
        by_window = np.maximum.accumulate(np.maximum(by_window, by_step), axis=1)
        return FleetPrediction(point[:, :steps], np.maximum.accumulate(by_step, axis=2), by_window)

    def _point(self, features: Features) -> FloatArray:
        history, day = self.history, self._parameters.day_bins
        scale = np.repeat(features.scale[:, None], self._parameters.steps, axis=1)
        base = np.where(features.is_complete, features.base, np.nan)
        self._bases.say(history.now, np.array([base, scale]).transpose(1, 2, 0))
        root = np.fmax(features.base + self._ridge.predict(history.now, features.rows), 0.0)
        learned = scale * root**2
        trust = (self._trained_rows - chosen.WARM_UP_FROM_DAYS * day) / (chosen.WARM_UP_DAYS * day)
        trust = within(trust, 0.0, 1.0) * features.is_complete
        recent = np.fmax(history.recent_level, 0.0)[:, None]
        usual = np.fmax(history.day_maximum, history.profiles[1:]).T
        ceiling = chosen.POINT_CEILING * np.fmax(usual, 0.0)
        point: FloatArray = np.minimum(trust * learned + (1 - trust) * recent, ceiling)
        return point

    def _steps_of_columns(self, point: FloatArray) -> IntArray:
        """The steps themselves, then for each of the first 2..steps points the step of the largest, by pool."""
        is_new = point >= np.maximum.accumulate(point, axis=1)
        highest = np.maximum.accumulate(np.where(is_new, self._step, 0), axis=1)
        return np.concatenate([self._step, highest[:, 1:]], axis=1)
