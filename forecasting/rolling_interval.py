"""What interval does any point forecast deserve? The one all baselines get, so that comparisons are about points.

Errors divided by the forecast's square root, their empirical quantiles over the last days, per pool and step.
"""

from __future__ import annotations

import numpy as np

from forecasting.arrays import FloatArray, ForecastRing
from forecasting.calibrated_quantiles import CalibratedQuantiles, CalibrationParameters
from forecasting.parameters import ForecastingParameters

SMALLEST_FORECAST = 1e-9


class RollingInterval:
    """Quantiles (pools, steps, levels) around point forecasts (pools, steps)."""

    def __init__(self, pools: int, parameters: ForecastingParameters, ring_days: int, evaluation_bins: int) -> None:
        calibration = CalibrationParameters(
            parameters.levels,
            ring_days * parameters.day_bins,
            adaptation=0.0,
            evaluation_bins=evaluation_bins,
            prior_weight=0.0,
            largest_error=np.inf,
        )
        self._empirical = CalibratedQuantiles(pools, parameters.steps, calibration)
        self._points = ForecastRing(pools, np.arange(1, parameters.steps + 1))

    def learn(self, now: int, observed: FloatArray) -> None:
        """Takes the loads (pools,) of bin `now`, NaN for missing."""
        point = self._points.take(now)
        self._empirical.learn(now, (observed[:, None] - point) / np.sqrt(np.maximum(point, SMALLEST_FORECAST)))

    def quantiles(self, now: int, point: FloatArray) -> FloatArray:
        """Quantiles of the forecasts issued with bin `now`; NaN where the point is."""
        self._points.say(now, point)
        spread = np.sqrt(np.maximum(point, SMALLEST_FORECAST))[..., None]
        quantiles: FloatArray = np.maximum(point[..., None] + spread * self._empirical.multiples, 0.0)
        return quantiles
