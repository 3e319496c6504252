"""Which requests arrive when? Recorded traces as files: of single requests, or of rates in bins of equal length.

Both are CSV with the header `timestamp_s,value,input_tokens,output_tokens`. In a trace of requests every row is one
request (value 1; its tokens). In a binned trace a row is a bin that begins at its stamp: requests per second, prompt
tokens per second, generated tokens per second; an empty value is a bin that was not recorded.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

COLUMNS = ("timestamp_s", "value", "input_tokens", "output_tokens")
MAXIMUM_TOKENS = 10_000_000
# In seconds since 1970 the year 5138: later stamps are of a finer unit.
LATEST_STAMP_SECONDS = 1e11
# The length of a bin that is alone.
BIN_ALONE_SECONDS = 60.0
# A silence that is told of: for so long, and so many times the usual one between two requests.
TELLING_SILENCE_SECONDS = 600.0
TELLING_SILENCE_STEPS = 100.0

# Spread of prompt and answer lengths around a bin's mean, which is all that a binned trace tells: the deviation of the
# logarithm. The recorded lengths of the Azure conversation trace of 2023 have 0.99 and 0.86.
INPUT_SPREAD = 1.0
OUTPUT_SPREAD = 0.85


class TraceError(ValueError):
    """A trace that cannot be used; the text names file, line, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class RequestTrace:
    """Single requests by arrival (seconds from the trace's own zero), and what was assumed while reading them."""

    arrival_seconds: FloatArray
    input_tokens: IntArray
    output_tokens: IntArray
    duration_seconds: float
    assumptions: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.arrival_seconds)

    def part(self, start_seconds: float, end_seconds: float) -> RequestTrace:
        """The requests from start up to end, on the same clock; empty where there are none."""
        first, last = np.searchsorted(self.arrival_seconds, (start_seconds, end_seconds))
        kept = slice(int(first), int(last))
        return RequestTrace(
            self.arrival_seconds[kept], self.input_tokens[kept], self.output_tokens[kept], end_seconds, self.assumptions
        )


@dataclass(frozen=True, slots=True)
class BinnedTrace:
    """Rates by bin; every bin lasts `bin_seconds`, the first begins at `start_seconds`. Not recorded: NaN."""

    start_seconds: float
    bin_seconds: float
    requests_per_second: FloatArray
    input_tokens_per_request: FloatArray
    output_tokens_per_request: FloatArray
    assumptions: tuple[str, ...] = ()

    @property
    def end_seconds(self) -> float:
        """When the last bin ends."""
        return self.start_seconds + self.bin_seconds * len(self.requests_per_second)


def shipped_trace(name: str) -> RequestTrace | BinnedTrace:
    """A trace of the package by its file's name without `.csv`; where it comes from stands beside it."""
    source = resources.files("autoscaler.replay") / "traces" / f"{name}.csv"
    with source.open("r", encoding="utf-8") as lines:
        return _parse(lines, f"{name}.csv")


def read_trace(path: Path) -> RequestTrace | BinnedTrace:
    """A trace from a file. Raises `TraceError` for one that cannot be used, OSError for one that cannot be read."""
    with path.open(encoding="utf-8-sig", newline="") as lines:  # spreadsheets begin with a mark of byte order
        return _parse(lines, str(path))


def draw_requests(
    trace: BinnedTrace, generator: np.random.Generator, scale: float, start_seconds: float, end_seconds: float
) -> RequestTrace:
    """Requests that a binned trace may stand for: Poisson arrivals in each bin, log-normal lengths around its means.

    Bins that were not recorded get the rate of the bin before them.
    """
    arrivals, inputs, outputs = [], [], []
    for start, rate, mean_input, mean_output in _bins_between(trace, start_seconds, end_seconds):
        begin, end = max(start, start_seconds), min(start + trace.bin_seconds, end_seconds)
        count = int(generator.poisson(rate * scale * (end - begin)))
        arrivals.append(np.sort(generator.uniform(begin, end, count)))
        inputs.append(_draw_lengths(generator, mean_input, INPUT_SPREAD, count))
        outputs.append(_draw_lengths(generator, mean_output, OUTPUT_SPREAD, count))
    if not arrivals:
        raise TraceError(
            f"the binned trace lasts from {trace.start_seconds:g} to {trace.end_seconds:g} s; nothing of it lies "
            f"between {start_seconds:g} and {end_seconds:g} s"
        )
    return RequestTrace(
        np.concatenate(arrivals), np.concatenate(inputs), np.concatenate(outputs), end_seconds, trace.assumptions
    )


