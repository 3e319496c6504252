"""How much arrives when? A load as rates by the minute, for a run that does not follow single requests."""

from __future__ import annotations

import math

import numpy as np

from autoscaler.replay.trace import BinnedTrace, FloatArray
from autoscaler.replay.trace_history import drawn_loads
from autoscaler.replay.trace_load import LoadBins, TraceLoad

# What a controller sees are rates over a minute, with the noise that a minute has.
BIN_SECONDS = 60.0


def fluid_load(load: TraceLoad, seed: int) -> LoadBins:
    """Requests a second and their mean lengths by the minute. A load of requests is counted as it is drawn.

    For a trace of bins only sums are drawn, with the noise that single requests would have: so many more or fewer of
    them come, of the bin's mean lengths. A bin that was not recorded is like the bin before it.
    """
    if not isinstance(load.trace, BinnedTrace):
        return load.bins(load.draw(seed), BIN_SECONDS)
    trace = _all_known(load.trace)
    if trace.bin_seconds < BIN_SECONDS:
        trace = _by_the_minute(trace)
    bins = max(1, math.ceil((load.end_seconds - load.start_seconds) / BIN_SECONDS - 1e-9))
    edges = load.start_seconds + BIN_SECONDS * np.arange(bins + 1.0)
    places = ((edges[:-1] + BIN_SECONDS / 2 - trace.start_seconds) // trace.bin_seconds).astype(np.int64)
    places = np.clip(places, 0, len(trace.requests_per_second) - 1)
    inputs, outputs = trace.input_tokens_per_request[places], trace.output_tokens_per_request[places]
    tokens = drawn_loads(trace, load.scale, edges, np.random.default_rng([seed, 0]))
    return LoadBins(BIN_SECONDS, tokens / np.maximum(inputs + outputs, 1.0), inputs, outputs)


def _all_known(trace: BinnedTrace) -> BinnedTrace:
    return BinnedTrace(
        trace.start_seconds,
        trace.bin_seconds,
        _with_the_last_known(trace.requests_per_second),
        _with_the_last_known(trace.input_tokens_per_request),
        _with_the_last_known(trace.output_tokens_per_request),
    )


def _with_the_last_known(values: FloatArray) -> FloatArray:
    known = np.where(np.isfinite(values), np.arange(len(values)), -1)
    last = np.maximum.accumulate(known)
    return np.where(last >= 0, values[np.maximum(last, 0)], 0.0)


def _by_the_minute(trace: BinnedTrace) -> BinnedTrace:
    """The same load in coarser bins."""
    bins = max(1, math.ceil((trace.end_seconds - trace.start_seconds) / BIN_SECONDS - 1e-9))
    edges = trace.start_seconds + BIN_SECONDS * np.arange(bins + 1.0)
    rates = trace.requests_per_second
    requests = _between(trace, rates, edges)
    at_least_some = np.where(requests > 0, requests, 1.0)
    return BinnedTrace(
        trace.start_seconds,
        BIN_SECONDS,
        requests / BIN_SECONDS,
        _between(trace, rates * trace.input_tokens_per_request, edges) / at_least_some,
        _between(trace, rates * trace.output_tokens_per_request, edges) / at_least_some,
    )


def _between(trace: BinnedTrace, per_second: FloatArray, edges: FloatArray) -> FloatArray:
    """What a rate comes to between every two edges."""
    own = trace.start_seconds + trace.bin_seconds * np.arange(len(per_second) + 1.0)
    so_far = np.concatenate(([0.0], np.cumsum(per_second * trace.bin_seconds)))
    return np.maximum(np.diff(np.interp(edges, own, so_far)), 0.0)
