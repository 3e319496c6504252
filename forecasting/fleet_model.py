"""How much load will each pool carry in the next bins? The model that acts, for all pools in one set of arrays.

Point: a recursive ridge around the last value and the day's profile. Interval: recent errors, standardised by a
learned scale and calibrated online. `forecasting/README.md` has the design and its measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import BoolArray, FloatArray, IntArray
from forecasting.calibrated_quantiles import CalibratedQuantiles, CalibrationParameters
from forecasting.features import Features, build_features, feature_penalties
from forecasting.forecast import FleetPrediction
from forecasting.load_history import LoadHistory
from forecasting.outage_memory import OutageMemory
from forecasting.parameters import ForecastingParameters
from forecasting.recursive_ridge import RecursiveRidge
from forecasting.residual_scale import ResidualScale

SPREAD_FLOOR = 0.02  # of the mean load, under the square root of the spread


@dataclass(frozen=True, slots=True)
class _Issued:
    """What was said at one origin, kept until its bins have closed. Arrays (pools, columns[, levels])."""

    features: Features
    point: FloatArray
    spread: FloatArray
    scale: FloatArray
    quantiles: FloatArray


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
        self._issued: dict[int, _Issued] = {}
        self._recent = np.full((parameters.steps, pools), np.nan)  # observed loads, newest first

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """Takes the loads (pools,) of the bin that has just closed; forecasts the bins after it.

        Missing loads are NaN (infinite and negative ones count as missing). A pool without any observation has
        zeros: ask `has_data` first. Quantiles are finite, >= 0, ascending, at most 3 times the largest load seen.
        """
        loads = np.where(np.isfinite(loads) & (loads >= 0), loads, np.nan)
        self.history.accept(loads)
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
        now, steps, levels = self.history.now, self._parameters.steps, len(self._parameters.levels)
        shape = (observed.size, 2 * steps - 1)
        errors, residuals = np.full(shape, np.nan), np.full((observed.size, steps), np.nan)
        scales, covered = np.ones(shape), np.full((*shape, levels), np.nan)
        floor = np.sqrt(SPREAD_FLOOR * self.history.scale)
        for column in range(shape[1]):
            is_window = column >= steps
            length = column - steps + 2 if is_window else column + 1
            issued = self._issued.get(now - length)
            if issued is None:
                continue
            outcome = self._recent[:length].max(axis=0) if is_window else observed
            spread = np.maximum(issued.spread[:, column], floor)
            errors[:, column] = (outcome - issued.point[:, column]) / spread
            scales[:, column] = issued.scale[:, column]
            counted = (outcome if is_window else loads)[:, None]
            covered[:, column] = np.where(np.isfinite(counted), counted <= issued.quantiles[:, column], np.nan)
            if not is_window:
                residuals[:, column] = _residual(issued.features, column, observed)
        self._issued.pop(now - steps, None)
        self._ridge.learn(now, self._clipped(residuals))
        self._trained_rows += np.isfinite(residuals)
        self._scale.learn(now, np.abs(errors[:, :steps]), np.sqrt(np.maximum(self.history.mean, 0.0)))
        self._quantiles.learn(now, errors / scales, covered)

    def _clipped(self, residuals: FloatArray) -> FloatArray:
        """Residuals within 3 running 0.8-quantiles: a median would be 0 where more than half the bins are empty."""
        usual, size = self._usual_residual, np.abs(residuals)
        bound = np.where(np.isfinite(usual), chosen.RESIDUAL_CLIP * usual, np.inf) + 1e-9
        moved = np.maximum(usual * (1 + 0.05 * ((size > usual) - 0.2)), 1e-6)
        moved = np.where(np.isfinite(usual), moved, np.maximum(size, 1e-3))
        self._usual_residual = np.where(np.isfinite(residuals), moved, usual)
        return np.clip(residuals, -bound, bound)

    def _predict(self, loads: FloatArray) -> FleetPrediction:
        history, steps = self.history, self._parameters.steps
        features = build_features(history, self._parameters)
        point = self._point(features)
        mean = np.maximum(history.mean, 0.0)[:, None]
        spread = np.sqrt(point + SPREAD_FLOOR * mean + 1e-30)
        scale = self._scale.predict(history.now, features.window)
        scale = np.where(np.isfinite(scale), scale, chosen.SCALE_START_SHARE * point / spread)
        scale = np.fmax(scale, chosen.SCALE_FLOOR_SHARE * np.maximum(point, mean) / spread + 1e-15)
        largest = np.maximum.accumulate(point, axis=1)[:, 1:]
        highest = _first_step_of_maximum(point)[:, 1:]
        point, spread, scale = (
            np.concatenate([point, largest], axis=1),
            np.concatenate([spread, np.take_along_axis(spread, highest, axis=1)], axis=1),
            np.concatenate([scale, np.take_along_axis(scale, highest, axis=1)], axis=1),
        )
        raw = point[..., None] + (spread * scale)[..., None] * self._quantiles.multiples
        ceiling = chosen.QUANTILE_CEILING * history.largest_seen[:, None, None]
        quantiles = np.maximum.accumulate(np.clip(np.nan_to_num(raw), 0.0, ceiling), axis=2)
        self._issued[history.now] = _Issued(features, point, spread, scale, quantiles)
        by_step = self._outages.apply(history.now, loads, quantiles[:, :steps], history)
        by_window = np.concatenate([by_step[:, :1], quantiles[:, steps:]], axis=1)
        # A maximum is at least each of its bins, so its quantiles are at least theirs.
        by_window = np.maximum.accumulate(np.maximum(by_window, by_step), axis=1)
        return FleetPrediction(point[:, :steps], np.maximum.accumulate(by_step, axis=2), by_window)

    def _point(self, features: Features) -> FloatArray:
        history, day = self.history, self._parameters.day_bins
        correction = self._ridge.predict(history.now, np.where(features.is_complete[..., None], features.rows, np.nan))
        root = np.maximum(np.nan_to_num(features.base) + np.nan_to_num(correction), 0.0)
        learned = features.scale[:, None] * root**2
        trust = (self._trained_rows - chosen.WARM_UP_FROM_DAYS * day) / (chosen.WARM_UP_DAYS * day)
        trust = np.clip(trust, 0.0, 1.0) * features.is_complete
        recent = np.nan_to_num(history.recent_level)[:, None]
        profiles = np.stack([history.profile_ahead(k) for k in range(1, self._parameters.steps + 1)], axis=1)
        ceiling = chosen.POINT_CEILING * np.fmax(np.nan_to_num(history.day_maximum)[:, None], np.nan_to_num(profiles))
        point: FloatArray = np.minimum(trust * learned + (1 - trust) * recent, ceiling)
        return point


def _residual(features: Features, step: int, observed: FloatArray) -> FloatArray:
    """What the ridge's correction should have been, in g; NaN where the row was incomplete or the load is missing."""
    residual = np.sqrt(observed / features.scale) - features.base[:, step]
    return np.where(features.is_complete[:, step], residual, np.nan)


def _first_step_of_maximum(point: FloatArray) -> IntArray:
    """For each k the index of the largest among the first k points."""
    is_new = point >= np.maximum.accumulate(point, axis=1)
    return np.maximum.accumulate(np.where(is_new, np.arange(point.shape[1]), 0), axis=1)
