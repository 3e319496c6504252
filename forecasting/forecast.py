"""What is known of the load to come: quantiles by step, or the reason why nothing is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np

from forecasting.arrays import FloatArray


class UnavailableReason(StrEnum):
    """Why a pool has no forecast that may act."""

    NO_DATA = "NoData"
    TOO_LITTLE_HISTORY = "TooLittleHistory"
    NOT_BETTER_THAN_LAST_VALUE = "NotBetterThanLastValue"
    HORIZON_TOO_LONG = "HorizonTooLong"


@dataclass(frozen=True, slots=True)
class ForecastUnavailable:
    """No forecast, the reason, and a sentence for people. `loss_ratio` is the skill measured so far, if any."""

    reason: UnavailableReason
    message: str
    loss_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Quantiles of one pool's load, issued when the bin that ends at `origin_seconds` closed.

    Step k (from 1) is the mean load of the k-th bin after it. `point` has one value per step, `quantiles` one row per
    step and one column per level, `window_quantiles` likewise for the *maximum* of the bins 1..k. All are finite,
    >= 0 and in the unit of the series; quantiles ascend within a row. `loss_ratio` is the pinball loss at 0.9 over
    that of the last value with a rolling interval, on this pool's own recent past: below 1 is better.
    """

    origin_seconds: float
    bin_seconds: int
    levels: tuple[float, ...]
    point: tuple[float, ...]
    quantiles: tuple[tuple[float, ...], ...]
    window_quantiles: tuple[tuple[float, ...], ...]
    is_outage_hold: bool
    loss_ratio: float | None

    def step_for(self, lead_seconds: float) -> int:
        """The step whose bin begins at or after `lead_seconds` from the origin, that is ceil(lead / bin) + 1."""
        return int(np.ceil(max(lead_seconds, 0.0) / self.bin_seconds)) + 1

    def window_quantile(self, lead_seconds: float, level: float) -> float | ForecastUnavailable:
        """Quantile of the largest bin from now until capacity ordered now is ready and its bin has passed.

        Between two kept levels the value is interpolated; outside them the nearest is taken.
        `lead_seconds` beyond the last step: unavailable, as a shorter window would promise too little.
        """
        step = self.step_for(lead_seconds)
        if step > len(self.window_quantiles):
            reach = (len(self.window_quantiles) - 1) * self.bin_seconds
            return ForecastUnavailable(
                UnavailableReason.HORIZON_TOO_LONG,
                f"a lead of {lead_seconds:.0f} s needs step {step}; this forecast serves leads up to {reach} s",
                self.loss_ratio,
            )
        return float(np.interp(level, self.levels, self.window_quantiles[step - 1]))


@dataclass(frozen=True, slots=True)
class FleetPrediction:
    """Forecasts of all pools for one origin: `point` (pools, steps), quantiles (pools, steps, levels)."""

    point: FloatArray
    quantiles: FloatArray
    window_quantiles: FloatArray


class FleetForecaster(Protocol):
    """A model of all pools at once."""

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """Takes the loads (pools,) of the bin that has just closed, NaN for missing; forecasts the bins after it."""
        ...


def level_from_costs(miss_cost: float, idle_cost: float) -> float:
    """Quantile level that minimises expected cost, miss / (miss + idle): 9 to 1 gives 0.9.

    `miss_cost` is that of one unit of load without capacity, `idle_cost` of one unit of capacity without load.
    """
    if miss_cost <= 0 or idle_cost <= 0:
        raise ValueError(f"costs must be positive: miss_cost={miss_cost}, idle_cost={idle_cost}")
    return miss_cost / (miss_cost + idle_cost)
