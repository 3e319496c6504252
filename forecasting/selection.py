"""May the model act on this pool? Only while it beats the last value on the pool's own recent past.

Both are scored as they go: pinball loss at 0.9 of what was issued, forgotten with a half-life of 3 days. The gate
opens when the model's loss is below 0.95 of the last value's, and shuts above 1, so that it does not flap between.
"""

from __future__ import annotations

from math import isfinite

import numpy as np

from forecasting import parameters as chosen
from forecasting.accuracy import pinball_loss
from forecasting.arrays import BoolArray, FloatArray, ForecastRing
from forecasting.fleet_model import FleetModel
from forecasting.forecast import FleetPrediction, Forecast, ForecastUnavailable, StepSkill, UnavailableReason
from forecasting.last_value import LastValue
from forecasting.parameters import ForecastingParameters

BASELINE_RING_DAYS = 3  # here, for memory; the offline comparison keeps 7


class Gate:
    """Recent losses of both models, and per pool and step whether the model may act."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        shape = (pools, parameters.steps)
        self._parameters = parameters
        self._column = parameters.levels.index(chosen.GATE_LEVEL)
        self._decay = 0.5 ** (1 / (chosen.GATE_HALF_LIFE_DAYS * parameters.day_bins))
        self._losses = np.zeros((2, *shape))
        self._issued = ForecastRing(pools, np.arange(1, parameters.steps + 1), (2,))  # by the model, by the baseline
        self._now = -1
        self.scored_bins = np.zeros(shape)
        self.is_open: BoolArray = np.zeros(shape, np.bool_)

    def score(self, loads: FloatArray, said: FleetPrediction, baseline: FleetPrediction) -> None:
        """Takes the loads (pools,) of the bin that has closed, then what both models said after it."""
        self._now += 1
        losses = pinball_loss(loads[:, None, None], self._issued.take(self._now), chosen.GATE_LEVEL)
        known = np.isfinite(losses).all(axis=2)
        self._losses *= self._decay
        self._losses += np.where(known, losses.transpose(2, 0, 1), 0.0)
        self.scored_bins += known
        both = [each.quantiles[..., self._column] for each in (said, baseline)]
        self._issued.say(self._now, np.array(both).transpose(1, 2, 0))
        enough = self.scored_bins >= chosen.GATE_MINIMUM_DAYS * self._parameters.day_bins
        threshold = np.where(self.is_open, chosen.GATE_CLOSES_ABOVE, chosen.GATE_OPENS_BELOW)
        self.is_open = enough & (self.loss_ratio < threshold)  # never while the ratio is not known

    @property
    def loss_ratio(self) -> FloatArray:
        """Model's loss over the last value's (pools, steps); NaN where nothing is scored or the baseline never errs."""
        model, baseline = self._losses
        return np.where(baseline > 0, model / np.where(baseline > 0, baseline, 1.0), np.nan)

    def skills(self, pool: int) -> tuple[StepSkill, ...]:
        """One pool's losses and gates, a step each."""
        needed = round(chosen.GATE_MINIMUM_DAYS * self._parameters.day_bins)
        model, baseline = self._losses[:, pool].tolist()
        opened, scored = self.is_open[pool].tolist(), self.scored_bins[pool].tolist()
        return tuple(
            StepSkill(is_open, round(ours / theirs, 4) if theirs > 0 else None, round(bins), needed)
            for is_open, ours, theirs, bins in zip(opened, model, baseline, scored, strict=True)
        )


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
        self._said = self.model.advance(loads)
        loads = self.model.history.loads
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

    def acting_forecast(self, pool: int, origin_seconds: float, until_seconds: float) -> Forecast | ForecastUnavailable:
        """The pool's forecast if it may act on the window until `until_seconds` after the origin, else why not."""
        forecast = self.advised_forecast(pool, origin_seconds)
        if isinstance(forecast, ForecastUnavailable):
            return forecast
        return forecast.why_not_acting(until_seconds) or forecast

    def advised_forecast(self, pool: int, origin_seconds: float) -> Forecast | ForecastUnavailable:
        """The pool's newest forecast whether or not it may act; unavailable only without any observation."""
        said = self._said
        if said is None or not self.model.has_data[pool]:
            return ForecastUnavailable(UnavailableReason.NO_DATA, "no load has been observed yet")
        return Forecast(
            origin_seconds=origin_seconds,
            bin_seconds=self.parameters.bin_seconds,
            levels=self.parameters.levels,
            point=_values(said.point[pool]),
            quantiles=tuple(map(_values, said.quantiles[pool])),
            window_quantiles=tuple(map(_values, said.window_quantiles[pool])),
            latest=self._latest(pool),
            is_outage_hold=bool(self.model.history.in_outage[pool]),
            skills=self.gate.skills(pool),
        )

    def _latest(self, pool: int) -> float | None:
        latest = float(self.model.history.loads[pool])
        return float(f"{latest:.6g}") if isfinite(latest) else None


def _values(row: FloatArray) -> tuple[float, ...]:
    """Six digits are more than anybody knows of the future, and records are shorter by half."""
    return tuple(float(f"{value:.6g}") for value in row.tolist())
