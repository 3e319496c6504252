"""How good would the forecasts of a series have been, each made from what was known then? Rolling origin, every bin.

Every model is fed bin after bin; what it says when bin t closes is scored against the bins after t. Nothing is fitted
beforehand, so a later value cannot reach an earlier forecast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from forecasting.accuracy import QuantileAccuracy, quantile_accuracy, ratio
from forecasting.arrays import FloatArray
from forecasting.forecast import FleetForecaster
from forecasting.models import MODELS
from forecasting.parameters import ForecastingParameters
from forecasting.time_series import TimeSeries

SCORED_LEVEL = 0.9
DEFAULT_TEST_DAYS = 14
LEAST_TRAINING_SHARE = 0.5  # of a series whose length leaves no room for the default test window


@dataclass(frozen=True, slots=True)
class RollingForecasts:
    """What a model said of a series: `quantiles` (bins, steps, levels), `point` (bins, steps), by origin's bin."""

    point: FloatArray
    quantiles: FloatArray
    window_quantiles: FloatArray


@dataclass(frozen=True, slots=True)
class StepAccuracy:
    """Accuracy of one step: of the scored level, the coverage of every level, and the ratios to both baselines."""

    step: int
    scored: QuantileAccuracy
    coverage: tuple[float, ...]
    ratio_to_last_value: float | None
    ratio_to_seasonal_naive: float | None


@dataclass(frozen=True, slots=True)
class Backtest:
    """A model's rolling forecasts of a series and their accuracy over the bins from `first_test_bin` on."""

    series: TimeSeries
    parameters: ForecastingParameters
    model: str
    first_test_bin: int
    forecasts: RollingForecasts
    steps: tuple[StepAccuracy, ...]


@dataclass(frozen=True, slots=True)
class PredictionRow:
    """One issued quantile: of the bin `step` bins after `origin_seconds`, which begins at `target_start_seconds`."""

    origin_seconds: float
    target_start_seconds: float
    step: int
    level: float
    predicted: float
    observed: float | None


def roll(values: FloatArray, model: FleetForecaster, parameters: ForecastingParameters) -> RollingForecasts:
    """Feeds one series (bins,) to a model made for one pool and keeps what it says after every bin."""
    shape = (len(values), parameters.steps)
    point = np.empty(shape)
    quantiles, windows = (np.empty((*shape, len(parameters.levels))) for _ in range(2))
    for number, value in enumerate(values):
        said = model.advance(np.array([value]))
        point[number], quantiles[number], windows[number] = said.point[0], said.quantiles[0], said.window_quantiles[0]
    return RollingForecasts(point, quantiles, windows)


def run_backtest(series: TimeSeries, model: str, test_days: float | None, levels: tuple[float, ...]) -> Backtest:
    """Backtest over the last `test_days` (default 14, or half of a series shorter than 28 days).

    Missing bins are not scored; a ratio is over the bins both models spoke for. ValueError if the bins do
    not divide a day.
    """
    parameters = ForecastingParameters(bin_seconds=series.step_seconds, levels=levels)
    day = parameters.day_bins
    room = int(len(series.values) * LEAST_TRAINING_SHARE)
    test_bins = min(DEFAULT_TEST_DAYS * day, room) if test_days is None else round(test_days * day)
    test_bins = max(0, min(test_bins, len(series.values)))
    return assess(series, parameters, model, len(series.values) - test_bins, MODELS)


def assess(
    series: TimeSeries,
    parameters: ForecastingParameters,
    model: str,
    first_test_bin: int,
    models: dict[str, Callable[[int, ForecastingParameters], FleetForecaster]],
) -> Backtest:
    """Rolls the model and both baselines over the series and scores the bins from `first_test_bin` on."""
    values = series.values
    forecasts = roll(values, models[model](1, parameters), parameters)
    last = roll(values, models["last-value"](1, parameters), parameters)
    naive = roll(values, models["seasonal-naive"](1, parameters), parameters)
    steps = tuple(
        _step_accuracy(values, (forecasts, last, naive), step, first_test_bin, parameters)
        for step in range(parameters.steps)
    )
    return Backtest(series, parameters, model, first_test_bin, forecasts, steps)


def _step_accuracy(
    values: FloatArray,
    said: tuple[RollingForecasts, RollingForecasts, RollingForecasts],
    step: int,
    first_bin: int,
    parameters: ForecastingParameters,
) -> StepAccuracy:
    scored = parameters.levels.index(SCORED_LEVEL)
    observed = values[first_bin:]
    own, last, naive = (_issued_for(each.quantiles, step, first_bin, len(values)) for each in said)
    accuracies = [quantile_accuracy(observed, own[:, column], level) for column, level in enumerate(parameters.levels)]
    ratios = []
    for baseline in (last, naive):
        shared = np.where(np.isfinite(own[:, scored] + baseline[:, scored]), observed, np.nan)
        losses = [quantile_accuracy(shared, each[:, scored], SCORED_LEVEL).pinball_loss for each in (own, baseline)]
        ratios.append(ratio(*losses))
    coverage = tuple(accuracy.coverage for accuracy in accuracies)
    return StepAccuracy(step + 1, accuracies[scored], coverage, ratios[0], ratios[1])


def prediction_rows(backtest: Backtest) -> Iterator[PredictionRow]:
    """Every quantile issued for a bin of the test window, by origin; `observed` is None where the bin is missing."""
    series, parameters, quantiles = backtest.series, backtest.parameters, backtest.forecasts.quantiles
    bins = len(series.values)
    for origin in range(max(0, backtest.first_test_bin - parameters.steps), bins):
        origin_seconds = series.start_seconds + series.step_seconds * (origin + 1)
        for step in range(1, parameters.steps + 1):
            target = origin + step
            if not backtest.first_test_bin <= target < bins:
                continue
            value = float(series.values[target])
            for column, level in enumerate(parameters.levels):
                yield PredictionRow(
                    origin_seconds,
                    origin_seconds + series.step_seconds * (step - 1),
                    step,
                    level,
                    float(quantiles[origin, step - 1, column]),
                    value if math.isfinite(value) else None,
                )


def _issued_for(quantiles: FloatArray, step: int, first_bin: int, bins: int) -> FloatArray:
    """Quantiles (bins from `first_bin`, levels) issued `step + 1` bins before each; NaN before the first origin."""
    origins = np.arange(first_bin, bins) - step - 1
    issued: FloatArray = quantiles[np.maximum(origins, 0), step]
    issued[origins < 0] = np.nan
    return issued
