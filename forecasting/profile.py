"""What is usual at this time of day? Forecasts the weighted mean of earlier days, with a rolling interval."""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray
from forecasting.forecast import FleetPrediction
from forecasting.load_history import LoadHistory
from forecasting.parameters import ForecastingParameters
from forecasting.rolling_interval import RollingInterval


class Profile:
    """The same profile the model corrects its last value with, as a forecast of its own."""

    def __init__(
        self,
        pools: int,
        parameters: ForecastingParameters,
        ring_days: int = chosen.BASELINE_RING_DAYS,
        evaluation_bins: int = 1,
    ) -> None:
        self._interval = RollingInterval(pools, parameters, ring_days, evaluation_bins)
        self._history = LoadHistory(pools, parameters)

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """As FleetForecaster; NaN until a pool's first day is over."""
        self._history.accept(loads)
        self._interval.learn(self._history.now, loads)
        point = self._history.profiles[1:].T
        quantiles = self._interval.quantiles(self._history.now, point)
        return FleetPrediction(point, quantiles, np.maximum.accumulate(quantiles, axis=1))
