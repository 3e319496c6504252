"""The composition root: the only place where adapters are made and plugged together."""

from __future__ import annotations

import logging
import random
import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from prometheus_client import Counter

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.actuators.capacity_buffers import CapacityBuffers
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.actuators.external_metric import ExternalMetricActuator
from autoscaler.actuators.loading_protection import LoadingProtection
from autoscaler.actuators.node_pool_disruption import KarpenterNodePoolDisruption
from autoscaler.actuators.node_pool_limits import KarpenterNodePoolLimits
from autoscaler.actuators.placeholder_pods import PlaceholderPods
from autoscaler.actuators.pod_deletion_costs import PodDeletionCosts
from autoscaler.actuators.pod_drain import PodDrain
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.api.pool_bounds import micro_dollars
from autoscaler.clock import Clock, SystemClock
from autoscaler.controller.accelerator_pools import AcceleratorPoolReporter
from autoscaler.controller.config_directory import ConfigDirectory
from autoscaler.controller.drain_keeper import DrainKeeper
from autoscaler.controller.events import EventReporter, LoggedEvents
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.keeper import Keeper
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.loading_keeper import LoadingKeeper
from autoscaler.controller.loop import ControlLoop
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.node_disruption import NodeDisruptionKeeper
from autoscaler.controller.pool_report import Reporter
from autoscaler.controller.prewarming import Prewarmer
from autoscaler.controller.reconcile import Reconciler
from autoscaler.controller.scaler_source import ScalersOfTick
from autoscaler.controller.split_audit import SplitAudit
from autoscaler.controller.status import StatusReporter
from autoscaler.cycle_collection import collect_cycles_rarely
from autoscaler.dashboard.app import create_app as create_dashboard
from autoscaler.dashboard.recorder import DashboardRecorder
from autoscaler.dashboard.snapshot import FleetSource
from autoscaler.decision_log import DecisionLog, JsonLinesLog
from autoscaler.external_metrics.newest_metrics import NewestMetrics
from autoscaler.external_metrics.prometheus_series import MetricValueCollector
from autoscaler.external_metrics.service import MetricsApi
from autoscaler.external_metrics.status_metrics import StatusMetrics
from autoscaler.foresight.daemon_executor import DaemonExecutor
from autoscaler.foresight.fleet_foresight import FleetForesight
from autoscaler.foresight.forecast_metrics import ForecastMetrics
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.http_server import HttpServer, bind, create_app
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.cluster_scalers import ClusterScalers
from autoscaler.kubernetes_gateway.connection import FIELD_MANAGER, ApiConnection, connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from autoscaler.kubernetes_gateway.event_writer import EventWriter
from autoscaler.kubernetes_gateway.lease_elector import LeaseElector
from autoscaler.kubernetes_gateway.status_writer import StatusWriter
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_launches import read_node_claims
from autoscaler.observers.kubernetes_workload import KubernetesWorkloadObserver
from autoscaler.observers.placeholders import WatchedPlaceholders
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.replica_places import ReplicaPlaces
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.settings import ControllerSettings
from autoscaler.telemetry import Telemetry
from policies.parameters import Mode

if TYPE_CHECKING:
    from autoscaler.keda_external_scaler.server import ExternalScalerServer

logger = logging.getLogger(__name__)

