"""How long is the past of a large fleet read at a start, what does Prometheus pay for it, and what afterwards?"""

from __future__ import annotations

import itertools
import math
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import numpy as np
from rich.console import Console

from autoscaler.clock import SystemClock
from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from forecasting.parameters import ForecastingParameters
from forecasting.selection import GatedFleet
from tests.benchmarks.figure import Figure
from tests.servers.prometheus_server import PrometheusServer

DAYS, DAY, BIN = 14, 86_400, 300
NAMESPACES = 20
SHARES = {"vllm:prompt_tokens_total": 0.8, "vllm:generation_tokens_total": 0.2}
QUIET_SECONDS = 20.0
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")
_LETTERS = "bcdfghjklm"


@dataclass(frozen=True, slots=True)
class PastFleet:
    """Pools, the pods of each, and the seconds between two samples of a pod."""

    pools: int
    pods_per_pool: int
    sample_seconds: int

    @property
    def samples(self) -> int:
        """What Prometheus holds of two weeks."""
        return self.pools * self.pods_per_pool * len(SHARES) * DAYS * DAY // self.sample_seconds


def measure(fleet: PastFleet, console: Console) -> list[Figure]:
    """The figures. Writing the two weeks takes minutes."""
    ends_at = time.time() // BIN * BIN
    with _folder() as directory:
        began = time.monotonic()
        _write_two_weeks(directory, fleet, ends_at)
        console.print(f"{fleet.samples / 1e6:.0f} million samples are written (after {time.monotonic() - began:.0f} s)")
        with PrometheusServer(directory=directory) as prometheus:
            return _measure(prometheus, fleet, ends_at)


def _measure(prometheus: PrometheusServer, fleet: PastFleet, ends_at: float) -> list[Figure]:
    settings = PrometheusSettings(url=prometheus.url).for_the_past()
    source = PrometheusSource(settings, SystemClock())
    history = PrometheusWorkHistory(source, QuerySettings(), SystemClock())
    asked, used, began = _queries(prometheus), _cpu_seconds(prometheus), time.monotonic()
    own = time.process_time()
    past = history.read(_requests(fleet), ends_at, BIN)
    read_seconds, own_seconds = time.monotonic() - began, time.process_time() - own
    used_seconds, queries = _cpu_seconds(prometheus) - used, _queries(prometheus) - asked
    source.close()
    if isinstance(past, PastUnavailable):
        return [Figure("the past", past.message, "read")]
    began = time.monotonic()
    GatedFleet(fleet.pools, ForecastingParameters()).replay(past.loads)
    replay_seconds = time.monotonic() - began
    asked, used = _queries(prometheus), _cpu_seconds(prometheus)
    time.sleep(QUIET_SECONDS)
    idle = (_cpu_seconds(prometheus) - used) / QUIET_SECONDS
    known = np.isfinite(past.loads).sum() / (fleet.pools * DAYS * DAY // BIN)
    return [
        Figure(f"reading {DAYS} days", f"{read_seconds:.0f} s", "<= 60 s"),
        Figure("  Prometheus' CPU for it", f"{used_seconds:.0f} s"),
        Figure("  our own CPU for it", f"{own_seconds:.0f} s"),
        Figure("  range queries", f"{queries}"),
        Figure("  its peak of memory", f"{_peak_mebibytes(prometheus):.0f} MiB"),
        Figure("  bins that are known", f"{known:.1%}", "100 %"),
        Figure("  error of a load, median", f"{_median_error(past.loads, ends_at):.1%}"),
        Figure("replaying it", f"{replay_seconds:.0f} s"),
        Figure("Prometheus' CPU afterwards", f"{idle:.1%} of a core, {_queries(prometheus) - asked} range queries"),
    ]


def load_of(pool: int, at: np.ndarray) -> np.ndarray:
    """Tokens per second of a pool: a day of its own."""
    swing = 0.2 + 0.6 * (pool % 7) / 7
    load: np.ndarray = (1 + pool % 10) * 1000.0 * (1 + swing * np.sin(2 * math.pi * (at / DAY + pool % 24 / 24)))
    return load


def _median_error(loads: np.ndarray, ends_at: float) -> float:
    middles = ends_at - BIN * np.arange(len(loads), 0, -1) + BIN / 2
    truth = np.stack([load_of(pool, middles) for pool in range(loads.shape[1])], axis=1)
    return float(np.nanmedian(np.abs(loads / truth - 1)))


def _place(pool: int) -> tuple[str, str]:
    return f"fleet-{pool % NAMESPACES}", f"pool-{pool}"


def _pod(pool: int, number: int) -> str:
    tail = "".join(_LETTERS[int(digit)] for digit in f"{number:05d}")
    return f"{_place(pool)[1]}-7d4b9c6f5-{tail}"


def _requests(fleet: PastFleet) -> list[HistoryRequest]:
    requests = []
    for pool in range(fleet.pools):
        namespace, name = _place(pool)
        pods = tuple(
            LivePod(_pod(pool, number), _pod(pool, number), True, 0.0) for number in range(fleet.pods_per_pool)
        )
        requests.append(HistoryRequest(PoolQuery((namespace, name), "vllm", name, pods, {}), DAYS))
    return requests


def _write_two_weeks(directory: Path, fleet: PastFleet, ends_at: float) -> None:
    """A text a day, so that promtool reads each sample once."""
    begin = ends_at - DAYS * DAY
    edges = [begin, *np.arange(math.ceil(begin / DAY) * DAY, ends_at, DAY).tolist(), ends_at]
    text = directory / "day.txt"
    for first, last in itertools.pairwise(edges):
        at = np.arange(first + 7, last, fleet.sample_seconds)
        if not len(at):
            continue
        moments = [f"{moment:.0f}\n" for moment in at.tolist()]
        with text.open("w", encoding="utf-8") as file:
            for name, share in SHARES.items():
                file.write(f"# TYPE {name.removesuffix('_total')} counter\n")
                for pool in range(fleet.pools):
                    mean = share * load_of(pool, at - fleet.sample_seconds / 2) / fleet.pods_per_pool
                    # The counter begins anew each day: a rate does not see it within a day.
                    counted = [f"{value:.0f} " for value in np.cumsum(mean * fleet.sample_seconds).tolist()]
                    rows = [value + moment for value, moment in zip(counted, moments, strict=True)]
                    for number in range(fleet.pods_per_pool):
                        labels = f'namespace="{_place(pool)[0]}",pod="{_pod(pool, number)}",engine="0",model_name="m"'
                        head = f"{name}{{{labels}}} "
                        file.write(head + head.join(rows))
            file.write("# EOF\n")
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(text), str(directory / "data")]
        subprocess.run([*command, "--max-block-duration=24h"], check=True, capture_output=True, timeout=1800)
        text.unlink()


@contextmanager
def _folder() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="tokenscaler-past-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _cpu_seconds(prometheus: PrometheusServer) -> float:
    fields = Path(f"/proc/{prometheus.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _CLOCK_TICKS


def _peak_mebibytes(prometheus: PrometheusServer) -> float:
    status = Path(f"/proc/{prometheus.pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")) / 1024


def _queries(prometheus: PrometheusServer) -> int:
    text = httpx2.get(f"{prometheus.url}/metrics", timeout=10).text
    rows = [
        row for row in text.splitlines() if row.startswith("prometheus_http_requests_total") and "query_range" in row
    ]
    return int(sum(float(row.rsplit(" ", 1)[1]) for row in rows))
