"""May the model act on this pool? Only while it beats the last value on the pool's own recent past.

Both are scored as they go: pinball loss at 0.9 of what was issued, forgotten with a half-life of 3 days. The gate
opens when the model's loss is below 0.95 of the last value's, and shuts above 1, so that it does not flap between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting import parameters as chosen
from forecasting.accuracy import pinball_loss
from forecasting.arrays import BoolArray, FloatArray
from forecasting.fleet_model import FleetModel
from forecasting.forecast import FleetPrediction, Forecast, ForecastUnavailable, UnavailableReason
from forecasting.last_value import LastValue
from forecasting.parameters import ForecastingParameters

BASELINE_RING_DAYS = 3  # here, for memory; the offline comparison keeps 7


@dataclass(frozen=True, slots=True)
class _Waiting:
    model: FloatArray
    baseline: FloatArray


class Gate:
    """Recent losses of both models, and per pool and step whether the model may act."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        shape = (pools, parameters.steps)
        self._parameters = parameters
        self._column = parameters.levels.index(chosen.GATE_LEVEL)
        self._decay = 0.5 ** (1 / (chosen.GATE_HALF_LIFE_DAYS * parameters.day_bins))
        self._losses = np.zeros((2, *shape))
        self._waiting: dict[int, _Waiting] = {}
        self._now = -1
        self.scored_bins = np.zeros(shape)
        self.is_open: BoolArray = np.zeros(shape, np.bool_)

    def score(self, loads: FloatArray, said: FleetPrediction, baseline: FleetPrediction) -> None:
        """Takes the loads (pools,) of the bin that has closed, then what both models said after it."""
        self._now += 1
        self._losses *= self._decay
        for step in range(self._parameters.steps):
            issued = self._waiting.get(self._now - step - 1)
            if issued is None:
                continue
            losses = np.stack(
                [
                    pinball_loss(loads, quantile[:, step], chosen.GATE_LEVEL)
                    for quantile in (issued.model, issued.baseline)
                ]
            )
            known = np.isfinite(losses).all(axis=0)
            self._losses[:, :, step] += np.where(known, losses, 0.0)
            self.scored_bins[:, step] += known
        self._waiting.pop(self._now - self._parameters.steps, None)
        self._waiting[self._now] = _Waiting(said.quantiles[..., self._column], baseline.quantiles[..., self._column])
        ratio = np.nan_to_num(self.loss_ratio, nan=np.inf)
        enough = self.scored_bins >= chosen.GATE_MINIMUM_DAYS * self._parameters.day_bins
        threshold = np.where(self.is_open, chosen.GATE_CLOSES_ABOVE, chosen.GATE_OPENS_BELOW)
        self.is_open = enough & (ratio < threshold)

    @property
    def loss_ratio(self) -> FloatArray:
        """Model's loss over the last value's (pools, steps); NaN where nothing is scored or the baseline never errs."""
        model, baseline = self._losses
        return np.where(baseline > 0, model / np.where(baseline > 0, baseline, 1.0), np.nan)


class GatedFleet:
    """The model, the last value and the gate of all pools: what a controller keeps and feeds at every bin."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        self.parameters = parameters
        self.model = FleetModel(pools, parameters)
        self.gate = Gate(pools, parameters)
        self._baseline = LastValue(pools, parameters, BASELINE_RING_DAYS, evaluation_bins=parameters.hour_bins)
        self._said: FleetPrediction | None = None

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """Takes the loads (pools,) of the bin that has just closed, NaN for missing; forecasts the bins after it."""
        loads = np.where(np.isfinite(loads) & (loads >= 0), loads, np.nan)
        self._said = self.model.advance(loads)
        self.gate.score(loads, self._said, self._baseline.advance(loads))
        return self._said

    def replay(self, loads: FloatArray) -> None:
        """Takes the loads (bins, pools) of a recorded past, as at a start: the same as `advance` for each, but faster.

        Bins older than 3.5 days only shape the profile and the levels; the weights, the interval and the gate are
        learned from the rest. That takes a fifth of the time and costs about 1 % of pinball loss in the week after.
        """
        learned = min(len(loads), round(chosen.REPLAYED_DAYS * self.parameters.day_bins))
        for row in loads[: len(loads) - learned]:
            self.model.history.accept(row)
        for row in loads[len(loads) - learned :]:
            self.advance(row)

    def acting_forecast(self, pool: int, origin_seconds: float, lead_seconds: float) -> Forecast | ForecastUnavailable:
        """The pool's forecast if it may act at a lead of `lead_seconds`, else why not."""
        forecast = self.advised_forecast(pool, origin_seconds)
        if isinstance(forecast, ForecastUnavailable):
            return forecast
        step = forecast.step_for(lead_seconds) - 1
        if step >= self.parameters.steps:
            unavailable = forecast.window_quantile(lead_seconds, chosen.GATE_LEVEL)
            assert isinstance(unavailable, ForecastUnavailable)
            return unavailable
        ratio = self._ratio(pool, step)
        needed = chosen.GATE_MINIMUM_DAYS * self.parameters.day_bins
        if self.gate.scored_bins[pool, step] < needed:
            return ForecastUnavailable(
                UnavailableReason.TOO_LITTLE_HISTORY,
                f"{self.gate.scored_bins[pool, step]:.0f} of {needed:.0f} bins of own backtest at step {step + 1}",
                ratio,
            )
        if not self.gate.is_open[pool, step]:
            return ForecastUnavailable(
                UnavailableReason.NOT_BETTER_THAN_LAST_VALUE,
                f"loss is {_said_ratio(ratio)} of the last value's at step {step + 1}; "
                f"acts below {chosen.GATE_OPENS_BELOW:g}",
                ratio,
            )
        return forecast

    def advised_forecast(self, pool: int, origin_seconds: float) -> Forecast | ForecastUnavailable:
        """The pool's newest forecast whether or not it may act; unavailable only without any observation."""
        said = self._said
        if said is None or not self.model.has_data[pool]:
            return ForecastUnavailable(UnavailableReason.NO_DATA, "no load has been observed yet")
        return Forecast(
            origin_seconds=origin_seconds,
            bin_seconds=self.parameters.bin_seconds,
            levels=self.parameters.levels,
            point=tuple(map(float, said.point[pool])),
            quantiles=tuple(tuple(map(float, row)) for row in said.quantiles[pool]),
            window_quantiles=tuple(tuple(map(float, row)) for row in said.window_quantiles[pool]),
            is_outage_hold=bool(self.model.history.in_outage[pool]),
            loss_ratio=self._ratio(pool, self.parameters.steps - 1),
        )

    def _ratio(self, pool: int, step: int) -> float | None:
        ratio = float(self.gate.loss_ratio[pool, step])
        return ratio if np.isfinite(ratio) else None


def _said_ratio(ratio: float | None) -> str:
    return "unknown" if ratio is None else f"{ratio:.2f}"
