"""What does a tick over a large fleet cost, and does a steady fleet cause any write?"""

from __future__ import annotations

import datetime
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from tests.benchmarks.figure import Figure, Step
from tests.benchmarks.many_pages import ManyPages
from tests.benchmarks.sampled_controller import INTERVAL_SECONDS
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.policies import quick_policy
from tests.cluster.harness.workloads import deployment, inference_scaler
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer

CRD_DIRECTORY = Path(__file__).parents[2] / "deploy" / "crd"
NAMESPACES = 20
TICK_SECONDS = 15.0
SCRAPE_SECONDS = 15.0
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
OTHERS_EVENTS = {"Scheduled", "SuccessfulCreate", "ScalingReplicaSet", "RegisteredNode"}
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Usage:
    """What a process has used since its start."""

    cpu_seconds: float
    resident_mebibytes: float


def measure(pools: int, pods_per_pool: int, ticks: int, console: Console) -> tuple[list[Figure], list[Step]]:
    """The figures, and the share of each step of a tick. Building the fleet takes minutes: it says how far it is."""
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane())
        control_plane.apply(CRD_DIRECTORY)
        with _said(console, f"{pools} Deployments of {pods_per_pool} pods are Ready"):
            pods = _create_fleet(control_plane, pools, pods_per_pool)
        pages = stack.enter_context(ManyPages(pods))
        prometheus = stack.enter_context(
            PrometheusServer([pages.scrape_config()], scrape_interval_seconds=SCRAPE_SECONDS)
        )
        with _said(console, "Prometheus has rates of all pods"):
            prometheus.wait_for("vllm:num_requests_running", len(pods), timeout_seconds=120)
            time.sleep(75)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        controller, samples = _start_controller(stack, directory, control_plane, prometheus)
        with _said(console, "the controller has decided for every pool three times"):
            controller.wait_ready(lambda: _done_ticks(controller, pools) >= 3, timeout_seconds=600)
        return _measure_ticks(control_plane, prometheus, controller, samples, pools, ticks)


@contextmanager
def _said(console: Console, what: str) -> Iterator[None]:
    started = time.monotonic()
    yield
    console.print(f"{what} (after {time.monotonic() - started:.0f} s)")


def _create_fleet(control_plane: ControlPlane, pools: int, pods_per_pool: int) -> list[tuple[str, str]]:
    api = control_plane.api
    control_plane.add_nodes(pools * pods_per_pool // 150 + 2, accelerators=160)
    for number in range(NAMESPACES):
        control_plane.create_namespace(f"fleet-{number}")
    policy = quick_policy(maximum=64, down_window_seconds=300)
    for number in range(pools):
        namespace, name = f"fleet-{number % NAMESPACES}", f"pool-{number}"
        api.create(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment(namespace, name, pods_per_pool))
        scalers = f"/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers"
        api.create(scalers, inference_scaler(namespace, name, policy))
    ready: list[dict[str, Any]] = []

    def all_ready() -> bool:
        ready[:] = [pod for pod in api.items("/api/v1/pods") if pod["status"].get("phase") == "Running"]
        return len(ready) == pools * pods_per_pool

    wait_until(all_ready, "all pods are Running", 1800, poll_seconds=5)
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in ready]


def _start_controller(
    stack: ExitStack, directory: Path, control_plane: ControlPlane, prometheus: PrometheusServer
) -> tuple[ControllerProcess, Path]:
    samples = directory / "samples.json"
    control_plane.create_namespace("bench")
    controller = ControllerProcess(
        directory,
        control_plane.create_service_account("bench", "controller", EVERYTHING),
        prometheus.url,
        identity="bench",
        namespaces=[],
        lease_namespace="bench",
        tick_seconds=TICK_SECONDS,
    )
    controller.command[:3] = [sys.executable, "-m", "tests.benchmarks.sampled_controller", str(samples)]
    controller.start()
    stack.callback(controller.kill)
    return controller, samples


def _usage(pid: int) -> _Usage:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    return _Usage((int(fields[11]) + int(fields[12])) / _CLOCK_TICKS, int(resident[1]) / 1024)


def _done_ticks(controller: ControllerProcess, pools: int) -> int:
    """By the lines of its decision log, as asking it each second would be more work for it than a tick is."""
    return controller.decision_log.read_bytes().count(b"\n") // pools if controller.decision_log.exists() else 0


