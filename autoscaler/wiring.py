"""The composition root: adapters are made and plugged together here, by `controller_parts.py` and `node_wiring.py`."""

from __future__ import annotations

import logging
import signal
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.actuators.external_metric import ExternalMetricActuator
from autoscaler.actuators.pod_drain import PodDrain
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.clock import SystemClock
from autoscaler.controller.accelerator_pools import AcceleratorPoolReporter
from autoscaler.controller.events import EventReporter, LoggedEvents
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.loop import ControlLoop
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.node_disruption import NodeDisruptionKeeper
from autoscaler.controller.pool_report import Reporter
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.scaler_source import ScalersOfTick
from autoscaler.controller.split_audit import SplitAudit
from autoscaler.controller.status import StatusReporter
from autoscaler.controller_parts import ControllerParts, make_parts
from autoscaler.cycle_collection import collect_cycles_rarely
from autoscaler.dashboard.app import create_app as create_dashboard
from autoscaler.dashboard.recorder import DashboardRecorder
from autoscaler.dashboard.snapshot import FleetSource
from autoscaler.external_metrics.newest_metrics import NewestMetrics
from autoscaler.external_metrics.prometheus_series import MetricValueCollector
from autoscaler.external_metrics.service import MetricsApi
from autoscaler.external_metrics.status_metrics import StatusMetrics
from autoscaler.foresight.daemon_executor import DaemonExecutor
from autoscaler.foresight.fleet_foresight import FleetForesight
from autoscaler.foresight.forecast_metrics import ForecastMetrics
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.http_server import HttpServer, bind, create_app
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.cluster_scalers import ClusterScalers
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from autoscaler.kubernetes_gateway.event_writer import EventWriter
from autoscaler.kubernetes_gateway.status_writer import StatusWriter
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.node_wiring import (
    cluster_accelerators,
    disruption_keeper,
    keepers_of_pods,
    node_capacity_keeper,
    victim_marker,
)
from autoscaler.observers.kubernetes_workload import KubernetesWorkloadObserver
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.settings import ControllerSettings
from autoscaler.telemetry import Telemetry
from policies.parameters import Mode

