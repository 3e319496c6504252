"""Which series does a CSV text hold? Header `timestamp_s,value[,input_tokens,output_tokens]`, times in seconds.

Rows at even distances are samples of a rate; uneven or repeated times are single requests. An empty cell is a missing
observation, not zero.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

import numpy as np

from forecasting.arrays import FloatArray
from forecasting.time_series import TimeSeries, mean_of_samples, rate_of_events

TIME_COLUMN = "timestamp_s"
DEFAULT_BIN_SECONDS = 300
EVEN_TOLERANCE_SECONDS = 1e-6
LEAST_NEIGHBOUR_SHARE = 0.5  # of the rows follow at the common distance; requests on a grid of seconds do not


@dataclass(frozen=True, slots=True)
class SeriesUnreadable:
    """The text holds no series; `message` says what was found and what is expected."""

    message: str


@dataclass(frozen=True, slots=True)
class _Rows:
    at_seconds: FloatArray
    values: FloatArray


def read_series(text: str, column: str = "value", bin_seconds: int | None = None) -> TimeSeries | SeriesUnreadable:
    """The series of one column, or of several joined by "+", in bins of `bin_seconds`.

    Without `bin_seconds`, bins of 5 minutes or of the rows' distance if that is longer. Samples wider than the bin
    asked for keep their own width. Requests become amounts per second. A sum with a missing part is missing.
    """
    rows = _read_rows(text, [name.strip() for name in column.split("+")])
    if isinstance(rows, SeriesUnreadable):
        return rows
    spacing = _even_spacing(rows.at_seconds)
    width = bin_seconds or DEFAULT_BIN_SECONDS
    try:
        if spacing is None:
            return rate_of_events(rows.at_seconds, rows.values, width)
        return mean_of_samples(rows.at_seconds, rows.values, spacing, max(width, round(spacing)))
    except ValueError as error:
        return SeriesUnreadable(str(error))


def _read_rows(text: str, columns: list[str]) -> _Rows | SeriesUnreadable:
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    header = [name.strip() for name in reader.fieldnames or ()]
    reader.fieldnames = header
    absent = [name for name in (TIME_COLUMN, *columns) if name not in header]
    if absent:
        return SeriesUnreadable(
            f"column {', '.join(absent)} not found; the header has: {', '.join(header) or 'nothing'}"
        )
    at, values = [], []
    for number, row in enumerate(reader, start=2):
        try:
            time = float(row[TIME_COLUMN])
            cells = [(row[name] or "").strip() for name in columns]
            value = math.nan if "" in cells else math.fsum(float(cell) for cell in cells)
        except (TypeError, ValueError):
            return SeriesUnreadable(f"line {number} is not a number per column: {dict(row)}")
        if not math.isfinite(time):
            return SeriesUnreadable(f"line {number} has no finite {TIME_COLUMN}")
        at.append(time)
        values.append(value)
    if not at:
        return SeriesUnreadable("no rows below the header")
    return _Rows(np.array(at), np.array(values))


def _even_spacing(at_seconds: FloatArray) -> float | None:
    """Distance of evenly spaced rows, of which some may be left out; None for single requests."""
    if len(at_seconds) < 2:
        return None
    distances = np.diff(np.sort(at_seconds))
    spacing = float(distances.min())
    if spacing < 1.0:
        return None
    multiples = distances / spacing
    is_even = np.abs(multiples - np.round(multiples)) * spacing <= EVEN_TOLERANCE_SECONDS
    return spacing if bool(is_even.all()) and float((multiples < 1.5).mean()) >= LEAST_NEIGHBOUR_SHARE else None
