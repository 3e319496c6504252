"""What do models of the textbooks say? Cross-checks for the backtest: one pool, seconds a series, and statsmodels.

Never in a controller: statsmodels with scipy and pandas is 200 MB, and a fit may take a second. `run_apart` runs a
backtest of one of them in a process of its own. Their points get the rolling interval that all baselines have.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import numpy as np

from forecasting import parameters as chosen
from forecasting.arrays import FloatArray
from forecasting.forecast import FleetPrediction
from forecasting.parameters import ForecastingParameters
from forecasting.rolling_interval import RollingInterval

T = TypeVar("T")

DAILY_HARMONICS, WEEKLY_HARMONICS = 8, 4
LAGS = 6
REFITS_PER_DAY = 4
KEPT_DAYS = 14
LEAST_DAYS = 2.0  # before that the last value is repeated


def run_apart(work: Callable[..., T], *arguments: Any) -> T:
    """What the work returns, from a fresh process that ends with it: nothing of statsmodels is loaded here."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(work, *arguments).result()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Of a fit that converges slowly: the score says what it is worth. To be entered after statsmodels is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _OnePool:
    """A model of one pool's square roots of load that is fitted anew every six hours on the last two weeks."""

    def __init__(self, pools: int, parameters: ForecastingParameters) -> None:
        if pools != 1:
            raise ValueError(f"pools={pools}: a cross-check is of one pool")
        self._parameters = parameters
        self._interval = RollingInterval(1, parameters, chosen.BASELINE_RING_DAYS, evaluation_bins=1)
        self._roots: list[float] = []
        self._now = -1

    def advance(self, loads: FloatArray) -> FleetPrediction:
        """As FleetForecaster; a missing load counts as the one before it."""
        self._now += 1
        self._interval.learn(self._now, loads)
        load = float(loads[0])
        if np.isfinite(load) and load >= 0:
            self._roots.append(float(np.sqrt(load)))
        elif self._roots:
            self._roots.append(self._roots[-1])
        point = np.full((1, self._parameters.steps), np.nan)
        if self._roots:
            point[0] = self._points() ** 2
        quantiles = self._interval.quantiles(self._now, point)
        return FleetPrediction(point, quantiles, np.maximum.accumulate(quantiles, axis=1))

    def _points(self) -> FloatArray:
        day, steps = self._parameters.day_bins, self._parameters.steps
        if len(self._roots) < LEAST_DAYS * day:
            return np.full(steps, self._roots[-1])
        recent = np.array(self._roots[-KEPT_DAYS * day :])
        if len(self._roots) % max(1, day // REFITS_PER_DAY) == 0 or not self._is_fitted():
            self._fit(recent)
        ceiling = chosen.POINT_CEILING * float(recent.max())
        return np.clip(np.nan_to_num(self._ahead(recent), nan=self._roots[-1]), 0.0, ceiling)

    def _is_fitted(self) -> bool:
        raise NotImplementedError

    def _fit(self, recent: FloatArray) -> None:
        raise NotImplementedError

    def _ahead(self, recent: FloatArray) -> FloatArray:
        """The steps after the last of `recent`."""
        raise NotImplementedError


class FourierAutoRegression(_OnePool):
    """Harmonics of the day and the week, and six lags: statsmodels' AutoReg."""

    _weights: FloatArray | None = None

    def _is_fitted(self) -> bool:
        return self._weights is not None

    def _harmonics(self, numbers: FloatArray) -> FloatArray:
        day = self._parameters.day_bins
        turns = [k * numbers / day for k in range(1, DAILY_HARMONICS + 1)]
        turns += [k * numbers / (7 * day) for k in range(1, WEEKLY_HARMONICS + 1)]
        return np.stack([wave(2 * np.pi * turn) for turn in turns for wave in (np.sin, np.cos)], axis=1)

    def _numbers(self, count: int, last: int) -> FloatArray:
        return np.arange(last - count + 1, last + 1, dtype=np.float64)

    def _fit(self, recent: FloatArray) -> None:
        from statsmodels.tsa.ar_model import AutoReg

        waves = self._harmonics(self._numbers(len(recent), len(self._roots) - 1))
        with _without_warnings():
            self._weights = np.asarray(AutoReg(recent, lags=LAGS, exog=waves).fit().params)

    def _ahead(self, recent: FloatArray) -> FloatArray:
        assert self._weights is not None
        constant, lags, waves = self._weights[0], self._weights[1 : LAGS + 1], self._weights[LAGS + 1 :]
        steps = self._parameters.steps
        seasonal = self._harmonics(self._numbers(steps, len(self._roots) - 1 + steps)) @ waves
        known = list(recent[-LAGS:])
        for step in range(steps):
            known.append(constant + float(np.dot(lags, known[: -LAGS - 1 : -1])) + float(seasonal[step]))
        return np.array(known[-steps:])


class StructuralModel(_OnePool):
    """A level, six harmonics of the day and what is left over as AR(1): statsmodels' UnobservedComponents."""

    _fitted: Any = None

    def _is_fitted(self) -> bool:
        return self._fitted is not None

    def _fit(self, recent: FloatArray) -> None:
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        season = [{"period": self._parameters.day_bins, "harmonics": 6}]
        model = UnobservedComponents(recent, "local level", freq_seasonal=season, autoregressive=1)
        start = None if self._fitted is None else self._fitted.params
        with _without_warnings():
            self._fitted = model.fit(start_params=start, maxiter=10, disp=False)
        self._seen = len(self._roots)

    def _ahead(self, recent: FloatArray) -> FloatArray:
        newer = len(self._roots) - self._seen
        if newer:
            self._fitted = self._fitted.extend(recent[-newer:])
            self._seen = len(self._roots)
        return np.asarray(self._fitted.forecast(self._parameters.steps))
