"""Which multiple of a scale has been the quantile of a pool's recent errors?

Standardised errors v of the last days are kept per pool and column (a step, or a window of steps); a quantile level
is the empirical one, its level nudged so that the share of loads below the issued quantile becomes the level asked
for (adaptive conformal inference, Gibbs and Candes 2021). With few errors a prior curve speaks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forecasting.arrays import FloatArray, TimeRing, known_or, within

PRIOR_LEVELS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
PRIOR_MULTIPLES = (-0.6, 0.0, 0.6, 1.0, 1.55, 2.3, 3.3, 5.0)
FEWEST_ERRORS = 8
LEVEL_REACH = (0.2, 0.08)  # how far a nudged level may fall below and rise above the one asked for
HIGHEST_LEVEL = 0.995
EARLY_BINS = 48  # until then every pool is evaluated at every bin


@dataclass(frozen=True, slots=True)
class CalibrationParameters:
    """`ring_bins` of memory, `adaptation` of the level per bin, `evaluation_bins` between two evaluations of a pool.

    The prior curve counts as much as `prior_weight` errors, and is alone below 8 errors. Errors beyond
    `largest_error` scales count as that.
    """

    levels: tuple[float, ...]
    ring_bins: int
    adaptation: float
    evaluation_bins: int
    prior_weight: float
    largest_error: float


class CalibratedQuantiles:
    """Multiples (pools, columns, levels) of the scale, evaluated anew for a part of the pools at every bin."""

    def __init__(self, pools: int, columns: int, parameters: CalibrationParameters) -> None:
        self._parameters = parameters
        self._asked = np.array(parameters.levels)
        below, above = LEVEL_REACH
        self._lowest, self._highest = self._asked - below, np.minimum(HIGHEST_LEVEL, self._asked + above)
        self._levels = np.tile(np.minimum(self._asked, HIGHEST_LEVEL), (pools, columns, 1))
        self._errors = TimeRing(parameters.ring_bins, (pools, columns))
        self.multiples = np.tile(np.interp(self._asked, PRIOR_LEVELS, PRIOR_MULTIPLES), (pools, columns, 1))

    def learn(self, now: int, errors: FloatArray, is_covered: FloatArray | None = None) -> None:
        """Takes the standardised errors due with bin `now` (pools, columns), NaN where not scored.

        `is_covered` (pools, columns, levels) is 1 where the load was at most the issued quantile, 0 where above it
        and NaN where no quantile was issued or no load is known. Loads in an outage have no error but do count here.
        Without it the levels stay.
        """
        self._errors.write(now, within(errors, -self._parameters.largest_error, self._parameters.largest_error))
        if is_covered is not None:
            miss = known_or(self._asked - is_covered, 0.0)
            moved = self._levels + self._parameters.adaptation * miss
            self._levels = within(moved, self._lowest, self._highest)
        period = 1 if now < EARLY_BINS else self._parameters.evaluation_bins
        self._evaluate(now, slice(now % period, None, period))

    def _evaluate(self, now: int, group: slice) -> None:
        levels = self._levels[group]
        if not len(levels):
            return
        ranked = np.sort(self._errors.rows[: now + 1, group], axis=0)  # NaN last
        count = np.isfinite(ranked).sum(axis=0)[..., None]
        position = levels * np.maximum(count - 1, 0)
        low = position.astype(np.int64)
        high = np.minimum(low + 1, np.maximum(count - 1, 0))
        pool, column = np.arange(len(levels))[:, None, None], np.arange(levels.shape[1])[None, :, None]
        share = position - low
        empirical = known_or(ranked[low, pool, column] * (1 - share) + ranked[high, pool, column] * share, 0.0)
        trust = np.where(count >= FEWEST_ERRORS, count / np.maximum(count + self._parameters.prior_weight, 1.0), 0.0)
        prior = np.interp(levels, PRIOR_LEVELS, PRIOR_MULTIPLES)
        self.multiples[group] = trust * empirical + (1 - trust) * prior
