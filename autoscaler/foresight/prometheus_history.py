"""What was the load of every pool in the last weeks? Read from Prometheus once, in pieces, the newest first.

Two records of it may be there. The better one is ours: `tokenscaler_arriving_tokens_per_second`, one series a pool,
where Prometheus scrapes this controller (or a recording rule of that name). What it does not have is made of the
engines' counters, summed by workload, so that the pods of past rollouts count: what was processed, which is what
arrived unless the pool was saturated for longer than a bin.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.observers.pool_means import workloads_of_pools
from autoscaler.observers.pool_signals import has_replica_signals
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.query_plan import processed_tokens_promql
from autoscaler.prometheus.range_answer import RangeQuestion, RangeVector
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeSource
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL

logger = logging.getLogger(__name__)

RECORDED_METRIC = "tokenscaler_arriving_tokens_per_second"
"""The load of the bin that closed last, by `namespace` and `name` of the InferenceScaler."""

SECONDS_PER_DAY = 86_400
# Moments of one query. 72 of a thousand pools are 72 000 numbers: 2 MB of JSON, a second of one core of Prometheus.
PIECE_MOMENTS = 72
SMALLEST_PIECE_MOMENTS = 12
# Days older than these only shape the usual day: quarters of an hour do, and Prometheus has half the work.
FINE_DAYS = 4
COARSE_BINS = 3
# What is recorded to this share needs no second look.
COMPLETE = 0.95


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some bins of the past, the last of them ending at `ends_at_seconds`; `stride` of them share one value."""

    ends_at_seconds: float
    bins: int
    stride: int


