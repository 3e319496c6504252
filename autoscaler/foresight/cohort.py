"""Which pools are forecast together? Those whose past was read together: one set of arrays, one call a bin."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autoscaler.foresight.foresight import WorkPast
from autoscaler.observers.metrics import PoolKey
from forecasting.forecast import Forecast, ForecastUnavailable
from forecasting.parameters import ForecastingParameters
from forecasting.selection import GatedFleet


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What is said of one pool until the next bin closes: all of it, and what of it a decision looks at."""

    said: Forecast | ForecastUnavailable
    for_a_decision: Forecast | ForecastUnavailable


class Cohort:
    """A GatedFleet with the names of its pools. Pools that leave it are fed as missing; the others do not notice."""

    def __init__(self, keys: Sequence[PoolKey], past: WorkPast, parameters: ForecastingParameters) -> None:
        """Replays the past, which takes half a minute for a thousand pools: not for the thread of the ticks."""
        self._keys = tuple(keys)
        self._places = {key: place for place, key in enumerate(keys)}
        self._fleet = GatedFleet(len(keys), parameters)
        self._fleet.replay(past.loads)
        self._bin_seconds = parameters.bin_seconds
        self._made: dict[PoolKey, Foreseen] = {}
        self.next_bin = round(past.ends_at_seconds / parameters.bin_seconds)

    @property
    def keys(self) -> Collection[PoolKey]:
        """The pools that it answers for."""
        return self._places.keys()

    def release(self, keys: Collection[PoolKey]) -> None:
        """No longer answers for these pools."""
        for key in keys:
            self._places.pop(key, None)

    def advance(self, number: int, loads: Mapping[PoolKey, float]) -> None:
        """Takes bin `number`; bins that were left out before it are missing, and one that is known already is nothing.

        The caller sees to it that few bins are left out: each costs as much as a known one.
        """
        while self.next_bin <= number:
            known = loads if self.next_bin == number else {}
            self._fleet.advance(np.array([known.get(key, np.nan) for key in self._keys]))
            self.next_bin += 1
            self._made = {}

    def foreseen(self, key: PoolKey) -> Foreseen:
        """The newest forecast of one of its pools, the gate of each step included; made once a bin."""
        made = self._made.get(key)
        if made is None:
            origin_seconds = float(self.next_bin * self._bin_seconds)
            said = self._fleet.advised_forecast(self._places[key], origin_seconds)
            made = self._made[key] = Foreseen(said, said.for_a_decision() if isinstance(said, Forecast) else said)
        return made
