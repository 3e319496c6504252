"""Another provider of external metrics, over TLS: it serves what a test gives it, and can be slow, wrong or silent."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

GROUP = "external.metrics.k8s.io"
ROOT = f"/apis/{GROUP}/v1beta1"


@dataclass(frozen=True)
class Received:
    """One request as it came; `peer` is the common name of the client certificate, "" without one."""

    path: str
    query: Mapping[str, list[str]]
    headers: tuple[tuple[str, str], ...]
    peer: str

    def header(self, name: str) -> list[str]:
        """All values of a header."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


@dataclass
class Behaviour:
    """How it answers from now on."""

    values: dict[tuple[str, str], str] = field(default_factory=dict)  # (namespace, metric) -> quantity
    status: int | None = None  # for every metric, instead of a value
    is_silent: bool = False  # takes the request and says nothing until it is told otherwise, or ends


class MetricsProvider:
    """A context manager on loopback."""

    def __init__(self, certificate: tuple[Path, Path], client_authority: Path | None = None) -> None:
        self.behaviour = Behaviour()
        self.requests: list[Received] = []
        self._closing = threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if client_authority is not None:
            context.load_verify_locations(client_authority)
            context.verify_mode = ssl.CERT_OPTIONAL
        self._server = _Server(("127.0.0.1", 0), self._handler())
        # The handshake comes with the first read, in the connection's own thread: a slow client holds nobody else.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> MetricsProvider:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def metric_requests(self) -> list[Received]:
        """The requests that were not for discovery."""
        return [request for request in self.requests if "/namespaces/" in request.path]

    def wait_while_silent(self) -> bool:
        """False where the end came first."""
        while self.behaviour.is_silent:
            if self._closing.wait(0.05):
                return False
        return True

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                received = Received(
                    unquote(parts.path), parse_qs(parts.query), tuple(self.headers.items()), _common_name(self.request)
                )
                provider.requests.append(received)
                if not provider.wait_while_silent():
                    self.close_connection = True
                    return
                code, document = answer(provider.behaviour, received.path)
                body = json.dumps(document).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: Any) -> None:
        """A client that goes away, or whose certificate is not accepted, is nothing to report."""


def answer(behaviour: Behaviour, path: str) -> tuple[int, dict[str, Any]]:
    """Code and document for a path."""
    if path == ROOT:
        names = sorted({metric for _, metric in behaviour.values})
        return 200, resource_list(*names)
    namespace, _, metric = path.removeprefix(f"{ROOT}/namespaces/").partition("/")
    if behaviour.status is not None:
        return behaviour.status, status(behaviour.status, "the backend is broken")
    value = behaviour.values.get((namespace, metric))
    if value is None:
        return 404, status(404, f"the other provider has no {metric}")
    item = {"metricName": metric, "metricLabels": {}, "timestamp": "2026-11-30T02:00:00Z", "value": value}
    kind = {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}}
    return 200, {**kind, "items": [item]}


def resource_list(*names: str) -> dict[str, Any]:
    """Discovery that lists each metric, as some providers do."""
    resources = [
        {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]}
        for name in names
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": resources}


def status(code: int, message: str) -> dict[str, Any]:
    """A metav1.Status."""
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}


def _common_name(connection: ssl.SSLSocket) -> str:
    certificate = connection.getpeercert() or {}
    subject = certificate.get("subject", ())
    return next((value for part in subject for key, value in part if key == "commonName"), "")