def _wait_ticks(controller: ControllerProcess, pools: int, ticks: int) -> int:
    """The ticks that were done. Its metrics are read once a tick, as Prometheus would."""
    began = done = _done_ticks(controller, pools)
    deadline = time.monotonic() + 60 * ticks
    while done < began + ticks and time.monotonic() < deadline:
        time.sleep(0.5)
        seen, done = done, _done_ticks(controller, pools)
        if done > seen:
            controller.get("/metrics")
    assert done >= began + ticks, f"{done - began} of {ticks} ticks in time"
    return done - began


def _queries(prometheus: PrometheusServer) -> int:
    page = re.findall(
        r'prometheus_http_requests_total\{code="\d+",handler="/api/v1/query(?:_range)?"\} (\S+)',
        prometheus.get_text("/metrics"),
    )
    return int(sum(float(value) for value in page))


def _measure_ticks(
    control_plane: ControlPlane,
    prometheus: PrometheusServer,
    controller: ControllerProcess,
    samples: Path,
    pools: int,
    ticks: int,
) -> tuple[list[Figure], list[Step]]:
    user = "system:serviceaccount:bench:controller"
    _wait_ticks(controller, pools, 1)  # so that whole ticks are measured
    before, asked_before = _usage(controller.pid), _queries(prometheus)
    started_at = datetime.datetime.now(datetime.UTC)
    done = _wait_ticks(controller, pools, ticks)
    after, asked = _usage(controller.pid), _queries(prometheus) - asked_before
    writes = Counter(
        event.resource
        for event in control_plane.audit_events()
        if event.user == user and event.is_write and event.at >= started_at and event.resource != "leases"
    )
    steps = _sampled_steps(controller, samples, pools, ticks)
    lists = _lists_after_a_restart(control_plane, controller, pools, user)
    cpu_seconds = (after.cpu_seconds - before.cpu_seconds) / done
    figures = [
        Figure("CPU of a tick, with watches and a scrape", f"{cpu_seconds:.2f} s", "<= 2 s"),
        Figure("Prometheus queries of a tick", f"{asked / done:.1f}", "<= 12"),
        Figure("resident memory", f"{after.resident_mebibytes:.0f} MiB", "<= 300 MiB"),
        Figure(f"writes in {done} ticks of a steady fleet", str(sum(writes.values())), "0"),
        Figure("lists after the API server's restart, of one resource", str(max(lists.values(), default=0)), "<= 2"),
    ]
    if writes:
        figures.append(Figure("  these were", ", ".join(f"{name} {count}" for name, count in writes.items())))
        reasons = Counter(event["reason"] for event in control_plane.api.items("/apis/events.k8s.io/v1/events"))
        reasons = Counter({reason: count for reason, count in reasons.items() if reason not in OTHERS_EVENTS})
        figures.append(Figure("  reasons of Events", ", ".join(f"{name} {n}" for name, n in reasons.most_common(4))))
    return figures, steps


def _sampled_steps(controller: ControllerProcess, samples: Path, pools: int, ticks: int) -> list[Step]:
    samples.write_text("{}")
    _wait_ticks(controller, pools, ticks)
    time.sleep(1.5)  # the sampler writes every second
    counts: Counter[str] = Counter(json.loads(samples.read_text()))
    samples.unlink()
    total = sum(counts.values()) or 1
    return [Step(name, count / total, count * INTERVAL_SECONDS / ticks) for name, count in counts.most_common()]


def _lists_after_a_restart(
    control_plane: ControlPlane, controller: ControllerProcess, pools: int, user: str
) -> Counter[str]:
    control_plane.stop_api_server()
    control_plane.start_api_server()
    restarted_at = datetime.datetime.now(datetime.UTC)
    ticks = _done_ticks(controller, pools)
    wait_until(lambda: _done_ticks(controller, pools) >= ticks + 2, "two more ticks", 180, poll_seconds=1)
    # A list of ten thousand pods comes in pages: only its first page counts as a list.
    return Counter(
        event.resource
        for event in control_plane.audit_events()
        if event.user == user and event.verb == "list" and event.at >= restarted_at and not event.is_next_page
    )