def scale_requests(trace: RequestTrace, generator: np.random.Generator, scale: float) -> RequestTrace:
    """As if `scale` times as many users sent requests: each one appears `scale` times on average.

    Copies are moved by up to half a minute either way (round the ends), which keeps the shape of minutes and spreads
    what would else be bursts of equal stamps. A scale of 1 is the trace itself.
    """
    if scale <= 0:
        raise TraceError(f"a trace cannot be scaled by {scale:g}; give a number above 0")
    if scale == 1:
        return trace
    copies = np.floor(scale + generator.uniform(size=len(trace))).astype(np.int64)
    index = np.repeat(np.arange(len(trace)), copies)
    is_copy = np.diff(index, prepend=-1) == 0
    moved = trace.arrival_seconds[index] + is_copy * generator.uniform(-30.0, 30.0, len(index))
    moved = np.mod(moved, trace.duration_seconds)
    order = np.argsort(moved, kind="stable")
    return RequestTrace(
        moved[order],
        trace.input_tokens[index][order],
        trace.output_tokens[index][order],
        trace.duration_seconds,
        trace.assumptions,
    )


def _bins_between(
    trace: BinnedTrace, start_seconds: float, end_seconds: float
) -> Iterator[tuple[float, float, float, float]]:
    rate, mean_input, mean_output = 0.0, 1.0, 1.0
    for place, measured in enumerate(trace.requests_per_second):
        if not math.isnan(measured):
            rate = float(measured)
            if rate > 0:
                mean_input = float(trace.input_tokens_per_request[place])
                mean_output = float(trace.output_tokens_per_request[place])
        begin = trace.start_seconds + place * trace.bin_seconds
        if begin + trace.bin_seconds > start_seconds and begin < end_seconds:
            yield begin, rate, mean_input, mean_output


def _draw_lengths(generator: np.random.Generator, mean: float, spread: float, count: int) -> IntArray:
    lengths = generator.lognormal(math.log(max(mean, 1.0)) - spread * spread / 2, spread, count)
    return np.clip(np.rint(lengths), 1, MAXIMUM_TOKENS).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    stamp: float
    value: float
    inputs: float
    outputs: float


def _parse(lines: Iterator[str] | Sequence[str], where: str) -> RequestTrace | BinnedTrace:
    reader = csv.reader(lines)
    try:
        return _parse_table(reader, where)
    except csv.Error as error:  # of the lines that it joins the number is the last one's
        raise TraceError(
            f"{where}, up to line {reader.line_num}: {error}; look for a quotation mark that nothing ends"
        ) from error


def _parse_table(reader: Iterator[list[str]], where: str) -> RequestTrace | BinnedTrace:
    header = next(reader, None)
    if header is None or tuple(name.strip() for name in header) != COLUMNS:
        found = ",".join(header) if header else "missing"
        raise TraceError(f"{where}, line 1: the header is {found}; it must be {','.join(COLUMNS)}")
    rows = [_parse_row(fields, line, where) for line, fields in enumerate(reader, start=2) if fields]
    if not rows:
        raise TraceError(f"{where}: no rows; a trace needs at least one request or bin")
    is_of_requests = all(row.value == 1 for row in rows)
    return _request_trace(rows, where) if is_of_requests else _binned_trace(rows, where)


def _parse_row(fields: list[str], line: int, where: str) -> _Row:
    if len(fields) != len(COLUMNS):
        raise TraceError(f"{where}, line {line}: {len(fields)} fields instead of {len(COLUMNS)}")
    numbers = []
    for name, text in zip(COLUMNS, fields, strict=True):
        try:
            number = float(text) if text.strip() or name == "timestamp_s" else math.nan
        except ValueError as error:
            unit = "; give seconds, of unix time or from the trace's own start" if name == COLUMNS[0] else ""
            raise TraceError(f"{where}, line {line}: {name} is {text!r}, not a number{unit}") from error
        if number < 0 or math.isinf(number) or (name == "timestamp_s" and math.isnan(number)):
            raise TraceError(f"{where}, line {line}: {name} is {text}; it must be a finite number of at least 0")
        if name == COLUMNS[0] and number > LATEST_STAMP_SECONDS:
            raise TraceError(
                f"{where}, line {line}: {name} is {text}, which are no seconds; divide it by 1000 where it is in "
                "milliseconds"
            )
        numbers.append(number)
    return _Row(line, *numbers)


