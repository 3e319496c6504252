"""`tokenscaler forecast SERIES.csv`: the forecast of a recorded series, or how good it would have been."""

from __future__ import annotations

import csv
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import typer
from rich.console import Console
from rich.table import Table

from autoscaler.clock import SystemClock
from autoscaler.commands.forecast_page import forecast_page
from autoscaler.commands.forecast_picture import draw_forecast
from autoscaler.commands.forecast_source import PoolRequest, SeriesRequest, load_series
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from forecasting.backtest import SCORED_LEVEL, Backtest, prediction_rows, run_backtest
from forecasting.forecast import Forecast, ForecastUnavailable
from forecasting.models import DEFAULT_MODEL, MODELS, MODELS_TO_RUN_APART
from forecasting.parameters import ForecastingParameters
from forecasting.selection import GatedFleet
from forecasting.series_text import SeriesUnreadable
from forecasting.statistical_models import run_apart
from forecasting.time_series import TimeSeries

LEVELS = (0.5, 0.9, 0.95)
PREDICTIONS_HEADER = ("origin_s", "target_start_s", "step", "quantile", "predicted", "observed")


@dataclass(frozen=True, slots=True)
class BacktestRequest:
    """How to score: the last `test_days` (None: 14, or half of a short series), and where to write every forecast."""

    test_days: float | None = None
    predictions: Path | None = None
    model: str = DEFAULT_MODEL


def forecast_series(
    request: SeriesRequest | PoolRequest, as_json: bool, console: Console, page: Path | None = None
) -> int:
    """Prints the forecast after the last bin of a series and a picture; 1 where there is none, 2 for bad input.

    `page` is where an HTML page with the picture is written, where one is wanted.
    """
    series = _read(request)
    if series is None:
        return WRONG_USAGE
    try:
        parameters = ForecastingParameters(bin_seconds=series.step_seconds, levels=LEVELS)
    except ValueError as error:
        return _refuse(str(error))
    fleet = GatedFleet(1, parameters)
    fleet.replay(series.values[:, None])
    forecast = fleet.advised_forecast(0, series.end_seconds)
    acting = fleet.acting_forecast(0, series.end_seconds, until_seconds=0.0)
    if isinstance(forecast, ForecastUnavailable):
        typer.echo(f"tokenscaler: no forecast of {request.title}: {forecast.message}", err=True)
        return NOT_RIGHT
    verdict = "may act" if isinstance(acting, Forecast) else f"would not act: {acting.message}"
    if page is not None:
        try:
            page.write_text(forecast_page(request.title, series, forecast, verdict), encoding="utf-8")
        except OSError as error:
            return _refuse(f"cannot write {page}: {error.strerror}")
    if as_json:
        typer.echo(_forecast_json(forecast, verdict))
        return FINE
    for line in draw_forecast(series, forecast, width=min(console.width, 120)):
        console.print(line, markup=False, highlight=False)
    console.print(f"The model {verdict}.", markup=False)
    return FINE


def backtest_series(
    request: SeriesRequest | PoolRequest, scoring: BacktestRequest, as_json: bool, console: Console
) -> int:
    """Prints how good rolling forecasts would have been; 1 where nothing could be scored, 2 for wrong input.

    `scoring.predictions` gets one row per origin, step and quantile; it needs only data up to `origin_s`.
    """
    series = _read(request)
    if series is None:
        return WRONG_USAGE
    if scoring.model not in MODELS:
        return _refuse(f"--model {scoring.model}: one of {', '.join(MODELS)} is wanted")
    if scoring.test_days is not None and scoring.test_days <= 0:
        return _refuse(f"--test-days {scoring.test_days:g}: more than 0 is wanted")
    try:
        if scoring.model in MODELS_TO_RUN_APART:
            if importlib.util.find_spec("statsmodels") is None:
                return _refuse(f"--model {scoring.model} needs statsmodels: pip install tokenscaler[forecast]")
            backtest = run_apart(run_backtest, series, scoring.model, scoring.test_days, LEVELS)
        else:
            backtest = run_backtest(series, scoring.model, scoring.test_days, LEVELS)
        if scoring.predictions is not None:
            _write_predictions(scoring.predictions, backtest)
    except ValueError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"cannot write {scoring.predictions}: {error.strerror}")
    if as_json:
        typer.echo(_backtest_json(backtest, request))
    else:
        console.print(_backtest_table(backtest, request))
    return FINE if backtest.steps[0].scored.bins > 0 else NOT_RIGHT