if TYPE_CHECKING:
    from autoscaler.keda_external_scaler.server import ExternalScalerServer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Why the controller cannot even begin: wrong credentials, a taken port, no such folder."""

    message: str


def run_controller(settings: ControllerSettings) -> int | StartFailed:
    """Runs until SIGTERM or SIGINT; 0 then. In a dry run there is no lease, no status, no Event and no write at all."""
    collect_cycles_rarely()
    try:
        parts = make_parts(settings, SystemClock())
    except (CredentialsError, OSError, ValueError) as error:
        return StartFailed(str(error))
    metrics = NewestMetrics(StatusMetrics(_required(parts.cluster)) if parts.directory is None else None)
    telemetry = Telemetry()
    try:
        metrics_api = _metrics_api(settings, parts, metrics, telemetry)
    except OSError as error:
        assert settings.metrics_api is not None
        return StartFailed(f"cannot listen on {settings.http_host}:{settings.metrics_api.port}: {error.strerror}")
    external_scaler = _external_scaler(settings, parts, metrics)
    try:
        if external_scaler:
            external_scaler.start()
    except OSError as error:
        _stop(metrics_api)
        return StartFailed(f"KEDA's external scaler: {error}")
    loop, app = _assemble(settings, parts, telemetry, metrics, metrics_api)
    try:
        server = HttpServer(app, settings.http_host, settings.http_port)
    except OSError as error:
        _stop(external_scaler, metrics_api)
        return StartFailed(f"cannot listen on {settings.http_host}:{settings.http_port}: {error.strerror}")
    stop = _stop_on_signals()
    server.start()
    if metrics_api:
        metrics_api.start()
    parts.start()
    loop.start()
    logger.info("running", extra={"api_server": parts.connection.server, "http_port": server.port})
    stop.wait()
    logger.info("stopping")
    loop.stop()
    _stop(external_scaler, metrics_api)
    parts.stop()
    server.stop()
    return 0


def _stop(*servers: ExternalScalerServer | MetricsApi | None) -> None:
    for server in servers:
        if server is not None:
            server.stop()


def _metrics_api(
    settings: ControllerSettings, parts: ControllerParts, metrics: NewestMetrics, telemetry: Telemetry
) -> MetricsApi | None:
    """Raises OSError where its address is taken."""
    if settings.metrics_api is None:
        return None
    bound = bind(settings.metrics_api.host, settings.metrics_api.port)
    return MetricsApi(
        settings.metrics_api, bound, parts.connection, metrics, parts.is_leader, parts.clock, telemetry.registry
    )


def _external_scaler(
    settings: ControllerSettings, parts: ControllerParts, metrics: NewestMetrics
) -> ExternalScalerServer | None:
    given = settings.external_scaler
    if given is None:
        return None
    # gRPC takes 10 MiB, which nobody pays who does not use it.
    from autoscaler.keda_external_scaler.server import CertificateFiles, ExternalScalerServer
    from autoscaler.keda_external_scaler.service import look_up_in

    look_up = look_up_in(metrics, parts.clock)
    return ExternalScalerServer(look_up, given.host, given.port, CertificateFiles(given.certificate_directory))


def _assemble(
    settings: ControllerSettings,
    parts: ControllerParts,
    telemetry: Telemetry,
    metrics: NewestMetrics,
    metrics_api: MetricsApi | None,
) -> tuple[ControlLoop, FastAPI]:
    _observe_the_process(telemetry, parts)
    metric_values = MetricValueCollector(parts.clock)
    telemetry.registry.register(metric_values)
    forecast_metrics = ForecastMetrics()
    telemetry.registry.register(forecast_metrics)
    records = LatestRecords(parts.log)
    foresight = FleetForesight(PrometheusWorkHistory(parts.past, settings.queries, parts.clock), DaemonExecutor())
    recorder = DashboardRecorder(
        FleetSource("Tokenscaler", parts.connection.server, is_simulated=False), forecast_of=foresight.newest
    )
    histories, written = HistoryStore(), WrittenCounts()
    accelerators = cluster_accelerators(parts)
    disruption = disruption_keeper(parts, accelerators)
    node_capacity = node_capacity_keeper(settings, parts, accelerators, written)
    split_audit = [] if accelerators is None else [SplitAudit(accelerators, parts.clock)]
    for collector in split_audit:
        telemetry.registry.register(collector)
    source = ScalersOfTick(parts.directory or ClusterScalers(_required(parts.cluster)))
    metrics_observer = PrometheusMetricsObserver(parts.prometheus, settings.queries)
    drain = PodDrain(parts.connection, parts.cluster, parts.is_leader, parts.clock)
    reconciler = Reconciler(
        KubernetesWorkloadObserver(
            parts.cluster,
            source.newest,
            written_count=written.last,
            asked_for=node_capacity.asked_for if node_capacity else lambda *_: None,
        ),
        metrics_observer,
        _actuators(settings, parts, written),
        histories,
        [
            metrics,  # first: what it serves should be new at once
            records,
            telemetry,
            metric_values,
            forecast_metrics,
            recorder,
            *split_audit,
            EventReporter(LoggedEvents()),
            *_cluster_reporters(settings, parts, records, accelerators, node_capacity, disruption),
        ],
        parts.executor,
        foresight,
        node_capacity,
        victim_marker(parts, metrics_observer, telemetry, drain),
        keepers_of_pods(parts, disruption, drain, written),
    )
    loop = ControlLoop(
        reconciler,
        source,
        telemetry,
        parts.clock,
        parts.elector.tenure if parts.elector else lambda: 0,
        is_synced=lambda: parts.cluster.has_synced,
        tick_seconds=settings.tick_seconds,
    )
    parts.cluster.tell_of_departures(loop.wake)
    app = create_app(
        telemetry,
        records,
        lambda: loop.is_alive() and parts.background.is_alive(),
        lambda: _not_ready_because(parts.cluster) or (metrics_api.not_ready_because() if metrics_api else None),
    )
    app.mount("/", create_dashboard(lambda: recorder.snapshot))
    return loop, app


def _cluster_reporters(
    settings: ControllerSettings,
    parts: ControllerParts,
    records: LatestRecords,
    accelerators: ClusterAccelerators | None,
    node_capacity: NodeCapacityKeeper | None,
    disruption: NodeDisruptionKeeper | None,
) -> list[Reporter]:
    """Who tells the cluster; nobody in a dry run, or where the objects are files."""
    if parts.elector is None or parts.directory is not None:
        return []
    nodes_of = node_capacity.outcome if node_capacity else lambda _: None
    statuses = StatusWriter(parts.background)
    events = EventWriter(parts.background, parts.clock, settings.lease.identity)
    reporters: list[Reporter] = [StatusReporter(statuses, records, nodes_of), EventReporter(events)]
    if accelerators is not None and node_capacity is not None:
        told_of_disruption = disruption.outcome if disruption else lambda _: None
        reporters.append(
            AcceleratorPoolReporter(accelerators, statuses, parts.clock, node_capacity.outcome, told_of_disruption)
        )
    return reporters


def _actuators(
    settings: ControllerSettings, parts: ControllerParts, written: WrittenCounts
) -> dict[Mode, ReplicaActuator]:
    dry_run = DryRunActuator()
    if settings.is_dry_run:
        return dict.fromkeys(Mode, dry_run)
    scale = ScaleSubresourceActuator(parts.connection, parts.is_leader, parts.clock, written)
    return {
        Mode.DRY_RUN: dry_run,
        Mode.SCALE_UP_ONLY: scale,
        Mode.SCALE: scale,
        Mode.EXTERNAL_METRIC: ExternalMetricActuator(),
    }


def _required(cluster: WatchedCluster) -> WatchedKind[dict[str, Any]]:
    if cluster.inference_scalers is None:
        raise RuntimeError("InferenceScalers are not watched, and there is no folder to read them from")
    return cluster.inference_scalers


def _not_ready_because(cluster: WatchedCluster) -> str | None:
    if cluster.has_synced:
        return None
    return "; ".join(cluster.problems) or "the watches have not been filled yet"


def _observe_the_process(telemetry: Telemetry, parts: ControllerParts) -> None:
    telemetry.add_gauges(
        "tokenscaler_leader", "1 on the controller that may write.", "lease", lambda: {"held": float(parts.is_leader())}
    )
    telemetry.add_gauges(
        "tokenscaler_watch_lists",
        "Full lists read by the watch of a resource since the start.",
        "resource",
        lambda: {name: float(kind.lists) for name, kind in parts.cluster.fixed_kinds.items()},
    )
    telemetry.add_gauges(
        "tokenscaler_prometheus_queries",
        "Queries sent to Prometheus since the start, by what came of them.",
        "outcome",
        lambda: {name: float(count) for name, count in asdict(parts.prometheus.counts()).items()},
    )
    if parts.directory is not None:
        directory = parts.directory
        telemetry.add_gauges(
            "tokenscaler_config_file_refused",
            "1 for each file of the folder that is not in force as it stands.",
            "file",
            lambda: {bad.path.name: 1.0 for bad in directory.bad_files},
        )


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
