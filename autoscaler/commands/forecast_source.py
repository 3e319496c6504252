"""Whose load is to be forecast by hand? A recorded series in a file, or a pool whose load Prometheus has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autoscaler.clock import SystemClock
from autoscaler.engines import ENGINES
from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.observers.metrics import PoolQuery
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource, RangeSource
from forecasting.series_text import SeriesUnreadable, read_series
from forecasting.time_series import TimeSeries

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600}
POOL_BIN_SECONDS = 300


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """Which series to read: a CSV file, a column or several joined by "+", and a bin such as 5m (None: by the rows)."""

    path: Path
    column: str = "value"
    bin_width: str | None = None

    @property
    def title(self) -> str:
        """What it is called in a heading."""
        return f"{self.path.name} {self.column}"


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """Which pool's load to read: that of an InferenceScaler, or of the workload `target` where nothing told it.

    `engine` is a key of ENGINES; what a pool of it processed is found by the pods' names.
    """

    namespace: str
    name: str
    prometheus: PrometheusSettings
    queries: QuerySettings
    target: str | None = None
    engine: str = "vllm"
    days: int = 14

    @property
    def title(self) -> str:
        """What it is called in a heading."""
        return f"{self.namespace}/{self.name} tokens per second"


def load_series(request: SeriesRequest | PoolRequest, now_seconds: float) -> TimeSeries | SeriesUnreadable:
    """The series, or a sentence that says what is wrong. Of a pool it ends with the last whole five minutes."""
    if isinstance(request, SeriesRequest):
        return _from_file(request)
    if request.engine not in ENGINES:
        return SeriesUnreadable(f"--engine {request.engine}: one of {', '.join(ENGINES)} is wanted")
    source = PrometheusSource(request.prometheus.for_the_past(), SystemClock())
    try:
        return from_prometheus(request, source, now_seconds)
    finally:
        source.close()


def from_prometheus(request: PoolRequest, source: RangeSource, now_seconds: float) -> TimeSeries | SeriesUnreadable:
    """The pool's load from whoever answers range queries."""
    key = (request.namespace, request.name)
    query = PoolQuery(key, request.engine, request.target or request.name, (), {})
    ends_at_seconds = float(now_seconds // POOL_BIN_SECONDS * POOL_BIN_SECONDS)
    history = PrometheusWorkHistory(source, request.queries, SystemClock())
    past = history.read([HistoryRequest(query, request.days)], ends_at_seconds, POOL_BIN_SECONDS)
    if isinstance(past, PastUnavailable):
        return SeriesUnreadable(past.message)
    values = past.loads[:, 0]
    if len(values) == 0:
        return SeriesUnreadable(
            f"Prometheus has no load of {request.namespace}/{request.name}: neither has a controller told it, nor are "
            f"there {request.engine} counters of pods of a workload {request.target or request.name}; --target names it"
        )
    return TimeSeries(ends_at_seconds - POOL_BIN_SECONDS * len(values), POOL_BIN_SECONDS, values)


def _from_file(request: SeriesRequest) -> TimeSeries | SeriesUnreadable:
    seconds = None
    if request.bin_width is not None:
        parsed = re.fullmatch(r"(\d+)([smh])", request.bin_width.strip())
        if parsed is None or int(parsed[1]) == 0:
            return SeriesUnreadable(f"--bin {request.bin_width}: a width such as 60s, 5m or 1h is wanted")
        seconds = int(parsed[1]) * UNIT_SECONDS[parsed[2]]
    try:
        text = request.path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        hint = "; for the load of a pool give --prometheus-url" if len(request.path.parts) == 2 else ""
        return SeriesUnreadable(f"cannot read {request.path}: {error.strerror}{hint}")
    except OSError as error:
        return SeriesUnreadable(f"cannot read {request.path}: {error.strerror}")
    except UnicodeDecodeError:
        return SeriesUnreadable(f"cannot read {request.path}: not UTF-8 text")
    series = read_series(text, request.column, seconds)
    return SeriesUnreadable(f"{request.path}: {series.message}") if isinstance(series, SeriesUnreadable) else series
