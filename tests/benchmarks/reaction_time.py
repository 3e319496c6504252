"""How long does it take from a metric's change until the API server has the patch?"""

from __future__ import annotations

import datetime
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

from tests.benchmarks.figure import Figure
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.policies import quick_policy
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.vllm_exporters import VllmExporters

CRD_DIRECTORY = Path(__file__).parents[2] / "deploy" / "crd"
SCRAPE_SECONDS = 1.0
TICK_SECONDS = 1.0
POOLS = 10
ROUNDS = 20
PENDING_PER_REPLICA = 4


def measure() -> list[Figure]:
    """200 steps up, at random moments, of pools that follow a queue in the gateway."""
    random = Random(1)
    with ExitStack() as stack:
        control_plane = stack.enter_context(ControlPlane())
        control_plane.apply(CRD_DIRECTORY)
        exporters = stack.enter_context(VllmExporters())
        prometheus = stack.enter_context(
            PrometheusServer([exporters.scrape_config()], scrape_interval_seconds=SCRAPE_SECONDS)
        )
        fleets = [_queue_pool(stack, control_plane, exporters) for _ in range(POOLS)]
        prometheus.wait_for("gateway_pending_requests", POOLS)
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        controller = ControllerProcess(
            directory,
            control_plane.kubeconfig,
            prometheus.url,
            identity="bench",
            namespaces=[fleet.namespace for fleet in fleets],
            lease_namespace=fleets[0].namespace,
            tick_seconds=TICK_SECONDS,
        )
        controller.start()
        stack.callback(controller.kill)
        controller.wait_deciding(3 * POOLS)
        delays = []
        for _ in range(ROUNDS):
            stepped_at = {}
            for fleet in fleets:
                time.sleep(random.uniform(0, 0.2))
                stepped_at[fleet] = datetime.datetime.now(datetime.UTC)
                exporters.set_gateway_pending(fleet.namespace, 2 * PENDING_PER_REPLICA)
            for fleet in fleets:
                fleet.wait_replicas(2)
                delays.append((fleet.scale_writes()[-1].at - stepped_at[fleet]).total_seconds())
                exporters.set_gateway_pending(fleet.namespace, PENDING_PER_REPLICA)
            for fleet in fleets:
                fleet.wait_replicas(1)
    delays.sort()
    goal = f"<= {SCRAPE_SECONDS + TICK_SECONDS + 1:.1f} s"
    quantiles = ((0.5, ""), (0.9, ""), (0.99, goal), (1.0, ""))
    return [
        Figure(f"p{share * 100:.0f} of {len(delays)} steps", f"{_quantile(delays, share):.2f} s", goal)
        for share, goal in quantiles
    ]


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _queue_pool(stack: ExitStack, control_plane: ControlPlane, exporters: VllmExporters) -> Fleet:
    # There are no nodes: its pods stay Pending, so that nothing but the gateway's queue speaks.
    fleet = stack.enter_context(Fleet(control_plane, exporters, replicas=0))
    exporters.set_gateway_pending(fleet.namespace, PENDING_PER_REPLICA)
    fleet.scale(1)
    query = f'sum(gateway_pending_requests{{pool="{fleet.namespace}"}})'
    signals = {"pendingRequests": {"query": query, "perReplica": PENDING_PER_REPLICA}}
    fleet.create_scaler(quick_policy(signals=signals, down_window_seconds=0))
    return fleet
