"""How soon does the metrics API say what has been decided, at the replica that leads and at the one that follows?

A decision's own time is the beginning of its tick, so what is measured holds the tick too: asking Prometheus, deciding.
"""

from __future__ import annotations

import datetime
import http.client
import json
import socket
import ssl
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks.figure import Figure
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.installed_metrics_api import NAMESPACE, PREFIX, InstalledMetricsApi
from tests.cluster.harness.policies import quick_policy
from tests.servers.ports import free_port
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.vllm_exporters import VllmExporters

CRD_DIRECTORY = Path(__file__).parents[2] / "deploy" / "crd"
STEPS = 40
PENDING_PER_REPLICA = 4
POLL_SECONDS = 0.003


def measure() -> list[Figure]:
    """Delays of 40 changed counts, at the leader and at a follower."""
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane())
        control_plane.apply(CRD_DIRECTORY)
        installed = stack.enter_context(InstalledMetricsApi(control_plane, free_port(), is_kept=True))
        exporters = stack.enter_context(VllmExporters())
        prometheus = stack.enter_context(PrometheusServer([exporters.scrape_config()], scrape_interval_seconds=1.0))
        # There are no nodes and no HPA: the count stays as it is, and only what is wanted changes.
        fleet = stack.enter_context(Fleet(control_plane, exporters, replicas=0))
        exporters.set_gateway_pending(fleet.namespace, PENDING_PER_REPLICA)
        fleet.scale(1)
        query = f'sum(gateway_pending_requests{{pool="{fleet.namespace}"}})'
        signals = {"pendingRequests": {"query": query, "perReplica": PENDING_PER_REPLICA}}
        prometheus.wait_for("gateway_pending_requests")
        fleet.create_scaler(quick_policy(mode="ExternalMetric", signals=signals, down_window_seconds=0))
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        polled = []
        for identity in ("leader", "follower"):
            port = free_port()
            controller = ControllerProcess(
                directory,
                installed.kubeconfig,
                prometheus.url,
                identity=identity,
                namespaces=[fleet.namespace],
                lease_namespace=NAMESPACE,
                tick_seconds=0.5,
                arguments=["--metrics-api-port", str(port)],
            )
            controller.start()
            stack.callback(controller.kill)
            wait_until(controller.is_ready, f"{identity} is ready", 60)
            polled.append(stack.enter_context(_Polled(control_plane, fleet.namespace, port)))
            if identity == "leader":
                controller.wait_deciding(3)
                deciding = controller
        for step in range(STEPS):
            wanted = 2 + step % 7
            exporters.set_gateway_pending(fleet.namespace, wanted * PENDING_PER_REPLICA)
            for each in polled:
                wait_until(lambda each=each, wanted=wanted: each.newest == wanted, f"{wanted} is served", 30, 0.01)
        decided = _changes(deciding)
        return [
            *_figures("leader", decided, polled[0].seen),
            *_figures("follower", decided, polled[1].seen),
        ]


def _changes(controller: ControllerProcess) -> list[tuple[int, float]]:
    """(count, unix time) of each decision that differs from the one before."""
    found: list[tuple[int, float]] = []
    for record in controller.records():
        count = record["decision"]["desiredReplicas"]
        if not found or found[-1][0] != count:
            found.append((count, datetime.datetime.fromisoformat(record["time"]).timestamp()))
    return found


def _figures(who: str, decided: list[tuple[int, float]], seen: list[tuple[int, float]]) -> list[Figure]:
    counts = min(len(decided), len(seen), STEPS)
    delays = sorted(
        (at - decided_at) * 1000
        for (count, at), (decided_count, decided_at) in zip(seen[-counts:], decided[-counts:], strict=True)
        if count == decided_count
    )
    goal = "<= 100 ms" if who == "leader" else ""
    return [
        Figure(f"from decision to API, {who}, p50 of {len(delays)}", f"{delays[len(delays) // 2]:.0f} ms", goal),
        Figure(f"from decision to API, {who}, p90", f"{delays[int(len(delays) * 0.9)]:.0f} ms"),
    ]


class _Polled:
    """Asks one replica all the time, as the API server does, and notes when its answer changes."""

    def __init__(self, control_plane: ControlPlane, namespace: str, port: int) -> None:
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE
        pair = control_plane.certificates.front_proxy_client
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._path = f"{PREFIX}/namespaces/{namespace}/tokenscaler-desired-replicas"
        self._port = port
        self.seen: list[tuple[int, float]] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> _Polled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join(10)

    @property
    def newest(self) -> int | None:
        """The count of the last answer."""
        return self.seen[-1][0] if self.seen else None

    def _poll(self) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=10)
        connection.sock = self._context.wrap_socket(socket.create_connection(("127.0.0.1", self._port)))
        while not self._closing.wait(POLL_SECONDS):
            connection.request("GET", self._path, headers={"X-Remote-User": "bench"})
            response = connection.getresponse()
            content = response.read()
            if response.status != 200:
                continue
            count = int(json.loads(content)["items"][0]["value"])
            if self.newest != count:
                self.seen.append((count, time.time()))
        connection.close()
