"""Of which series or pool is a forecast wanted, and is it to be shown or judged?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.command_line.shared_options import PrometheusConfig, prometheus_settings
from autoscaler.command_line.terminal import Output, console, refuse


def forecast(
    series: Annotated[
        str,
        typer.Argument(
            help="CSV: timestamp_s,value[,input_tokens,output_tokens]; or NAMESPACE/NAME, with --prometheus-url."
        ),
    ],
    column: Annotated[str, typer.Option(help="A column, or several joined by +.")] = "value",
    bin_width: Annotated[
        str | None,
        typer.Option(
            "--bin",
            help="Width of a bin, such as 5m: never less than the distance of even rows; requests are counted into it.",
        ),
    ] = None,
    backtest: Annotated[bool, typer.Option("--backtest", help="Score rolling forecasts instead.")] = False,
    test_days: Annotated[float | None, typer.Option(help="Days at the series' end that are scored.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="CSV with every scored forecast (with --backtest).")] = None,
    model: Annotated[str, typer.Option(help="Which model is scored (with --backtest).")] = "ridge",
    html: Annotated[Path | None, typer.Option(help="Write the picture to a page of its own.")] = None,
    prometheus_url: Annotated[
        str | None, typer.Option(envvar="TOKENSCALER_PROMETHEUS_URL", help="Where the load of NAMESPACE/NAME is.")
    ] = None,
    prometheus_config: PrometheusConfig = None,
    days: Annotated[int, typer.Option(min=1, max=22, help="Days of a pool's load that are read.")] = 14,
    target: Annotated[str | None, typer.Option(help="The pool's Deployment, where its name is another one.")] = None,
    engine: Annotated[str, typer.Option(help="The pool's engine.")] = "vllm",
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Show the forecast of a pool or a recorded series as a picture, or how good it would have been.

    Examples: tokenscaler forecast load.csv --column input_tokens+output_tokens --bin 5m --backtest
    tokenscaler forecast inference/llama-8b --prometheus-url http://localhost:9090 --html forecast.html
    """
    from autoscaler.commands.forecast import BacktestRequest, backtest_series, forecast_series
    from autoscaler.commands.forecast_source import PoolRequest, SeriesRequest

    request: SeriesRequest | PoolRequest = SeriesRequest(Path(series), column, bin_width)
    if prometheus_url is not None and not Path(series).exists():
        namespace, _, name = series.partition("/")
        if not (namespace and name) or "/" in name:
            refuse(f"forecast {series}: no such file, and no NAMESPACE/NAME")
        prometheus, queries = prometheus_settings(prometheus_url, prometheus_config)
        request = PoolRequest(namespace, name, prometheus, queries, target, engine, days)
    if not backtest:
        if predictions is not None or test_days is not None:
            refuse("--predictions and --test-days go with --backtest")
        raise typer.Exit(forecast_series(request, output is Output.JSON, console(), html))
    scoring = BacktestRequest(test_days, predictions, model)
    raise typer.Exit(backtest_series(request, scoring, output is Output.JSON, console()))
