"""What was the load of all pools in one piece of the past? From our own record, else from the engines' counters.

The record is `tokenscaler_arriving_tokens_per_second`, one series a pool, where Prometheus scrapes this controller (or
a recording rule of that name). What it does not have is made of counters, summed by workload, so that the pods of past
rollouts count: arriving = processed + change of waiting x tokens of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autoscaler.foresight.foresight import HistoryRequest
from autoscaler.observers.pool_means import workloads_of_pools
from autoscaler.observers.replica_signals import has_replica_signals
from autoscaler.prometheus.answer import PrometheusFailure
from autoscaler.prometheus.query_plan import PastPlan
from autoscaler.prometheus.range_answer import RangeQuestion, RangeVector
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeSource
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL

RECORDED_METRIC = "tokenscaler_arriving_tokens_per_second"
"""The load of the bin that closed last, by `namespace` and `name` of the InferenceScaler."""

SECONDS_PER_DAY = 86_400
# What is known to this share needs no second look.
COMPLETE = 0.95
# A pod that has just been replaced is seen twice for a moment.
SEEN_ONCE = 0.98
# Fewer requests say little of how many tokens one has.
FEWEST_REQUESTS = 20.0

Loads = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bins of the past, the last of them ending at `ends_at_seconds`; `stride` of them share one value."""

    ends_at_seconds: float
    bins: int
    stride: int

    @property
    def moments(self) -> int:
        """How many values a series of it has."""
        return self.bins // self.stride