def _request_trace(rows: list[_Row], where: str) -> RequestTrace:
    assumptions = []
    for row in rows:
        for name, tokens in (("input_tokens", row.inputs), ("output_tokens", row.outputs)):
            if not 1 <= tokens <= MAXIMUM_TOKENS:
                raise TraceError(
                    f"{where}, line {row.line}: {name} is {tokens:g}; a request has between 1 and {MAXIMUM_TOKENS}"
                )
    stamps = np.array([row.stamp for row in rows])
    steps = np.diff(stamps)
    if np.any(steps < 0):
        assumptions.append(f"{where}: the rows are not in order of time; they were sorted")
    if len(steps) > 1 and steps[0] >= 10.0 and np.ptp(steps) < 1e-6:
        assumptions.append(
            f"{where}: every value is 1, so each row was taken for one request and not for a bin of {steps[0]:g} s"
        )
    order = np.argsort(stamps, kind="stable")
    assumptions += _silence(rows, stamps, order, where)
    inputs = np.array([row.inputs for row in rows]).astype(np.int64)
    outputs = np.array([row.outputs for row in rows]).astype(np.int64)
    duration = float(stamps.max()) + 1e-3
    return RequestTrace(stamps[order], inputs[order], outputs[order], duration, tuple(assumptions))


def _silence(rows: list[_Row], stamps: FloatArray, order: IntArray, where: str) -> Iterator[str]:
    """Says where the longest time without a request is, if it is far from the usual one."""
    steps = np.diff(stamps[order])
    if not len(steps):
        return
    place = int(steps.argmax())
    if steps[place] >= max(TELLING_SILENCE_SECONDS, TELLING_SILENCE_STEPS * float(np.median(steps))):
        yield (
            f"{where}, line {rows[order[place + 1]].line}: no request comes for {steps[place]:.0f} s before it; that "
            "time is replayed without load"
        )


def _binned_trace(rows: list[_Row], where: str) -> BinnedTrace:
    stamps = np.array([row.stamp for row in rows])
    steps = np.diff(stamps)
    for place in np.flatnonzero(steps <= 0):
        what = "repeats the stamp" if steps[place] == 0 else "lies before the stamp"
        raise TraceError(
            f"{where}, line {rows[place + 1].line}: {what} of the line before; sort the bins, one row each"
        )
    bin_seconds = float(steps.min()) if len(steps) else BIN_ALONE_SECONDS
    places = np.rint((stamps - stamps[0]) / bin_seconds).astype(np.int64)
    for place in np.flatnonzero(np.abs(stamps - stamps[0] - places * bin_seconds) > 1e-3 * bin_seconds):
        raise TraceError(
            f"{where}, line {rows[place].line}: stamp {rows[place].stamp:g} is not on the grid of {bin_seconds:g} s "
            "that the other bins lie on; resample the trace"
        )
    rates = np.full(int(places[-1]) + 1, math.nan)
    inputs, outputs = rates.copy(), rates.copy()
    for place, row in zip(places, rows, strict=True):
        rates[place] = row.value
        if row.value > 0:
            inputs[place], outputs[place] = row.inputs / row.value, row.outputs / row.value
            if not (inputs[place] > 0 and outputs[place] > 0):
                raise TraceError(f"{where}, line {row.line}: {row.value:g} requests/s without tokens")
    missing = int(np.isnan(rates).sum())
    assumptions = list(_taken_for_bins(rows, bin_seconds, where))
    if missing:
        assumptions.append(
            f"{where}: {missing} of {len(rates)} bins were not recorded; each has the rate of the bin before it"
        )
    return BinnedTrace(float(stamps[0]), bin_seconds, rates, inputs, outputs, tuple(assumptions))


def _taken_for_bins(rows: list[_Row], bin_seconds: float, where: str) -> Iterator[str]:
    """Says what rows that could as well be requests were taken for."""
    if len(rows) == 1:
        yield f"{where}: one bin alone; it was taken to last {bin_seconds:g} s"
        return
    other = next(row for row in rows if row.value != 1)
    if 2 * sum(row.value == 1 for row in rows) > len(rows):
        yield (
            f"{where}, line {other.line}: value is {other.value:g}, so all rows were taken for bins of "
            f"{bin_seconds:g} s, their values for requests a second; requests have the value 1 each"
        )
