"""What happens after gaps, zeros, jumps, spikes and a moved clock? Step 2, mean over the recorded pools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from forecasting.accuracy import quantile_accuracy
from forecasting.fleet_model import FleetModel
from forecasting.parameters import ForecastingParameters
from tests.benchmarks.forecast.recorded_series import SERIES

POOLS = ("kpi", "nasa", "sg_s31")
EVENT_HOUR = 14
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Event:
    """A change of a load from the event's bin on, and the window (hours after it) that is scored."""

    name: str
    change: Callable[[Values, int, int], None]
    from_hours: float
    to_hours: float
    study: str


def _set(hours: float, value: float) -> Callable[[Values, int, int], None]:
    def change(loads: Values, start: int, hour: int) -> None:
        loads[start : start + round(hours * hour)] = value

    return change


def _times(hours: float, factor: float) -> Callable[[Values, int, int], None]:
    def change(loads: Values, start: int, hour: int) -> None:
        loads[start : start + round(hours * hour)] *= factor

    return change


def _clock(loads: Values, start: int, hour: int) -> None:
    loads[start:-hour] = loads[start + hour :].copy()


# `study` is what the plain recursive ridge (10 features, one scale) had on the same three pools.
EVENTS = (
    Event("2-h gap: 2 h after", _set(2, np.nan), 2, 4, ".97 / 17 (0.2)"),
    Event("12-h gap: 2 h after", _set(12, np.nan), 12, 14, ".99 / 73 (0.1)"),
    Event("12-h gap: same hours next day", _set(12, np.nan), 24, 36, ".93 / 20 (0.4)"),
    Event("1 h of zeros: first 30 min back", _set(1, 0.0), 1, 1.5, ".94 / 15 (0.0)"),
    Event("1 h of zeros: same hour next day", _set(1, 0.0), 24, 25, "1.00 / 15 (0.0)"),
    Event("load x2: first hour", _times(1e4, 2.0), 0, 1, ".50 / 4 (10.2)"),
    Event("load x2: 1-6 h", _times(1e4, 2.0), 1, 6, ".83 / 15 (0.9)"),
    Event("load x2: 6-24 h", _times(1e4, 2.0), 6, 24, ".90 / 23 (0.9)"),
    Event("load x0.4: 1-6 h", _times(1e4, 0.4), 1, 6, "1.00 / 47 (0.0)"),
    Event("load x0.4: day 2", _times(1e4, 0.4), 24, 48, ".91 / 20 (0.7)"),
    Event("spike x5: hour after", _times(0.25, 5.0), 0.25, 1.25, "1.00 / 111 (0.0)"),
    Event("spike x5: same time next day", _times(0.25, 5.0), 24, 24.5, "1.00 / 25 (0.0)"),
    Event("clock moves 1 h: day 1", _clock, 0, 24, ".91 / 26 (1.1)"),
    Event("clock moves 1 h: day 2", _clock, 24, 48, ".90 / 22 (0.8)"),
)


def measure_events(traces: Path) -> Table:
    """Coverage of q90, over and under share by event, mean over the pools that the folder holds."""
    table = Table(title="Events at 14:00, step 2, q90: coverage / over % (under %)", title_justify="left")
    for heading in ("event, window", "measured", "without the event", "plain ridge, all three pools"):
        table.add_column(heading)
    cells: dict[str, list[tuple[float, ...]]] = {event.name: [] for event in EVENTS}
    plain: dict[str, list[tuple[float, ...]]] = {event.name: [] for event in EVENTS}
    for recorded in SERIES:
        series = recorded.read(traces) if recorded.name in POOLS else None
        if series is None:
            continue
        hour = recorded.day_bins // 24
        start = (recorded.days - 3) * recorded.day_bins + EVENT_HOUR * hour
        columns = np.tile(series.values, (len(EVENTS) + 1, 1))
        for row, event in zip(columns, EVENTS, strict=False):
            event.change(row, start, hour)
        model = FleetModel(len(columns), ForecastingParameters(bin_seconds=recorded.bin_seconds))
        said = np.stack([model.advance(loads).quantiles[:, 1, 1] for loads in columns.T], axis=1)
        for number, event in enumerate(EVENTS):
            bins = slice(start + round(event.from_hours * hour), start + round(event.to_hours * hour))
            issued = slice(bins.start - 2, bins.stop - 2)
            for column, found in ((number, cells), (-1, plain)):
                scored = quantile_accuracy(columns[column, bins], said[column, issued], 0.9)
                found[event.name].append((scored.coverage, scored.over_share, scored.under_share))
    for event in EVENTS:
        table.add_row(event.name, _cell(cells[event.name]), _cell(plain[event.name]), event.study)
    return table


def _cell(found: list[tuple[float, ...]]) -> str:
    coverage, over, under = np.nanmean(np.array(found), axis=0)
    return f"{coverage:.2f} / {100 * over:.0f} ({100 * under:.1f})"