class PrometheusWorkHistory:
    """A WorkHistory. One query is under way at a time, so that Prometheus has its other cores for everybody else."""

    def __init__(self, source: RangeSource, settings: QuerySettings) -> None:
        self._source = source
        self._settings = settings

    def read(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bin_seconds: int
    ) -> WorkPast | PastUnavailable:
        """Loads up to `ends_at_seconds`. Where Prometheus stops answering, what was read until then is the past."""
        bins = max(request.days for request in requests) * SECONDS_PER_DAY // bin_seconds
        loads = np.full((bins, len(requests)), np.nan)
        read_bins = 0
        failure = None
        for outcome in self._pieces(requests, ends_at_seconds, bins, bin_seconds):
            if isinstance(outcome, PrometheusFailure):
                failure = outcome
                break
            end = bins - read_bins
            loads[end - len(outcome) : end] = outcome
            read_bins += len(outcome)
        if failure is not None and read_bins == 0:
            return PastUnavailable(failure.message)
        for column, request in enumerate(requests):
            loads[: bins - request.days * SECONDS_PER_DAY // bin_seconds, column] = np.nan
        known = np.flatnonzero(np.isfinite(loads).any(axis=1))
        warnings = () if failure is None else (f"only {read_bins} of {bins} bins were read: {failure.message}",)
        logger.info("the past of the load was read", extra={"pools": len(requests), "bins": read_bins})
        return WorkPast(ends_at_seconds, loads[known[0] :] if len(known) else loads[:0], warnings)

    def _pieces(
        self, requests: Sequence[HistoryRequest], ends_at_seconds: float, bins: int, bin_seconds: int
    ) -> Iterator[NDArray[np.float64] | PrometheusFailure]:
        """The past in pieces (bins, pools), the newest first; a failure ends it."""
        reader = _PieceReader(self._source, self._settings, requests, bin_seconds)
        longest = PIECE_MOMENTS
        coarse = max(0, bins - FINE_DAYS * SECONDS_PER_DAY // bin_seconds)
        left = bins
        while left > 0:
            stride, until = (1, coarse) if left > coarse else (COARSE_BINS, 0)
            ends_at = ends_at_seconds - (bins - left) * bin_seconds
            piece = _Piece(ends_at, min(left - until, longest * stride), stride)
            loads = reader.read(piece)
            if isinstance(loads, PrometheusFailure):
                is_too_much = loads.kind in (FailureKind.TOO_LARGE, FailureKind.TIMEOUT) or loads.status == 422
                if not is_too_much or longest <= SMALLEST_PIECE_MOMENTS:
                    yield loads
                    return
                longest //= 2
                continue
            yield loads
            left -= piece.bins


class _PieceReader:
    def __init__(
        self,
        source: RangeSource,
        settings: QuerySettings,
        requests: Sequence[HistoryRequest],
        bin_seconds: int,
    ) -> None:
        self._source = source
        self._settings = settings
        self._bin_seconds = bin_seconds
        self._places = {request.query.key: place for place, request in enumerate(requests)}
        with_signals = [request.query for request in requests if has_replica_signals(request.query.engine)]
        self._workloads = {
            workload: self._places[key]
            for key, workloads in workloads_of_pools(with_signals).items()
            for workload in workloads
        }
        engines = {query.engine for query in with_signals}
        namespaces = {query.key[0] for query in with_signals}
        self._counters = {
            stride: processed_tokens_promql(engines, namespaces, settings, stride * bin_seconds) if with_signals else ""
            for stride in (1, COARSE_BINS)
        }
        self._is_recorded = True

    def read(self, piece: _Piece) -> NDArray[np.float64] | PrometheusFailure:
        """The loads of the piece (bins, pools)."""
        loads = np.full((piece.bins // piece.stride, len(self._places)), np.nan)
        if self._is_recorded:
            promql = _recorded_promql(self._bin_seconds, piece.stride)
            answer = self._ask("the recorded load", promql, piece, shift=1)
            if isinstance(answer, PrometheusFailure):
                return answer
            _fill(loads, answer, self._recorded_place)
            # Where nothing was recorded for six hours, nothing is expected to have been recorded before.
            self._is_recorded = bool(answer.series)
        counters = self._counters[piece.stride]
        if np.isfinite(loads).mean() >= COMPLETE or not counters:
            return np.repeat(loads, piece.stride, axis=0)
        answer = self._ask("the past load", counters, piece, shift=0)
        if isinstance(answer, PrometheusFailure):
            return answer
        processed = np.full_like(loads, np.nan)
        _fill(processed, answer, self._workload_place)
        return np.repeat(np.where(np.isfinite(loads), loads, processed), piece.stride, axis=0)

    def _ask(self, name: str, promql: str, piece: _Piece, shift: int) -> RangeVector | PrometheusFailure:
        """`shift` is how many bins after its end the load of a bin stands in the record."""
        ends_at_seconds = piece.ends_at_seconds + shift * self._bin_seconds
        step_seconds = self._bin_seconds * piece.stride
        question = RangeQuestion(name, promql, ends_at_seconds, step_seconds, piece.bins // piece.stride)
        return self._source.ask_range(question)

    def _recorded_place(self, labels: dict[str, str]) -> int | None:
        namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        return self._places.get((namespace, labels.get("name", "")))

    def _workload_place(self, labels: dict[str, str]) -> int | None:
        return self._workloads.get((labels.get(self._settings.namespace_label, ""), labels.get(WORKLOAD_LABEL, "")))


def _recorded_promql(bin_seconds: int, stride: int) -> str:
    """One row a pool, whichever replica of the controller has told it; a scrape may move our `namespace` label away.

    A sample at the very moment of a bin's end may or may not know of that bin yet: the last ones before it do not.
    """
    function = "last_over_time" if stride == 1 else "avg_over_time"
    newest = f"{function}({RECORDED_METRIC}[{stride * bin_seconds}s] offset {bin_seconds // 20}s)"
    return f"max by (namespace, exported_namespace, name) ({newest})"


def _fill(loads: NDArray[np.float64], answer: RangeVector, place_of: Callable[[dict[str, str]], int | None]) -> None:
    """Puts each series into the column of its pool; several of one pool (its workloads) are added up."""
    for series in answer.series:
        place = place_of(dict(series.labels))
        if place is None:
            continue
        values = np.where(np.isfinite(series.values) & (series.values >= 0), series.values, np.nan)
        column = loads[:, place]
        loads[:, place] = np.where(np.isfinite(column) & np.isfinite(values), column + values, np.fmax(column, values))
