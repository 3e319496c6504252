"""The metrics API on loopback with real TLS, everything behind it made of fakes; and a client for it."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from autoscaler.clock import Clock, ManualClock
from autoscaler.external_metrics.app import add_health, create_app
from autoscaler.external_metrics.front_proxy import FrontProxyTrust, NoTrust
from autoscaler.external_metrics.guard import Guard
from autoscaler.external_metrics.limited_protocol import Limits
from autoscaler.external_metrics.reviews import Reviews
from autoscaler.external_metrics.server import SecureServer
from autoscaler.external_metrics.serving_certificate import ServingMaterial, new_material
from autoscaler.external_metrics.tls import RenewedContext
from autoscaler.external_metrics.values import MetricSource
from tests.builders import NOW
from tests.fakes.client_certificates import ClientAuthority
from tests.fakes.metric_pools import FakePools, a_pool
from tests.fakes.reviews_api import FakeReviewsApi

NAMES = ("tokenscaler-metrics.tokenscaler-system.svc",)
FRONT_PROXY = "front-proxy-client"
A_METRIC = "/apis/external.metrics.k8s.io/v1beta1/namespaces/inference/tokenscaler-desired-replicas"
HPA_ACCOUNT = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
AS_THE_HPA = {
    "X-Remote-User": HPA_ACCOUNT,
    "X-Remote-Group": "system:authenticated",
    "Accept": "application/vnd.kubernetes.protobuf, */*",
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.content)


class ServedMetricsApi:
    """One served API; a context manager. By default one pool wants 7 replicas, and only the front proxy is known."""

    def __init__(
        self, source: MetricSource | None = None, limits: Limits | None = None, clock: Clock | None = None
    ) -> None:
        # TLS itself goes by the real time.
        self.guard_clock = ManualClock(time.time())
        self.clock = ManualClock(NOW)
        self.pools = source or FakePools(a_pool())
        self.reviews_api = FakeReviewsApi()
        self.answers: deque[int] = deque(maxlen=100)  # the statuses of the last ones
        self.authority = ClientAuthority()
        self.trust: FrontProxyTrust | NoTrust = self.trust_in(FRONT_PROXY)
        self.material: ServingMaterial = new_material(NAMES, self.guard_clock.now_seconds())
        self.context = RenewedContext(self.material.pair)
        assert self.context.look_at_clients_of(self.authority.pem) is None
        self._executor = ThreadPoolExecutor(2)
        app = create_app(self.pools, clock or self.clock)
        add_health(app)
        reviews = Reviews(self.reviews_api, self.clock)
        guard = Guard(app, lambda: self.trust, reviews, self._executor, self.guard_clock, self.answers.append)
        self.server = SecureServer(guard, self.context, socket.create_server(("127.0.0.1", 0)), limits)

    def trust_in(self, *names: str) -> FrontProxyTrust:
        """Trust in certificates of the authority with these names."""
        return FrontProxyTrust(
            self.authority.pem,
            names,
            ("X-Remote-User",),
            ("X-Remote-Uid",),
            ("X-Remote-Group",),
            ("X-Remote-Extra-",),
        )

    def __enter__(self) -> ServedMetricsApi:
        self.server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.stop()
        self._executor.shutdown()

    def connection(
        self, client: tuple[Path, Path] | None = None, *, material: ServingMaterial | None = None, name: str = NAMES[0]
    ) -> http.client.HTTPSConnection:
        """A connection that verifies the server under this name, with a client certificate where one is given."""
        context = ssl.create_default_context(cadata=(material or self.material).authority_pem)
        if client is not None:
            context.load_cert_chain(*client)
        return _Named(self.server.port, context, name)

    def get(
        self,
        path: str = A_METRIC,
        client: tuple[Path, Path] | None = None,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
    ) -> Answer:
        """One answer over a connection of its own."""
        connection = self.connection(client)
        try:
            return ask(connection, path, headers, method)
        finally:
            connection.close()


def ask(
    connection: http.client.HTTPSConnection,
    path: str = A_METRIC,
    headers: Mapping[str, str] | None = None,
    method: str = "GET",
) -> Answer:
    """One answer over an open connection."""
    connection.request(method, path, headers=dict(headers or {}))
    response = connection.getresponse()
    return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())


class _Named(http.client.HTTPSConnection):
    """Dials loopback and verifies another name, as the aggregator does."""

    def __init__(self, port: int, context: ssl.SSLContext, name: str) -> None:
        super().__init__("127.0.0.1", port, context=context, timeout=10)
        self._tls, self._verified_name = context, name

    def connect(self) -> None:
        plain = socket.create_connection((self.host, self.port), timeout=10)
        try:
            self.sock = self._tls.wrap_socket(plain, server_hostname=self._verified_name)
        except BaseException:
            plain.close()
            raise
