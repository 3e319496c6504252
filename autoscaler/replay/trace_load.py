"""Which load does a run get from a trace? A part of it, for so many times as many users, by a seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np

from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.arrivals import arrivals
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.trace import BinnedTrace, FloatArray, RequestTrace, TraceError, draw_requests, scale_requests

Trace: TypeAlias = RequestTrace | BinnedTrace | AgentSessions

# Second 0 of every trace: a Monday at midnight UTC.
TRACE_BEGINS_AT_SECONDS = datetime(2026, 1, 5, tzinfo=UTC).timestamp()
# A trace whose first request comes later than this begins with that request.
FIRST_REQUEST_SECONDS = 300.0
# A load with more requests is sampled, down to fewer.
MOST_EXACT_REQUESTS = 6_000_000
SAMPLED_REQUESTS = 3_000_000


@dataclass(frozen=True, slots=True)
class LoadBins:
    """A load in bins of equal length from its start: requests a second, and mean tokens of a request (0: none came)."""

    bin_seconds: float
    requests_per_second: FloatArray
    input_tokens: FloatArray
    output_tokens: FloatArray


@dataclass(frozen=True, slots=True)
class TraceLoad:
    """From second `start_seconds` of a trace up to `end_seconds`, `scale` times over."""

    trace: Trace
    scale: float
    start_seconds: float
    end_seconds: float
    shared_prefix_tokens: int = 0
    sampled_one_in: int = 1  # of the requests; the fleet is sampled alike

    @property
    def starts_at_seconds(self) -> float:
        """The start in simulated unix time."""
        return TRACE_BEGINS_AT_SECONDS + self.start_seconds

    @property
    def ends_at_seconds(self) -> float:
        """The end in simulated unix time."""
        return TRACE_BEGINS_AT_SECONDS + self.end_seconds

    @property
    def trace_start_seconds(self) -> float:
        """Where the whole trace begins."""
        return _extent(self.trace)[0]

    @property
    def hours(self) -> float:
        """How long it is."""
        return (self.end_seconds - self.start_seconds) / 3600.0

    def draw(self, seed: int) -> RequestTrace:
        """The single requests by one seed; of a trace of requests that is not scaled they are its own."""
        generator, scale = np.random.default_rng([seed, 0]), self.scale / self.sampled_one_in
        match self.trace:
            case BinnedTrace():
                return draw_requests(self.trace, generator, scale, self.start_seconds, self.end_seconds)
            case AgentSessions():
                return self.trace.draw(generator, scale, self.start_seconds, self.end_seconds)
            case RequestTrace():
                return scaled_trace(self.trace, scale, seed).part(self.start_seconds, self.end_seconds)

    def requests(self, drawn: RequestTrace) -> Iterator[Request]:
        """The drawn requests on simulated time, for one run."""
        begins = min(0.0, self.start_seconds)  # what Prometheus has recorded may be from before a trace's zero
        return arrivals(drawn, TRACE_BEGINS_AT_SECONDS + begins, begins, self.shared_prefix_tokens)

    def bins(self, drawn: RequestTrace, bin_seconds: float) -> LoadBins:
        """The drawn requests counted, those that were not sampled included."""
        bins = max(1, math.ceil((self.end_seconds - self.start_seconds) / bin_seconds))
        places = np.clip(((drawn.arrival_seconds - self.start_seconds) / bin_seconds).astype(np.int64), 0, bins - 1)
        count = np.bincount(places, minlength=bins).astype(np.float64)
        at_least_one = np.maximum(count, 1.0)
        return LoadBins(
            bin_seconds,
            count / bin_seconds * self.sampled_one_in,
            np.bincount(places, drawn.input_tokens, bins) / at_least_one,
            np.bincount(places, drawn.output_tokens, bins) / at_least_one,
        )


def scaled_trace(trace: RequestTrace, scale: float, seed: int) -> RequestTrace:
    """All of a trace's requests for so many times as many users, by one seed."""
    return scale_requests(trace, np.random.default_rng([seed, 0]), scale)


def trace_load(
    trace: Trace,
    scale: float,
    start_seconds: float | None,
    end_seconds: float | None,
    shared_prefix_tokens: int,
    sampled_one_in: int | None = None,
) -> TraceLoad:
    """The asked part of a trace; None is its own start or end, or as much sampling as its size asks for.

    Raises `TraceError` where nothing of it lies there.
    """
    if scale <= 0:
        raise TraceError(f"--trace-scale {scale:g}: a trace cannot be scaled by that; give a number above 0")
    begins, ends = _extent(trace)
    start = begins if start_seconds is None else start_seconds
    end = ends if end_seconds is None else end_seconds
    if start_seconds is not None and end_seconds is not None and start >= end:
        raise TraceError(f"--start {start:g} is not before --end {end:g}")
    if start >= ends or end <= begins:
        raise TraceError(f"the trace lasts from {begins:g} to {ends:g} s; nothing of it lies from {start:g} to {end:g}")
    end = min(end, ends)
    if isinstance(trace, AgentSessions):
        shared_prefix_tokens = max(shared_prefix_tokens, trace.system_prompt_tokens)
    sampled = sampled_one_in or _enough_sampling(_expected_requests(trace, scale, start, end))
    return TraceLoad(trace, scale, start, end, shared_prefix_tokens, sampled)


def _enough_sampling(requests: float) -> int:
    return 1 if requests <= MOST_EXACT_REQUESTS else math.ceil(requests / SAMPLED_REQUESTS)


def _expected_requests(trace: Trace, scale: float, start: float, end: float) -> float:
    match trace:
        case BinnedTrace():
            begins = trace.start_seconds + trace.bin_seconds * np.arange(len(trace.requests_per_second))
            asked = (begins >= start) & (begins < end)
            return float(np.nansum(trace.requests_per_second[asked])) * trace.bin_seconds * scale
        case AgentSessions():
            return trace.mean_requests_per_second * (end - start) * scale
        case RequestTrace():
            return len(trace.part(start, end)) * scale


def _extent(trace: Trace) -> tuple[float, float]:
    match trace:
        case BinnedTrace():
            return trace.start_seconds, trace.end_seconds
        case AgentSessions():
            return 0.0, trace.duration_seconds
        case RequestTrace():
            first = float(trace.arrival_seconds[0])
            # Stamps may be unix time, or count from a midnight long before the first request.
            return (0.0 if first < FIRST_REQUEST_SECONDS else math.floor(first)), trace.duration_seconds
