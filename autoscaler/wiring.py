"""The composition root: the only place where adapters are made and plugged together."""

from __future__ import annotations

import logging
import random
import signal
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.clock import Clock, SystemClock
from autoscaler.controller.accelerator_pools import AcceleratorPoolReporter
from autoscaler.controller.config_directory import ConfigDirectory
from autoscaler.controller.events import EventReporter
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.loop import ControlLoop
from autoscaler.controller.pool_report import Reporter
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.scaler_source import ScalerSource
from autoscaler.controller.status import StatusReporter
from autoscaler.decision_log import DecisionLog, JsonLinesLog, NoDecisionLog
from autoscaler.http_server import HttpServer, create_app
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.cluster_scalers import ClusterScalers
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from autoscaler.kubernetes_gateway.event_writer import EventWriter
from autoscaler.kubernetes_gateway.lease_elector import LeaseElector
from autoscaler.kubernetes_gateway.status_writer import StatusWriter
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.observers.kubernetes_workload import KubernetesWorkloadObserver
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.settings import ControllerSettings
from autoscaler.telemetry import Telemetry
from policies.parameters import Mode

logger = logging.getLogger(__name__)

WRITERS = 8


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Why the controller cannot even begin: wrong credentials, a taken port, no such folder."""

    message: str


def run_controller(settings: ControllerSettings) -> int | StartFailed:
    """Runs until SIGTERM or SIGINT; 0 then. In a dry run there is no lease, no status, no Event and no write at all."""
    clock = SystemClock()
    try:
        connection = connect(str(settings.kubeconfig) if settings.kubeconfig else None, settings.context)
        directory = ConfigDirectory(settings.config_directory) if settings.config_directory else None
        log = _decision_log(settings)
        prometheus = PrometheusSource(settings.prometheus, clock)
    except (CredentialsError, OSError, ValueError) as error:
        return StartFailed(str(error))
    cluster = WatchedCluster(
        connection,
        clock,
        random.random,
        namespaces=settings.namespaces or None,
        watches_own_objects=directory is None,
        watches_nodes=directory is None,
    )
    elector = None if settings.is_dry_run else _elector(settings, connection, clock)
    is_leader: Callable[[], bool] = elector.is_leader if elector else _always
    telemetry = Telemetry()
    records = LatestRecords(log)
    reporters: list[Reporter] = [records, telemetry]
    background = BackgroundWriter(connection, is_leader, Backoff(random.random))
    if elector and directory is None:
        statuses = StatusWriter(background)
        reporters.append(StatusReporter(statuses, records))
        if cluster.accelerator_pools is not None and cluster.nodes is not None:
            accelerators = ClusterAccelerators(cluster.accelerator_pools, cluster.nodes)
            reporters.append(AcceleratorPoolReporter(accelerators, statuses))
        reporters.append(EventReporter(EventWriter(background, clock, settings.lease.identity)))
    histories = HistoryStore()
    source: ScalerSource = directory or ClusterScalers(_required(cluster))
    executor = ThreadPoolExecutor(WRITERS, thread_name_prefix="reconcile")
    reconciler = Reconciler(
        KubernetesWorkloadObserver(cluster, source.scalers),
        PrometheusMetricsObserver(prometheus, settings.queries),
        _actuators(settings, connection, is_leader, clock),
        histories,
        reporters,
        executor,
    )
    loop = ControlLoop(
        reconciler,
        source,
        histories,
        telemetry,
        clock,
        elector.tenure if elector else lambda: 0,
        is_synced=lambda: cluster.has_synced,
        tick_seconds=settings.tick_seconds,
    )
    app = create_app(telemetry, records, loop.is_alive, lambda: _not_ready_because(cluster))
    try:
        server = HttpServer(app, settings.http_host, settings.http_port)
    except OSError as error:
        return StartFailed(f"cannot listen on {settings.http_host}:{settings.http_port}: {error.strerror}")
    _observe_the_process(telemetry, cluster, is_leader)
    stop = _stop_on_signals()
    server.start()
    cluster.start()
    background.start()
    if elector:
        elector.start()
    loop.start()
    logger.info("running", extra={"api_server": connection.server, "http_port": server.port})
    stop.wait()
    logger.info("stopping")
    loop.stop()
    background.stop()
    if elector:
        # After the last write, so that another controller may take over at once.
        elector.stop()
    cluster.stop()
    executor.shutdown()
    server.stop()
    return 0


def _always() -> bool:
    return True


def _decision_log(settings: ControllerSettings) -> DecisionLog:
    if settings.decision_log is not None or settings.writes_decisions_to_stdout:
        return JsonLinesLog(settings.decision_log)
    return NoDecisionLog()


def _elector(settings: ControllerSettings, connection: ApiConnection, clock: Clock) -> LeaseElector:
    # A pod's name is not enough: a restarted container would take its predecessor's lease for its own.
    identity = f"{settings.lease.identity}_{uuid.uuid4()}"
    return LeaseElector(
        connection,
        settings.lease.namespace,
        settings.lease.name,
        identity,
        clock,
        random.random,
        on_change=lambda leads: logger.info("leads" if leads else "does not lead", extra={"identity": identity}),
    )


def _actuators(
    settings: ControllerSettings, connection: ApiConnection, fence: Callable[[], bool], clock: Clock
) -> dict[Mode, ReplicaActuator]:
    dry_run = DryRunActuator()
    if settings.is_dry_run:
        return dict.fromkeys(Mode, dry_run)
    scale = ScaleSubresourceActuator(connection, fence, clock)
    return {Mode.DRY_RUN: dry_run, Mode.SCALE_UP_ONLY: scale, Mode.SCALE: scale}


def _required(cluster: WatchedCluster) -> WatchedKind[dict[str, Any]]:
    if cluster.inference_scalers is None:
        raise RuntimeError("InferenceScalers are not watched, and there is no folder to read them from")
    return cluster.inference_scalers


def _not_ready_because(cluster: WatchedCluster) -> str | None:
    if cluster.has_synced:
        return None
    return "; ".join(cluster.problems) or "the watches have not been filled yet"


def _observe_the_process(telemetry: Telemetry, cluster: WatchedCluster, is_leader: Callable[[], bool]) -> None:
    telemetry.add_gauges(
        "tokenscaler_leader", "1 on the controller that may write.", "lease", lambda: {"held": float(is_leader())}
    )
    telemetry.add_gauges(
        "tokenscaler_watch_lists",
        "Full lists read by the watch of a resource since the start.",
        "resource",
        lambda: {name: float(kind.lists) for name, kind in cluster.fixed_kinds.items()},
    )


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