def _read(request: SeriesRequest | PoolRequest) -> TimeSeries | None:
    series = load_series(request, SystemClock().now_seconds())
    if isinstance(series, SeriesUnreadable):
        _refuse(series.message)
        return None
    return series


def _refuse(message: str) -> int:
    typer.echo(f"tokenscaler: {message}", err=True)
    return WRONG_USAGE


def _write_predictions(path: Path, backtest: Backtest) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PREDICTIONS_HEADER)
        for row in prediction_rows(backtest):
            times = (f"{row.origin_seconds:.15g}", f"{row.target_start_seconds:.15g}")
            observed = "" if row.observed is None else f"{row.observed:.12g}"
            writer.writerow((*times, row.step, f"{row.level:g}", f"{row.predicted:.12g}", observed))


def _backtest_json(backtest: Backtest, request: SeriesRequest | PoolRequest) -> str:
    values = backtest.series.values
    steps = [
        {
            "step": each.step,
            "bins": each.scored.bins,
            "pinballLoss90": each.scored.pinball_loss,
            "pinballLoss90PerLoad": each.scored.loss_share,
            "ratioToSeasonalNaive": each.ratio_to_seasonal_naive,
            "ratioToLastValue": each.ratio_to_last_value,
            "coverage": {f"{level:g}": share for level, share in zip(LEVELS, each.coverage, strict=True)},
            "underShare": each.scored.under_share,
            "overShare": each.scored.over_share,
        }
        for each in backtest.steps
    ]
    document = {
        **_source_in_json(request),
        "binSeconds": backtest.series.step_seconds,
        "bins": len(values),
        "missingBins": int((~np.isfinite(values)).sum()),
        "testBins": len(values) - backtest.first_test_bin,
        "model": backtest.model,
        "steps": steps,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()  # NaN becomes null


def _source_in_json(request: SeriesRequest | PoolRequest) -> dict[str, str]:
    if isinstance(request, SeriesRequest):
        return {"series": str(request.path), "column": request.column}
    return {"pool": f"{request.namespace}/{request.name}"}


def _backtest_table(backtest: Backtest, request: SeriesRequest | PoolRequest) -> Table:
    days = (len(backtest.series.values) - backtest.first_test_bin) / backtest.parameters.day_bins
    lasts = f"{days:.1f} days" if days >= 1 else f"{24 * days:.2g} hours"
    table = Table(
        title=f"{request.title}: model {backtest.model}, last {lasts}, "
        f"bins of {backtest.series.step_seconds} s, quantile {SCORED_LEVEL:g}",
        title_justify="left",
    )
    for heading in (
        "step",
        "bins",
        "loss / load",
        "to yesterday",
        "to last value",
        "covered .9",
        ".95",
        "under",
        "over",
    ):
        table.add_column(heading, justify="right")
    for each in backtest.steps:
        table.add_row(
            str(each.step),
            str(each.scored.bins),
            _percent(each.scored.loss_share),
            _ratio(each.ratio_to_seasonal_naive),
            _ratio(each.ratio_to_last_value),
            _ratio(each.coverage[1]),
            _ratio(each.coverage[2]),
            _percent(each.scored.under_share),
            _percent(each.scored.over_share),
        )
    return table


def _ratio(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %" if np.isfinite(value) else "-"


def _forecast_json(forecast: Forecast, verdict: str) -> str:
    document = {
        "originSeconds": forecast.origin_seconds,
        "binSeconds": forecast.bin_seconds,
        "quantiles": list(forecast.levels),
        "steps": [
            {"step": step, "point": point, "load": list(by_step), "largestLoadUntilHere": list(by_window)}
            for step, (point, by_step, by_window) in enumerate(
                zip(forecast.point, forecast.quantiles, forecast.window_quantiles, strict=True), start=1
            )
        ],
        "isOutageHold": forecast.is_outage_hold,
        "lossRatioToLastValue": forecast.skills[-1].loss_ratio,
        "verdict": verdict,
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
