"""What if tomorrow is as today? Repeats the load of the same bin one day before, with a rolling interval."""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray, TimeRing
from forecasting.forecast import FleetPrediction
from forecasting.parameters import ForecastingParameters
from forecasting.rolling_interval import RollingInterval


class SeasonalNaive:
    """The day's naive forecast; a missing bin repeats the one before it."""

    def __init__(
        self,
        pools: int,
        parameters: ForecastingParameters,
        ring_days: int = chosen.BASELINE_RING_DAYS,
        evaluation_bins: int = 1,
    ) -> None:
        self._parameters = parameters
        self._interval = RollingInterval(pools, parameters, ring_days, evaluation_bins)
        self._day = TimeRing(parameters.day_bins, (pools,))
        self._last = np.full(pools, np.nan)
        self._now = -1

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """As FleetForecaster; NaN until a pool's first day is over."""
        self._now += 1
        self._interval.learn(self._now, loads)
        self._last = np.where(np.isfinite(loads), loads, self._last)
        self._day.write(self._now, self._last)
        ahead = self._now + np.arange(1, self._parameters.steps + 1) - self._parameters.day_bins
        point = self._day.read(ahead, self._now).T
        quantiles = self._interval.quantiles(self._now, point)
        return FleetPrediction(point, quantiles, np.maximum.accumulate(quantiles, axis=1))
