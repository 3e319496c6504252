"""Has holding the forecast through a pool's outages paid off, or do its zeros last?

Two experts speak during a suspected outage: "it is back any moment" (hold the forecast) and "it stays down" (the last
value, about zero). Each pool keeps a ledger of their pinball losses in bins of mean load; once some outages are over,
the next one begins with weights from it. Within one outage weights do not move.
"""

from __future__ import annotations

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray
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
        # One slot per origin still waiting for its loads: the held quantiles and the last value, NaN if no outage.
        self._held = np.full((parameters.steps + 1, *shape), np.nan)
        self._last = np.full((parameters.steps + 1, pools), np.nan)

    def learn(self, now: int, loads: FloatArray, history: LoadHistory) -> None:
        """Scores both experts on the loads of bin `now`, for origins within an outage."""
        unit = np.maximum(history.mean, TINY)[:, None]
        self._ledger *= self._decay
        for step in range(self._held.shape[2]):
            slot = (now - step - 1) % len(self._held)
            held, last = self._held[slot, :, step], self._last[slot][:, None]
            difference = self._loss(loads[:, None] - held) - self._loss(loads[:, None] - last)
            self._ledger[:, step] += np.nan_to_num(difference) / unit
        begins = history.in_outage & ~self._was_out
        self._finished += self._was_out & ~history.in_outage
        self._was_out = history.in_outage.copy()
        better = np.clip(chosen.OUTAGE_WEIGHT_SLOPE * (self._ledger - chosen.OUTAGE_HOLD_PRIOR), -50, 50)
        learned = np.where((self._finished >= chosen.OUTAGE_SURE_HOLDS)[:, None, None], 1 / (1 + np.exp(better)), 1.0)
        self._weights = np.where(begins[:, None, None], learned, self._weights)

    def apply(self, now: int, loads: FloatArray, held: FloatArray, history: LoadHistory) -> FloatArray:
        """Quantiles (pools, steps, levels) to issue: `held` itself outside outages, weighted within them."""
        slot, out = now % len(self._held), history.in_outage
        self._held[slot] = np.where(out[:, None, None], held, np.nan)
        self._last[slot] = np.where(out, loads, np.nan)
        last = np.nan_to_num(loads)[:, None, None]
        return np.where(out[:, None, None], self._weights * held + (1 - self._weights) * last, held)

    def _loss(self, excess: FloatArray) -> FloatArray:
        return np.maximum(self._levels * excess, (self._levels - 1) * excess)
