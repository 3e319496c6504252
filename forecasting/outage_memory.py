"""Has holding the forecast through a pool's outages paid off, or do its zeros last?

Two experts speak during a suspected outage: "it is back any moment" (hold the forecast) and "it stays down" (the last
value, about zero). Each pool keeps a ledger of their pinball losses in bins of mean load; once some outages are over,
the next one begins with weights from it. Within one outage weights do not move.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray, ForecastRing, known_or, within
from forecasting.load_history import TINY, LoadHistory
from forecasting.parameters import ForecastingParameters


class OutageMemory:
    """Weight of the held forecast (pools, steps, levels) during suspected outages, 1 = hold fully."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        shape = (pools, parameters.steps, len(parameters.levels))
        self._levels = np.array(parameters.levels)
        self._decay = 0.5 ** (1 / (chosen.OUTAGE_LEDGER_HALF_LIFE_DAYS * parameters.day_bins))
        self._ledger = np.zeros(shape)
        self._weights = np.ones(shape)
        self._finished = np.zeros(pools)
        self._was_out = np.zeros(pools, np.bool_)
        # What both experts said at origins within an outage, until the bin `_waiting_until`; else NaN.
        ahead = np.arange(1, parameters.steps + 1)
        self._held = ForecastRing(pools, ahead, (len(parameters.levels),))
        self._last = ForecastRing(pools, ahead, (1,))
        self._steps = parameters.steps
        self._waiting_until = -1

    def learn(self, now: int, loads: FloatArray, history: LoadHistory) -> None:
        """Scores both experts on the loads of bin `now`, for origins within an outage."""
        self._ledger *= self._decay
        if now <= self._waiting_until:
            observed = loads[:, None, None]
            difference = self._loss(observed - self._held.take(now)) - self._loss(observed - self._last.take(now))
            self._ledger += known_or(difference, 0.0) / np.maximum(history.mean, TINY)[:, None, None]
        begins = history.in_outage & ~self._was_out
        self._finished += self._was_out & ~history.in_outage
        self._was_out = history.in_outage
        if begins.any():
            self._weights = np.where(begins[:, None, None], self._learned_weights(), self._weights)

    def apply(self, now: int, loads: FloatArray, held: FloatArray, history: LoadHistory) -> FloatArray:
        """Quantiles (pools, steps, levels) to issue: `held` itself outside outages, weighted within them."""
        if not history.in_outage.any():
            return held
        out, last = history.in_outage[:, None, None], loads[:, None, None]
        self._held.say(now, np.where(out, held, np.nan))
        self._last.say(now, np.repeat(np.where(out, last, np.nan), self._steps, axis=1))
        self._waiting_until = now + self._steps
        return np.where(out, self._weights * held + (1 - self._weights) * last, held)

    def _learned_weights(self) -> FloatArray:
        better = within(chosen.OUTAGE_WEIGHT_SLOPE * (self._ledger - chosen.OUTAGE_HOLD_PRIOR), -50, 50)
        is_sure = (self._finished >= chosen.OUTAGE_SURE_HOLDS)[:, None, None]
        return np.where(is_sure, 1 / (1 + np.exp(better)), 1.0)

    def _loss(self, excess: FloatArray) -> FloatArray:
        return np.maximum(self._levels * excess, (self._levels - 1) * excess)
