"""The port through which a tick learns what is to come, and the one through which a recorded past is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autoscaler.observers.metrics import PoolKey, PoolQuery
from forecasting.forecast import Forecast, ForecastUnavailable
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.recommenders.forecast import ForecastParameters


@dataclass(frozen=True, slots=True)
class SeenPool:
    """A pool whose load is to be forecast, as it was seen at one tick."""

    query: PoolQuery
    parameters: ForecastParameters
    replicas: ReplicaCounts
    metrics: MetricsObservation | ObservationUnavailable

    @property
    def key(self) -> PoolKey:
        """(namespace, name) of its InferenceScaler."""
        return self.query.key


class Foresight(Protocol):
    """Forecasts the arriving load of all pools in one go."""

    def foresee(
        self, pools: Sequence[SeenPool], now_seconds: float
    ) -> Mapping[PoolKey, Forecast | ForecastUnavailable]:
        """An entry for every pool that was asked for, of a forecast what a decision looks at.

        Returns at once; never waits on the network.
        """
        ...


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """Whose past is wanted, and how much of it."""

    query: PoolQuery
    days: int


@dataclass(frozen=True, slots=True)
class WorkPast:
    """Arriving tokens per second by bin and pool (bins, pools), NaN where nothing is known.

    The last bin ends at `ends_at_seconds`; the pools are in the order of the request. `warnings` say what is missing.
    """

    ends_at_seconds: float
    loads: NDArray[np.float64]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PastUnavailable:
    """Why no past could be read."""

    message: str


class WorkHistory(Protocol):
    """Where the past of a pool's load is recorded."""

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        """The past of these pools up to `ends_at_seconds`, a multiple of `bin_seconds`. May take a minute."""
        ...


def no_past(pools: int, ends_at_seconds: float) -> WorkPast:
    """A past without bins."""
    return WorkPast(ends_at_seconds, np.empty((0, pools)))


class NoWorkHistory:
    """No past is recorded anywhere: forecasts begin with what is seen from now on."""

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        """A past without bins."""
        return no_past(len(requests), ends_at_seconds)
