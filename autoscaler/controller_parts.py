"""What does a controller talk to, before it is plugged together? The adapters to the outside, by the settings."""

from __future__ import annotations

import random
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from autoscaler.clock import Clock
from autoscaler.controller.config_directory import ConfigDirectory
from autoscaler.decision_log import DecisionLog, JsonLinesLog
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.lease_elector import LeaseElector
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.prometheus.source import PrometheusSource
from autoscaler.settings import ControllerSettings

WRITERS = 8


@dataclass(frozen=True, slots=True)
class ControllerParts:
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


def make_parts(settings: ControllerSettings, clock: Clock) -> ControllerParts:
    """Raises CredentialsError, OSError or ValueError where a setting does not work out on this machine."""
    connection = connect(str(settings.kubeconfig) if settings.kubeconfig else None, settings.context)
    directory = ConfigDirectory(settings.config_directory) if settings.config_directory else None
    elector = None if settings.is_dry_run else _elector(settings, connection, clock)
    return ControllerParts(
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