class PieceReader:
    """Reads pieces of the past of the same pools. Several threads may once `prepare` and a first `read` are over."""

    def __init__(
        self, source: RangeSource, settings: QuerySettings, requests: Sequence[HistoryRequest], bin_seconds: int
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
        engines, namespaces = {query.engine for query in with_signals}, {query.key[0] for query in with_signals}
        self._plan = PastPlan(engines, namespaces, settings)
        self._is_recorded = True
        # Windows of rates, in bins: two are needed where samples are as far apart as bins are wide. Chosen at a look.
        self._widths: tuple[int, ...] = (1, 2)
        self._is_width_chosen = False

    def prepare(self, ends_at_seconds: float, days: int) -> PrometheusFailure | None:
        """Looks once a day which of the names there are; a failure means that Prometheus does not answer."""

        def ask(name: str, promql: str) -> RangeVector | PrometheusFailure:
            return self._source.ask_range(RangeQuestion(name, promql, ends_at_seconds, SECONDS_PER_DAY, days))

        recorded = ask("the recorded days", f"count (last_over_time({RECORDED_METRIC}[{SECONDS_PER_DAY}s]))")
        if isinstance(recorded, PrometheusFailure):
            return recorded
        self._is_recorded = bool(recorded.series)
        promql = self._plan.names()
        names = ask("the names of counters", promql) if promql else RangeVector([])
        if isinstance(names, PrometheusFailure):
            return names
        present = {series.labels.get("__name__", "") for series in names.series}
        self._plan = self._plan.only(present)
        if present:
            parts = ask("parts among rows", self._plan.parts_among_rows())
            self._plan = self._plan.only(present, is_seen_once=_is_seen_once(parts))
        return None

    def read(self, piece: Piece) -> Loads | PrometheusFailure:
        """The loads of the piece (bins, pools), NaN where nothing is known."""
        loads = np.full((piece.moments, len(self._places)), np.nan)
        if self._is_recorded:
            answer = self._ask("the recorded load", _recorded_promql(self._bin_seconds, piece.stride), piece, shift=1)
            if isinstance(answer, PrometheusFailure):
                return answer
            _fill(loads, answer, self._recorded_place)
        if np.isfinite(loads).mean() < COMPLETE:
            processed = self._processed(piece)
            if isinstance(processed, PrometheusFailure):
                return processed
            if piece.stride == 1:
                processed = np.maximum(processed + self._left_waiting(piece, processed), 0.0)
            loads = np.where(np.isfinite(loads), loads, processed)
        return _bins_of(loads, piece.stride)

    def _processed(self, piece: Piece) -> Loads | PrometheusFailure:
        """Tokens that were processed per second, by bins."""
        loads = np.full((piece.moments, len(self._places)), np.nan)
        shares: list[float] = []
        for width in self._widths if piece.stride == 1 else (1,):
            promql = self._plan.processed_tokens(width * piece.stride * self._bin_seconds)
            if not promql or (shares and shares[0] >= COMPLETE):
                break
            answer = self._ask("the past load", promql, piece)
            if isinstance(answer, PrometheusFailure):
                return answer
            processed = np.full_like(loads, np.nan)
            _fill(processed, answer, self._workload_place)
            loads = np.where(np.isfinite(loads), loads, processed)
            shares.append(float(np.isfinite(loads).mean()))
        if piece.stride == 1 and shares and not self._is_width_chosen:
            self._is_width_chosen, self._widths = True, _useful_widths(shares)
        return loads

    def _left_waiting(self, piece: Piece, processed: Loads) -> Loads | float:
        """Tokens per second that came and were left waiting; less than nothing while a queue is worked off.

        Nothing where it cannot be told: what was processed is still true.
        """
        waiting = np.zeros((piece.moments + 1, len(self._places)))
        promql = self._plan.waiting_requests()
        answer = self._ask("the past queues", promql, piece, more=1) if promql else None
        if not isinstance(answer, RangeVector) or not answer.series:
            return 0.0
        _fill(waiting, answer, self._workload_place)
        waiting[1:][~np.isfinite(processed)] = np.nan  # not seen, so no queue that is gone
        growth = np.nan_to_num(np.diff(waiting, axis=0))
        seconds = piece.bins * self._bin_seconds
        promql = self._plan.finished_requests(seconds)
        answer = self._ask("the past requests", promql, Piece(piece.ends_at_seconds, 1, 1)) if promql else None
        if not isinstance(answer, RangeVector):
            return 0.0
        finished = np.full((1, len(self._places)), np.nan)
        _fill(finished, answer, self._workload_place)
        requests = np.nan_to_num(finished[0]) * seconds
        tokens = np.nansum(processed, axis=0) * self._bin_seconds
        size = np.where(requests >= FEWEST_REQUESTS, tokens / np.maximum(requests, FEWEST_REQUESTS), 0.0)
        left: Loads = growth * size / self._bin_seconds
        return left

    def _ask(
        self, name: str, promql: str, piece: Piece, shift: int = 0, more: int = 0
    ) -> RangeVector | PrometheusFailure:
        """`shift` is how many bins after its end the load of a bin stands in the record; `more` moments before it."""
        ends_at_seconds = piece.ends_at_seconds + shift * self._bin_seconds
        step_seconds = self._bin_seconds * piece.stride
        return self._source.ask_range(RangeQuestion(name, promql, ends_at_seconds, step_seconds, piece.moments + more))

    def _recorded_place(self, labels: dict[str, str]) -> int | None:
        namespace = labels.get("exported_namespace") or labels.get("namespace", "")
        return self._places.get((namespace, labels.get("name", "")))

    def _workload_place(self, labels: dict[str, str]) -> int | None:
        return self._workloads.get((labels.get(self._settings.namespace_label, ""), labels.get(WORKLOAD_LABEL, "")))


def _bins_of(values: Loads, stride: int) -> Loads:
    """Bins of means over `stride` of them, on lines between the middles: steps would be changes of the usual day."""
    bins = np.arange(len(values) * stride)
    place = (bins + 0.5) / stride - 0.5
    before = np.clip(np.floor(place).astype(np.int64), 0, len(values) - 1)
    after = np.minimum(before + 1, len(values) - 1)
    share = np.clip(place - before, 0.0, 1.0)[:, None]
    between: Loads = values[before] * (1 - share) + values[after] * share
    return np.where(np.isfinite(between), between, values[bins // stride])


def _is_seen_once(parts_among_rows: RangeVector | PrometheusFailure) -> bool:
    """Whether no pod is scraped twice on any of the days; not, where that cannot be told."""
    if isinstance(parts_among_rows, PrometheusFailure) or not parts_among_rows.series:
        return False
    shares = parts_among_rows.series[0].values
    return bool(np.nanmin(shares, initial=1.0) >= SEEN_ONCE)


def _useful_widths(shares: Sequence[float]) -> tuple[int, ...]:
    """The windows to go on with, by the shares that were known after each: the narrow one where the other adds little.

    Both where the pools differ, which costs twice as much.
    """
    if len(shares) == 1 or shares[1] - shares[0] < 1 - COMPLETE:
        return (1,)
    return (2,) if shares[0] < 1 - COMPLETE else (1, 2)


def _recorded_promql(bin_seconds: int, stride: int) -> str:
    """One row a pool, whichever replica of the controller has told it; a scrape may move our `namespace` label away.

    A sample at the very moment of a bin's end may or may not know of that bin yet: the last ones before it do not.
    """
    function = "last_over_time" if stride == 1 else "avg_over_time"
    newest = f"{function}({RECORDED_METRIC}[{stride * bin_seconds}s] offset {bin_seconds // 20}s)"
    return f"max by (namespace, exported_namespace, name) ({newest})"


def _fill(loads: Loads, answer: RangeVector, place_of: Callable[[dict[str, str]], int | None]) -> None:
    """Puts each series into the column of its pool; several of one pool (its workloads) are added up."""
    for series in answer.series:
        place = place_of(dict(series.labels))
        if place is None:
            continue
        values = np.where(np.isfinite(series.values) & (series.values >= 0), series.values, np.nan)
        column = loads[:, place]
        loads[:, place] = np.where(np.isfinite(column) & np.isfinite(values), column + values, np.fmax(column, values))
