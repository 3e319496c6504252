"""How good are the quantiles on recorded loads, against the last value and yesterday with the same interval?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.table import Table

from forecasting.backtest import StepAccuracy, assess
from forecasting.models import DEFAULT_MODEL, MODELS
from forecasting.parameters import ForecastingParameters
from tests.benchmarks.forecast.recorded_series import SERIES

GOALS = ("goal", ".84 .76 .70 .65", ".34 .43 .46 .48", ".88-.92", ".935-.965", "")


def measure_accuracy(traces: Path) -> Table:
    """One row per series and the geometric means; each cell has steps 1 to 4."""
    table = Table(title=f"Pinball loss at 0.9 and coverage, steps 1 2 3 4, {traces}", title_justify="left")
    for heading in ("series", "to last value", "to yesterday", "coverage of q90", "coverage of q95", "under / over %"):
        table.add_column(heading)
    measured: list[tuple[StepAccuracy, ...]] = []
    for recorded in SERIES:
        series = recorded.read(traces)
        if series is None:
            continue
        parameters = ForecastingParameters(bin_seconds=recorded.bin_seconds)
        first = len(series.values) - recorded.test_days * recorded.day_bins
        steps = assess(series, parameters, DEFAULT_MODEL, first, MODELS).steps
        measured.append(steps)
        table.add_row(
            recorded.name,
            _numbers([step.ratio_to_last_value for step in steps]),
            _numbers([step.ratio_to_seasonal_naive for step in steps]),
            _numbers([step.coverage[1] for step in steps]),
            _numbers([step.coverage[2] for step in steps]),
            " ".join(f"{100 * s.scored.under_share:.1f}/{100 * s.scored.over_share:.0f}" for s in steps),
        )
    table.add_section()
    table.add_row(
        "geometric mean",
        _numbers(_means([[step.ratio_to_last_value for step in steps] for steps in measured])),
        _numbers(_means([[step.ratio_to_seasonal_naive for step in steps] for steps in measured])),
        _range([step.coverage[1] for steps in measured for step in steps]),
        _range([step.coverage[2] for steps in measured for step in steps]),
        "",
    )
    table.add_row(*GOALS)
    return table


def _means(ratios: list[list[float | None]]) -> list[float]:
    return [float(value) for value in np.exp(np.log(np.array(ratios, float)).mean(axis=0))]


def _numbers(values: list[float | None] | list[float]) -> str:
    return " ".join("-" if value is None else f"{value:.3f}".lstrip("0") for value in values)


def _range(values: list[float]) -> str:
    return f"{min(values):.3f}-{max(values):.3f}"
