"""How does a test serve an API group of its own behind the API server?

The server speaks TLS on loopback. The aggregator finds it by a Service of type ExternalName and verifies its
certificate for the Service's name in the cluster.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.cluster.harness.control_plane import ControlPlane
from tests.fakes.certificates import CertificateAuthority
from tests.servers.process import wait_until

Document = dict[str, Any]

NAMESPACE, SERVICE = "default", "aggregated-by-a-test"

# (method, the path below /apis/<group>/<version>/ as parts, the body) -> (status, document). Each request has a thread
# of its own, and the asker waits for as long as it takes.
Respond = Callable[[str, tuple[str, ...], Document | None], tuple[int, Document]]


class AggregatedApi:
    """Serves API groups ("external.metrics.k8s.io/v1beta1"), each by its own function; a context manager."""

    def __init__(self, directory: Path, groups: Mapping[str, Respond]) -> None:
        self._groups = groups
        self._authority = CertificateAuthority()
        names = (f"{SERVICE}.{NAMESPACE}.svc",)
        certificate, key = self._authority.issue("aggregated", directory / "aggregated", names)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        # The handshake is left to the connection's own thread: who only connects must not keep the others waiting.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def register(self, control_plane: ControlPlane) -> None:
        """Makes the API server send the groups' requests here; returns when it does."""
        port = self._server.server_address[1]
        service = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        metadata = {"name": SERVICE, "namespace": NAMESPACE}
        control_plane.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service})
        for group_version in self._groups:
            group, version = group_version.split("/")
            spec = {
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
                "caBundle": base64.b64encode(self._authority.certificate_text.encode()).decode(),
            }
            name = f"{version}.{group}"
            metadata = {"name": name}
            kind = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}
            control_plane.apply({**kind, "metadata": metadata, "spec": spec})
            path = f"/apis/apiregistration.k8s.io/v1/apiservices/{name}"
            wait_until(lambda path=path: _is_available(control_plane.api.get(path)), f"{name} is available", 60)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        groups = self._groups

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._serve()

            def do_PUT(self) -> None:
                self._serve()

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                parts = tuple(part for part in self.path.partition("?")[0].split("/") if part)
                respond = groups.get("/".join(parts[1:3]))
                if parts[:1] != ("apis",) or respond is None:
                    self._send(404, not_found(self.path))
                else:
                    self._send(*respond(self.command, parts[3:], json.loads(body) if body else None))

            def _send(self, status: int, document: Document) -> None:
                text = json.dumps(document).encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True  # the asker has gone

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> AggregatedApi:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


def not_found(what: str) -> Document:
    """The answer's document for a status of 404."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"{what} not found",
        "reason": "NotFound",
        "code": 404,
    }


def _is_available(service: Document) -> bool:
    conditions = service.get("status", {}).get("conditions", [])
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)
