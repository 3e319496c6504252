"""What a policy would have done last week, by a pool's own past in a real Prometheus that was filled by promtool."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from autoscaler.clock import SystemClock
from autoscaler.commands.replay import replay_policies
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.replay.policy_files import PoolIdentity
from autoscaler.replay.recorded_load import RecordedTime, read_recorded_load
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.trace import BinnedTrace
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.recorded_past import Series, write_past

pytestmark = pytest.mark.prometheus

HOUR, DAY, SCRAPE = 3600, 86_400, 30
INPUT_TOKENS, OUTPUT_TOKENS = 1000.0, 200.0
POLICY = """\
apiVersion: tokenscaler.io/v1alpha1
kind: InferenceScaler
metadata: {name: chat, namespace: inference}
spec:
  mode: Scale
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  engine: vllm
  minReplicas: 1
  maxReplicas: 60
"""
POOL = PoolIdentity("inference", "chat", "chat", "vllm")


def daily(at: float) -> float:
    """Requests per second of a pool with a day: 10 to 50."""
    return 30.0 + 20.0 * math.sin(2 * math.pi * at / DAY)


def counted(first: float, last: float, per_second: Callable[[float], float]) -> Iterator[tuple[float, float]]:
    """A counter from zero."""
    value = 0.0
    for at in np.arange(first, last, SCRAPE).tolist():
        yield at, value
        value += per_second(at) * SCRAPE


def pod(name: str, first: float, last: float, share: float) -> list[tuple[str, Series]]:
    """What a pod counts that does this share of the pool's requests. It has more than one series of them."""
    labels = {"namespace": "inference", "pod": name, "model_name": "m", "engine": "0"}

    def requests(part: float) -> Iterator[tuple[float, float]]:
        return counted(first, last, lambda at: part * share * daily(at))

    return [
        ("vllm:request_success_total", ({**labels, "finished_reason": "stop"}, requests(0.75))),
        ("vllm:request_success_total", ({**labels, "finished_reason": "length"}, requests(0.25))),
        ("vllm:prompt_tokens_total", (labels, requests(INPUT_TOKENS))),
        ("vllm:generation_tokens_total", (labels, requests(OUTPUT_TOKENS))),
    ]


@dataclass(frozen=True)
class Recorded:
    settings: PrometheusSettings
    begins_at: float
    ends_at: float
    hole: tuple[float, float]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """A day of two rollouts, of which half an hour was not recorded. Another pool's name begins alike."""
    ends_at = time.time() // 60 * 60
    begins_at = ends_at - 25 * HOUR
    rollout, hole = begins_at + 8 * HOUR, (begins_at + 15 * HOUR, begins_at + 15.5 * HOUR)
    rows = [
        *pod("chat-7d4b9c6f5-bbbbb", begins_at, rollout, 0.5),
        *pod("chat-7d4b9c6f5-ccccc", begins_at, rollout, 0.5),
        *pod("chat-5c8f7d6b4-ddddd", rollout, hole[0], 1.0),
        *pod("chat-5c8f7d6b4-fffff", hole[1], ends_at, 1.0),
        *pod("chats-5c8f7d6b4-ggggg", begins_at, ends_at, 3.0),
    ]
    families: dict[str, list[Series]] = {}
    for name, series in rows:
        families.setdefault(name, []).append(series)
    directory = Path(tmp_path_factory.mktemp("prometheus"))
    write_past(directory, families)
    with PrometheusServer(directory=directory) as server:
        settings = PrometheusSettings(url=server.url, round_seconds=60, read_timeout_seconds=60)
        yield Recorded(settings, begins_at, ends_at, hole)


@pytest.fixture(scope="module")
def load(recorded: Recorded) -> BinnedTrace:
    source = PrometheusSource(recorded.settings.for_the_past(), SystemClock())
    try:
        return read_recorded_load(
            source, QuerySettings(), POOL, RecordedTime(recorded.begins_at + HOUR, recorded.ends_at)
        )
    finally:
        source.close()


def middles(recorded: Recorded, load: BinnedTrace) -> np.ndarray:
    return recorded.begins_at + HOUR + 60.0 * np.arange(len(load.requests_per_second)) + 30.0


def test_the_rates_are_those_of_the_pool_alone_over_all_its_rollouts(recorded: Recorded, load: BinnedTrace) -> None:
    truth = np.array([daily(at) for at in middles(recorded, load)])
    off = np.abs(load.requests_per_second / truth - 1)
    assert np.nanquantile(off, 0.99) < 0.02
    assert np.nanquantile(np.abs(load.input_tokens_per_request / INPUT_TOKENS - 1), 0.99) < 0.01
    assert np.nanquantile(np.abs(load.output_tokens_per_request / OUTPUT_TOKENS - 1), 0.99) < 0.01


def test_what_was_not_recorded_is_a_hole_and_said(recorded: Recorded, load: BinnedTrace) -> None:
    unknown = ~np.isfinite(load.requests_per_second)
    begun, over = recorded.hole
    at = middles(recorded, load)
    assert unknown[(at > begun + 120) & (at < over)].all()
    assert not unknown[(at < begun) | (at > over + 120)].any()
    assert any(f"{unknown.sum()} of {len(unknown)} minutes were not recorded" in each for each in load.assumptions)


def ran(recorded: Recorded, directory: Path, **more: Any) -> tuple[int, str, dict[str, Any]]:
    policy, report = directory / "policy.yaml", directory / "report.json"
    policy.write_text(POLICY)
    screen = StringIO()
    request = ReplayRequest(policies=(policy,), prometheus=recorded.settings, json_path=report, **more)
    code = replay_policies(request, Console(file=screen, width=250))
    return code, screen.getvalue(), json.loads(report.read_text()) if report.exists() else {}


def test_the_last_day_by_rates(recorded: Recorded, tmp_path: Path) -> None:
    code, screen, document = ran(
        recorded,
        tmp_path,
        start_seconds=recorded.begins_at + HOUR,
        end_seconds=recorded.ends_at,
        is_policy_only=True,
        policy_step_seconds=60.0,
        html_path=tmp_path / "page.html",
        decisions_path=tmp_path / "decisions.jsonl",
    )
    assert code == 0, screen
    assert "minutes were not recorded" in screen
    (figures,) = document["policies"].values()
    # 10 to 50 requests a second, a replica may be given 15: followed up and down, and nothing is made of the hole.
    assert figures["scale_ups"] >= 1
    assert figures["scale_downs"] >= 1
    assert 3 <= figures["max_replicas"] <= 8
    assert 0.3 * figures["max_replicas"] < figures["replica_hours"] / 24.0 < 0.9 * figures["max_replicas"]
    assert len((tmp_path / "decisions.jsonl").read_text().splitlines()) == 24 * 60
    assert "chat" in (tmp_path / "page.html").read_text()


def test_an_hour_of_it_request_by_request(recorded: Recorded, tmp_path: Path) -> None:
    begins = recorded.begins_at + 4 * HOUR
    code, screen, document = ran(recorded, tmp_path, start_seconds=begins, end_seconds=begins + 600, trace_scale=0.25)
    assert code == 0, screen
    (figures,) = document["policies"].values()
    expected = 0.25 * sum(daily(at) for at in np.arange(begins, begins + 600).tolist())
    assert figures["requests"] == pytest.approx(expected, rel=0.1)


def test_a_time_that_prometheus_has_nothing_of(recorded: Recorded, tmp_path: Path) -> None:
    begins = recorded.begins_at - 10 * DAY
    code, _, _ = ran(recorded, tmp_path, start_seconds=begins, end_seconds=begins + HOUR, is_policy_only=True)
    assert code == 2