WRITERS = 8


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Why the controller cannot even begin: wrong credentials, a taken port, no such folder."""

    message: str


def run_controller(settings: ControllerSettings) -> int | StartFailed:
    """Runs until SIGTERM or SIGINT; 0 then. In a dry run there is no lease, no status, no Event and no write at all."""
    collect_cycles_rarely()
    try:
        parts = _make_parts(settings, SystemClock())
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


@dataclass(frozen=True, slots=True)
class _Parts:
    """What talks to the outside, before it is plugged together. No elector: nothing may be written."""

    clock: Clock
    connection: ApiConnection
    directory: ConfigDirectory | None
    log: DecisionLog | None
    prometheus: PrometheusSource
    past: PrometheusSource
    cluster: WatchedCluster
    elector: LeaseElector | None
    background: BackgroundWriter
    executor: ThreadPoolExecutor

    def start(self) -> None:
        """Begins to watch, and to compete for the lease."""
        self.cluster.start()
        self.background.start()
        if self.elector:
            self.elector.start()

    def stop(self) -> None:
        """Ends everything; the lease is given back after the last write, so that another may take over at once."""
        self.background.stop()
        if self.elector:
            self.elector.stop()
        self.cluster.stop()
        self.executor.shutdown()
        self.prometheus.close()
        self.past.close()

    def is_leader(self) -> bool:
        """Whether this process may write; a dry run decides as if it led."""
        return self.elector is None or self.elector.is_leader()


def _make_parts(settings: ControllerSettings, clock: Clock) -> _Parts:
    """Raises CredentialsError, OSError or ValueError where a setting does not work out on this machine."""
    connection = connect(str(settings.kubeconfig) if settings.kubeconfig else None, settings.context)
    directory = ConfigDirectory(settings.config_directory) if settings.config_directory else None
    elector = None if settings.is_dry_run else _elector(settings, connection, clock)
    return _Parts(
        clock=clock,
        connection=connection,
        directory=directory,
        log=_decision_log(settings),
        prometheus=PrometheusSource(settings.prometheus, clock),
        past=PrometheusSource(settings.prometheus.for_the_past(), clock),
        cluster=WatchedCluster(
            connection,
            clock,
            random.random,
            namespaces=settings.namespaces or None,
            watches_own_objects=directory is None,
            watches_nodes=directory is None,
            buffer_namespace=settings.lease.namespace,
        ),
        elector=elector,
        background=BackgroundWriter(connection, elector.is_leader if elector else _never, Backoff(random.random)),
        executor=ThreadPoolExecutor(WRITERS, thread_name_prefix="reconcile"),
    )


def _metrics_api(
    settings: ControllerSettings, parts: _Parts, metrics: NewestMetrics, telemetry: Telemetry
) -> MetricsApi | None:
    """Raises OSError where its address is taken."""
    if settings.metrics_api is None:
        return None
    bound = bind(settings.metrics_api.host, settings.metrics_api.port)
    return MetricsApi(
        settings.metrics_api, bound, parts.connection, metrics, parts.is_leader, parts.clock, telemetry.registry
    )


def _external_scaler(
    settings: ControllerSettings, parts: _Parts, metrics: NewestMetrics
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
    parts: _Parts,
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
    accelerators = _accelerators(parts)
    disruption = _disruption(parts, accelerators)
    node_capacity = _node_capacity(settings, parts, accelerators, written)
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
        _marker(parts, metrics_observer, telemetry, drain),
        _keepers(parts, disruption, drain),
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
    parts: _Parts,
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


def _disruption(parts: _Parts, accelerators: ClusterAccelerators | None) -> NodeDisruptionKeeper | None:
    """None in a dry run, which writes nothing."""
    if accelerators is None or parts.elector is None:
        return None
    writer = KarpenterNodePoolDisruption(parts.connection, parts.elector.is_leader)
    return NodeDisruptionKeeper(accelerators, writer, parts.clock)


def _accelerators(parts: _Parts) -> ClusterAccelerators | None:
    """None where the objects are files: AcceleratorPools are read from the cluster only."""
    cluster = parts.cluster
    if cluster.accelerator_pools is None or cluster.nodes is None or cluster.node_pools is None:
        return None
    return ClusterAccelerators(
        cluster.accelerator_pools,
        cluster.nodes,
        cluster.node_pools,
        cluster.launches,
        lambda: read_node_claims(cluster.node_claims),
        lambda: () if cluster.daemon_sets is None else cluster.daemon_sets.all(),
    )


def _node_capacity(
    settings: ControllerSettings, parts: _Parts, accelerators: ClusterAccelerators | None, written: WrittenCounts
) -> NodeCapacityKeeper | None:
    if accelerators is None:
        return None
    limits = KarpenterNodePoolLimits(parts.connection, parts.elector.is_leader) if parts.elector else None
    scale = ScaleSubresourceActuator(parts.connection, parts.is_leader, parts.clock, written)
    buffers = CapacityBuffers(parts.connection, parts.cluster, parts.is_leader, settings.lease.namespace)
    placeholders = PlaceholderPods(WatchedPlaceholders(parts.cluster), scale)
    prewarmer = Prewarmer(placeholders, buffers, is_dry_run=parts.elector is None)
    stated = settings.ceiling_dollars_per_hour
    ceiling_per_hour = None if stated is None else micro_dollars(stated)
    places = ReplicaPlaces(parts.cluster, lambda *_: None)
    return NodeCapacityKeeper(accelerators, accelerators, limits, FIELD_MANAGER, prewarmer, ceiling_per_hour, places)


def _keepers(parts: _Parts, disruption: NodeDisruptionKeeper | None, drain: PodDrain) -> list[Keeper]:
    """Nobody in a dry run, which writes nothing."""
    if parts.elector is None:
        return []
    loading = LoadingKeeper(LoadingProtection(parts.cluster, parts.background, parts.clock))
    return [DrainKeeper(drain), loading, *([] if disruption is None else [disruption])]


def _marker(
    parts: _Parts, observer: PrometheusMetricsObserver, telemetry: Telemetry, drain: PodDrain
) -> PodDeletionCosts | None:
    """None in a dry run: nothing is written."""
    if parts.elector is None:
        return None
    emptied = Counter(
        "tokenscaler_nodes_emptied",
        "Nodes on which falling counts of a target have left nothing, by choice of the replicas that go.",
        ("namespace", "target"),
        registry=telemetry.registry,
    )
    return PodDeletionCosts(
        parts.connection,
        parts.cluster,
        parts.elector.is_leader,
        observer.requests_in_flight,
        drain,
        lambda target, nodes: emptied.labels(target.namespace, target.name).inc(nodes),
    )


def _never() -> bool:
    return False


def _decision_log(settings: ControllerSettings) -> DecisionLog | None:
    if settings.decision_log is not None or settings.writes_decisions_to_stdout:
        return JsonLinesLog(settings.decision_log)
    return None


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
    )


def _actuators(settings: ControllerSettings, parts: _Parts, written: WrittenCounts) -> dict[Mode, ReplicaActuator]:
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


def _observe_the_process(telemetry: Telemetry, parts: _Parts) -> None:
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
