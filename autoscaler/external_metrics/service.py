"""The metrics API as one part that is started and stopped: server, guard, certificate, trust and other provider."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry, Counter

from autoscaler.clock import Clock
from autoscaler.external_metrics.app import add_health, create_app
from autoscaler.external_metrics.certificate_source import CertificateFiles, OwnCertificate
from autoscaler.external_metrics.custom_metrics import CUSTOM_METRICS, add_custom_metrics
from autoscaler.external_metrics.discovery import Groups
from autoscaler.external_metrics.guard import MAXIMUM_REVIEWS_AT_ONCE, Guard
from autoscaler.external_metrics.other_metrics import OtherMetrics
from autoscaler.external_metrics.reviews import Reviews
from autoscaler.external_metrics.server import SecureServer
from autoscaler.external_metrics.serving_certificate import new_material
from autoscaler.external_metrics.settings import MetricsApiSettings
from autoscaler.external_metrics.tls import RenewedContext
from autoscaler.external_metrics.trust_keeper import TrustKeeper
from autoscaler.external_metrics.values import MetricSource
from autoscaler.external_metrics.wire import EXTERNAL_METRICS
from autoscaler.kubernetes_gateway.connection import ApiConnection

OWN_GROUPS: Groups = (EXTERNAL_METRICS, CUSTOM_METRICS)
API_SERVICES = tuple(f"{version}.{group.name}" for group in OWN_GROUPS for version in group.versions)


class MetricsApi:
    """Listens from the start, so that nothing that waits for discovery waits for us."""

    def __init__(
        self,
        settings: MetricsApiSettings,
        bound: socket.socket,
        connection: ApiConnection,
        source: MetricSource,
        may_write: Callable[[], bool],
        clock: Clock,
        registry: CollectorRegistry,
    ) -> None:
        """Takes a bound and listening socket. `may_write`: whether this process makes and renews the certificate."""
        # Until the certificate is known: good for a handshake, and verified by nobody.
        context = RenewedContext(new_material(settings.names, clock.now_seconds()).pair)
        self._executor = ThreadPoolExecutor(MAXIMUM_REVIEWS_AT_ONCE, thread_name_prefix="reviews")
        other = OtherMetrics(settings.forward_to, OWN_GROUPS, clock, registry) if settings.forward_to else None
        self._other = other
        app = create_app(source, clock, other.groups if other else lambda: OWN_GROUPS, other.forward if other else None)
        add_custom_metrics(app, source, clock)
        add_health(app)
        reviews = Reviews(connection, clock)
        answers = Counter(
            "tokenscaler_metrics_api_answers", "Answers of the metrics API by HTTP status.", ["code"], registry=registry
        )
        guard = Guard(
            app,
            lambda: self._keeper.trust,
            reviews,
            self._executor,
            clock,
            count_answer=lambda status: answers.labels(status).inc(),
        )
        self._server = SecureServer(guard, context, bound)
        files = settings.certificate_directory
        certificate = (
            CertificateFiles(files) if files else OwnCertificate(connection, settings, may_write, clock, API_SERVICES)
        )
        self._keeper = TrustKeeper(connection, certificate, context, self._server.begin_anew)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._server.port

    def not_ready_because(self) -> str | None:
        """Why nobody can be answered yet; None when all is there."""
        return self._keeper.not_ready_because()

    def start(self) -> None:
        """Begins to serve, and to look after certificate and trust."""
        self._server.start()
        self._keeper.start()
        if self._other:
            self._other.start()

    def stop(self) -> None:
        """Lets running answers finish, then ends. Also right where it was never started."""
        self._keeper.stop()
        self._server.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._other:
            self._other.stop()
