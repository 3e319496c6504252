"""What is known of the load to come: quantiles by step, or the reason why nothing is."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray


class UnavailableReason(StrEnum):
    """Why a pool has no forecast that may act."""

    READING_HISTORY = "ReadingHistory"
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
    kind: Literal["unavailable"] = "unavailable"


class StepSkill(NamedTuple):
    """How one step of this pool did on its own recent past, and whether it may act.

    `loss_ratio` is the pinball loss at 0.9 over that of the last value with a rolling interval: below 1 is better, None
    where nothing has been scored. `scored_bins` of `needed_bins` have been scored.
    """

    is_open: bool
    loss_ratio: float | None
    scored_bins: int
    needed_bins: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Quantiles of one pool's load, issued when the bin that ends at `origin_seconds` closed.

    Step k (from 1) is the mean load of the k-th bin after it. `point` has one value per step, `quantiles` one row per
    step and one column per level, `window_quantiles` likewise for the *maximum* of the bins 1..k, `skills` one entry
    per step. All are finite, >= 0 and in the unit of the series; quantiles ascend within a row. `latest` is the load of
    the bin that closed, None where it is missing. Loads have six digits.
    """

    origin_seconds: float
    bin_seconds: int
    levels: tuple[float, ...]
    point: tuple[float, ...]
    quantiles: tuple[tuple[float, ...], ...]
    window_quantiles: tuple[tuple[float, ...], ...]
    latest: float | None
    is_outage_hold: bool
    skills: tuple[StepSkill, ...]
    kind: Literal["forecast"] = "forecast"

    def for_a_decision(self) -> Forecast:
        """Without the steps for themselves: a decision looks at the largest load until each, and so does its record."""
        return replace(self, point=(), quantiles=())

    @property
    def reach_seconds(self) -> int:
        """How far it reaches from its origin."""
        return self.bin_seconds * len(self.window_quantiles)

    def step_for(self, until_seconds: float) -> int:
        """The step whose bin holds the moment `until_seconds` after the origin; it may lie beyond the last step."""
        return max(1, math.ceil(until_seconds / self.bin_seconds))

    def window_quantile(self, until_seconds: float, level: float) -> float | ForecastUnavailable:
        """Quantile of the largest bin of all that begin before the moment `until_seconds` after the origin.

        Between two kept levels the value is interpolated; outside them the nearest is taken. Capacity that is ordered
        `age_seconds` after the origin and takes `start_seconds` serves from `until_seconds`, the sum of both, on.
        Beyond the last step: unavailable, as a shorter window would promise too little.
        """
        step = self.step_for(until_seconds)
        if step > len(self.window_quantiles):
            return self._too_long(until_seconds)
        return _between(self.levels, self.window_quantiles[step - 1], level)

    def peak(self, level: float) -> tuple[float, float]:
        """The quantile of the largest bin ahead, and the moment (unix time) at which the bin begins that makes it."""
        loads = [_between(self.levels, row, level) for row in self.window_quantiles]
        first = next(place for place, load in enumerate(loads) if load >= loads[-1])
        return loads[-1], self.origin_seconds + first * self.bin_seconds

    def why_not_acting(self, until_seconds: float) -> ForecastUnavailable | None:
        """Why it may not act on a window of that length (see `window_quantile`); None where it may."""
        step = self.step_for(until_seconds)
        if step > len(self.skills):
            return self._too_long(until_seconds)
        skill = self.skills[step - 1]
        if skill.scored_bins < skill.needed_bins:
            return ForecastUnavailable(
                UnavailableReason.TOO_LITTLE_HISTORY,
                f"{skill.scored_bins} of {skill.needed_bins} bins of own backtest at step {step}",
                skill.loss_ratio,
            )
        if not skill.is_open:
            return ForecastUnavailable(
                UnavailableReason.NOT_BETTER_THAN_LAST_VALUE,
                f"loss is {_said_ratio(skill.loss_ratio)} of the last value's at step {step}; "
                f"acts below {chosen.GATE_OPENS_BELOW:g}",
                skill.loss_ratio,
            )
        return None

    def _too_long(self, until_seconds: float) -> ForecastUnavailable:
        return ForecastUnavailable(
            UnavailableReason.HORIZON_TOO_LONG,
            f"{until_seconds:.0f} s ahead is asked for; this forecast reaches {self.reach_seconds} s",
        )


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


def _between(levels: Sequence[float], quantiles: Sequence[float], level: float) -> float:
    """The quantile at a level: on the line between the two nearest, beyond the first or the last that one."""
    above = bisect_right(levels, level)
    if above in (0, len(levels)):
        return quantiles[max(above - 1, 0)]
    low, high = levels[above - 1], levels[above]
    slope = (quantiles[above] - quantiles[above - 1]) / (high - low)
    return slope * (level - low) + quantiles[above - 1]


def _said_ratio(ratio: float | None) -> str:
    return "not yet known" if ratio is None else f"{ratio:.2f}"
