"""What was the load before a replayed part of a trace begins? The earlier part of the same trace, and nothing later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.trace import INPUT_SPREAD, OUTPUT_SPREAD, BinnedTrace, FloatArray, RequestTrace
from autoscaler.replay.trace_load import TRACE_BEGINS_AT_SECONDS, TraceLoad, scaled_trace

SECONDS_PER_DAY = 86_400


class TraceWorkHistory:
    """A WorkHistory of a single pool whose load is a part of a trace; the same seed gives the same past."""

    def __init__(self, load: TraceLoad, seed: int) -> None:
        self._load = load
        self._seed = seed

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        """Tokens per second of the trace up to `ends_at_seconds`; every pool of the request has this past."""
        begin = max(
            TRACE_BEGINS_AT_SECONDS + self._load.trace_start_seconds,
            ends_at_seconds - max(request.days for request in requests) * SECONDS_PER_DAY,
        )
        bins = max(0, round((ends_at_seconds - begin) // bin_seconds))
        edges = ends_at_seconds - TRACE_BEGINS_AT_SECONDS - bin_seconds * np.arange(bins, -1.0, -1.0)
        generator = np.random.default_rng([self._seed, 1])
        trace = self._load.trace
        match trace:
            case BinnedTrace():
                loads = drawn_loads(trace, self._load.scale, edges, generator)
            case AgentSessions():
                sampled = self._load.sampled_one_in
                now = ends_at_seconds - TRACE_BEGINS_AT_SECONDS
                loads = _counted_loads(trace.draw(generator, self._load.scale / sampled, 0.0, now), edges) * sampled
            case RequestTrace():
                loads = _counted_loads(scaled_trace(trace, self._load.scale, self._seed), edges)
        return WorkPast(ends_at_seconds, np.repeat(loads[:, None], len(requests), axis=1))


def drawn_loads(trace: BinnedTrace, scale: float, edges: FloatArray, generator: np.random.Generator) -> FloatArray:
    """As many requests as a Poisson process brings in each bin, of lengths that scatter as drawn requests do."""
    seconds = np.diff(edges)
    places = ((edges[:-1] + seconds / 2 - trace.start_seconds) // trace.bin_seconds).astype(np.int64)
    places = np.clip(places, 0, len(trace.requests_per_second) - 1)
    rate = trace.requests_per_second[places]
    is_known = np.isfinite(rate)
    inputs, outputs = trace.input_tokens_per_request[places], trace.output_tokens_per_request[places]
    count = generator.poisson(np.where(is_known, rate, 0.0) * scale * seconds)
    deviation = np.hypot(inputs * np.sqrt(np.expm1(INPUT_SPREAD**2)), outputs * np.sqrt(np.expm1(OUTPUT_SPREAD**2)))
    tokens = count * (inputs + outputs) + np.sqrt(count) * deviation * generator.standard_normal(len(count))
    loads = np.where(count > 0, np.maximum(tokens, 0.0), 0.0) / seconds
    return np.where(is_known, loads, np.nan)


def _counted_loads(trace: RequestTrace, edges: FloatArray) -> FloatArray:
    tokens = (trace.input_tokens + trace.output_tokens).astype(np.float64)
    total, _ = np.histogram(trace.arrival_seconds, edges, weights=tokens)
    return total / np.diff(edges)
