"""Weeks of load, read from a real Prometheus that was filled by promtool."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from autoscaler.clock import SystemClock
from autoscaler.commands.forecast_source import PoolRequest, load_series
from autoscaler.foresight.foresight import HistoryRequest, WorkPast
from autoscaler.foresight.past_pieces import RECORDED_METRIC
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from forecasting.time_series import TimeSeries
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.recorded_past import Series, write_past

pytestmark = pytest.mark.prometheus

DAY, BIN, SCRAPE = 86_400, 300, 60
LLAMA, QWEN, MUTE = ("inference", "llama"), ("inference", "qwen"), ("inference", "mute")
FULL = ("inference", "full")
# A pool that can do 1000 tokens a second, in requests of 100: for two hours of the last day more came, then less.
CAPACITY, REQUEST_TOKENS, OVERLOAD_SECONDS = 1000.0, 100.0, 7200
LABELS = {"engine": "0", "model_name": "m"}


def daily(at: float) -> float:
    """Tokens per second of a pool with a day: 500 to 1500."""
    return 1000.0 + 500.0 * math.sin(2 * math.pi * at / DAY)


def counted(begin: float, end: float, rate: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """A counter that grows by `rate` from zero."""
    value, at = 0.0, begin
    while at < end:
        yield at, value
        value += rate(at) * SCRAPE
        at += SCRAPE


def pod(name: str, first: float, last: float, rate: Callable[[float], float]) -> list[tuple[str, Series]]:
    """What a pod counts that does so many tokens a second."""
    labels = {"namespace": "inference", "pod": name, **LABELS}
    return [
        ("vllm:prompt_tokens_total", (labels, counted(first, last, lambda at: 0.8 * rate(at)))),
        ("vllm:generation_tokens_total", (labels, counted(first, last, lambda at: 0.2 * rate(at)))),
    ]


def share(of_all: float) -> Callable[[float], float]:
    """A part of the daily load."""
    return lambda at: of_all * daily(at)


def overload(first: float, at: float) -> float:
    """Tokens a second that come to the full pool more than it can do: for two hours a half more, then a half less."""
    into = at - first - DAY / 2
    return 500.0 if 0 <= into < OVERLOAD_SECONDS else -500.0 if OVERLOAD_SECONDS <= into < 2 * OVERLOAD_SECONDS else 0.0


def queue(name: str, first: float, last: float) -> list[tuple[str, Series]]:
    """The requests that wait and those that have finished."""
    labels = {"namespace": "inference", "pod": name, **LABELS}
    waiting = counted(first, last, lambda at: overload(first, at) / REQUEST_TOKENS)
    finished = counted(first, last, lambda at: CAPACITY / REQUEST_TOKENS)
    return [
        ("vllm:num_requests_waiting", (labels, waiting)),
        ("vllm:request_success_total", ({**labels, "finished_reason": "stop"}, finished)),
    ]


@dataclass(frozen=True)
class Recorded:
    settings: PrometheusSettings
    history: PrometheusWorkHistory
    ends_at: float


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """Three days: llama's pods are of two rollouts, the controller told qwen's load on the last day."""
    ends_at = time.time() // BIN * BIN
    begin = ends_at - 3 * DAY
    rollout = begin + 1.5 * DAY

    rows = [
        *pod("llama-7d4b9c6f5-bbbbb", begin, rollout, share(0.5)),
        *pod("llama-7d4b9c6f5-ccccc", begin, rollout, share(0.5)),
        *pod("llama-5c8f7d6b4-ddddd", rollout, ends_at, share(1.0)),
        *pod("qwen-5c8f7d6b4-fffff", begin, ends_at, share(2.0)),
    ]
    told = {"namespace": "tokenscaler-system", "exported_namespace": "inference", "name": "qwen"}
    families: dict[str, list[Series]] = {}
    rows += [
        *pod("full-5c8f7d6b4-hhhhh", ends_at - DAY, ends_at, lambda at: CAPACITY),
        *queue("full-5c8f7d6b4-hhhhh", ends_at - DAY, ends_at),
    ]
    for name, series in rows:
        families.setdefault(name, []).append(series)
    # Told while the next bin is under way.
    moments = np.arange(ends_at - DAY, ends_at, SCRAPE)
    families[RECORDED_METRIC] = [(told, ((at, 5.0 * daily(at // BIN * BIN - BIN / 2)) for at in moments.tolist()))]
    directory = Path(tmp_path_factory.mktemp("prometheus"))
    write_past(directory, families)
    with PrometheusServer(directory=directory) as server:
        settings = PrometheusSettings(url=server.url, round_seconds=60, read_timeout_seconds=60)
        source = PrometheusSource(settings, SystemClock())
        yield Recorded(settings, PrometheusWorkHistory(source, QuerySettings(), SystemClock()), ends_at)
        source.close()


def request(key: PoolKey, pod: str, days: int = 3) -> HistoryRequest:
    return HistoryRequest(PoolQuery(key, "vllm", key[1], (LivePod(pod, pod, True, 0.0),), {}), days)


REQUESTS = (
    request(LLAMA, "llama-5c8f7d6b4-ddddd"),
    request(QWEN, "qwen-5c8f7d6b4-fffff", days=2),
    request(MUTE, "mute-5c8f7d6b4-ggggg"),
    request(FULL, "full-5c8f7d6b4-hhhhh", days=1),
)


@pytest.fixture(scope="module")
def past(recorded: Recorded) -> WorkPast:
    found = recorded.history.read(REQUESTS, recorded.ends_at, BIN)
    assert isinstance(found, WorkPast)
    assert found.warnings == ()
    return found


def errors(recorded: Recorded, loads: np.ndarray, factor: float) -> np.ndarray:
    """How far each load is from the truth at the middle of its bin, as a share of it."""
    middles = recorded.ends_at - BIN * np.arange(len(loads), 0, -1) + BIN / 2
    truth = np.array([factor * daily(at) for at in middles])
    return np.abs(loads / truth - 1)


def test_the_pods_of_an_earlier_rollout_count_to_the_same_pool(recorded: Recorded, past: WorkPast) -> None:
    off = errors(recorded, past.loads[:, 0], 1.0)
    assert len(off) >= 3 * DAY // BIN - 2
    assert np.isfinite(off).mean() > 0.99
    # In the bin of the rollout counters begin at zero and a part of a window is unknown.
    assert np.nanquantile(off, 0.99) < 0.02


def test_what_the_controller_told_itself_goes_before_what_was_processed(recorded: Recorded, past: WorkPast) -> None:
    told, processed = past.loads[-(DAY // BIN) + 2 : -2, 1], past.loads[-2 * DAY // BIN + 2 : -DAY // BIN - 2, 1]
    middles = recorded.ends_at - BIN * np.arange(len(told) + 2, 2, -1) + BIN / 2
    np.testing.assert_allclose(told, [5.0 * daily(at) for at in middles], rtol=0.01)
    begin = recorded.ends_at - 2 * DAY + 2 * BIN
    np.testing.assert_allclose(
        processed, [2.0 * daily(begin + BIN * place + BIN / 2) for place in range(len(processed))], rtol=0.02
    )


def test_no_more_days_than_were_asked_for(past: WorkPast) -> None:
    assert np.isnan(past.loads[: -2 * DAY // BIN, 1]).all()


def test_the_command_reads_the_same_load(recorded: Recorded) -> None:
    request = PoolRequest("inference", "llama", recorded.settings, QuerySettings(), days=2)
    series = load_series(request, recorded.ends_at + 10.0)
    assert isinstance(series, TimeSeries)
    assert series.end_seconds == recorded.ends_at
    assert np.nanquantile(errors(recorded, series.values, 1.0), 0.99) < 0.02


def test_a_pool_without_a_past_has_none(past: WorkPast) -> None:
    assert np.isnan(past.loads[:, 2]).all()


def test_what_waited_at_a_full_pool_had_arrived(recorded: Recorded, past: WorkPast) -> None:
    first = recorded.ends_at - DAY
    begins = first + BIN * np.arange(DAY // BIN)
    arrived = np.array([CAPACITY + overload(first, at) for at in begins])
    np.testing.assert_allclose(past.loads[-DAY // BIN + 2 :, 3], arrived[2:], rtol=0.25)
    off = np.abs(past.loads[-DAY // BIN + 2 :, 3] / arrived[2:] - 1)
    assert np.quantile(off, 0.9) < 0.03
