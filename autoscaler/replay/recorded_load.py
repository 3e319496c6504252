"""What was the load of a pool in a time gone by? Read from its Prometheus: requests, prompt and generated tokens.

The engines' counters of the pool's pods are read, those of past rollouts too; the pods are told by their names. What
was processed is taken for what arrived, which it is unless the pool was saturated for longer than a bin. Simulated time
is the recorded time, so that schedules and forecasts see the real weekdays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import MetricKind
from autoscaler.prometheus.answer import PrometheusFailure
from autoscaler.prometheus.promql import quoted
from autoscaler.prometheus.range_answer import RangeQuestion
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeSource
from autoscaler.replay.policy_files import PoolIdentity
from autoscaler.replay.trace import BinnedTrace, FloatArray, TraceError
from autoscaler.replay.trace_load import TRACE_BEGINS_AT_SECONDS
from policies.signals import Signal

BIN_SECONDS = 60
# Moments of one query: half a day of minutes.
PIECE_MOMENTS = 720


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """From when to when, in unix seconds."""

    starts_at_seconds: float
    ends_at_seconds: float


def read_recorded_load(
    source: RangeSource, settings: QuerySettings, pool: PoolIdentity, time: RecordedTime
) -> BinnedTrace:
    """The load in bins of a minute. Raises `TraceError` where Prometheus does not answer or knows no such load."""
    bins = math.ceil((time.ends_at_seconds - time.starts_at_seconds) / BIN_SECONDS)
    if bins < 1:
        raise TraceError("--start is not before --end; both are wanted with --prometheus, as unix seconds or dates")
    requests, inputs, outputs = (
        _read(source, settings, pool, signal, time.starts_at_seconds, bins)
        for signal in (Signal.REQUESTS_FINISHED, Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)
    )
    where = f"Prometheus, {pool.namespace}/{pool.target_name}"
    known = np.isfinite(requests) & np.isfinite(inputs) & np.isfinite(outputs)
    if not np.any(requests[known] > 0):
        raise TraceError(
            f"{where}: no finished request from {time.starts_at_seconds:.0f} to {time.ends_at_seconds:.0f}; is the "
            "target's name right, and were its pods scraped then?"
        )
    requests, inputs, outputs = (np.where(known, values, np.nan) for values in (requests, inputs, outputs))
    at_least = np.where(requests > 0, requests, 1.0)
    missing = int((~known).sum())
    assumptions: tuple[str, ...] = (f"{where}: requests count by the minute in which they finished",)
    if missing:
        assumptions += (f"{where}: {missing} of {bins} minutes were not recorded; each has the rate before it",)
    return BinnedTrace(
        time.starts_at_seconds - TRACE_BEGINS_AT_SECONDS,
        float(BIN_SECONDS),
        requests,
        np.maximum(1.0, inputs / at_least),
        np.maximum(1.0, outputs / at_least),
        assumptions,
    )


def _read(
    source: RangeSource, settings: QuerySettings, pool: PoolIdentity, signal: Signal, starts_at: float, bins: int
) -> FloatArray:
    """A counter's rate in each bin, in pieces; NaN where nothing is recorded."""
    promql = _promql(settings, pool, signal)
    values = np.full(bins, np.nan)
    for first in range(0, bins, PIECE_MOMENTS):
        moments = min(PIECE_MOMENTS, bins - first)
        # The rate at a bin's end is that of the bin.
        ends_at = starts_at + (first + moments) * BIN_SECONDS
        answer = source.ask_range(RangeQuestion("the recorded load", promql, ends_at, BIN_SECONDS, moments))
        if isinstance(answer, PrometheusFailure):
            raise TraceError(f"--prometheus: {answer.message}")
        for series in answer.series:
            values[first : first + moments] = np.fmax(values[first : first + moments], series.values)
    return values


def _promql(settings: QuerySettings, pool: PoolIdentity, signal: Signal) -> str:
    """The sum over the pool's pods under each name that the engine has had for it; the first that is there counts."""
    source = ENGINES[pool.engine].signals.get(signal)
    if source is None or source.kind is not MetricKind.COUNTER:
        raise TraceError(f"--prometheus: engine {pool.engine} has no counter of {signal.value}")
    pods = quoted(pool.target_name.replace(".", r"\.") + "-.+")
    chosen = f"{settings.namespace_label}={quoted(pool.namespace)},{settings.pod_label}=~{pods}"
    window = f"{2 * BIN_SECONDS}s"
    return " or ".join(f"sum(rate({metric.name}{{{chosen}}}[{window}]))" for metric in source.metrics)
