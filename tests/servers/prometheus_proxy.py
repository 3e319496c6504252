"""How does a real Prometheus answer badly? A proxy before it passes questions on, unless told to spoil the answers."""

from __future__ import annotations

import enum
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import httpx2

_HTML = b"<!DOCTYPE html><html><body><h1>Sign in</h1></body></html>"


class Spoilt(enum.Enum):
    """What becomes of the answers."""

    UNAVAILABLE = "503, as from a load balancer without a backend"
    REJECTED = "422, as for a query that is too expensive"
    HTML = "200 with a login page"
    WARNINGS = "200 with every second series and a warning, as from Thanos with a store missing"


def _of_one_store(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # By the pod, so that the same series are missing in every answer; what has no pod stays.
    pods = sorted({row["metric"]["pod"] for row in rows if "pod" in row["metric"]})
    return [row for row in rows if "pod" not in row["metric"] or pods.index(row["metric"]["pod"]) % 2 == 0]


class PrometheusProxy:
    """An HTTP proxy before one Prometheus; a context manager. `url` is what the controller is given."""

    def __init__(self, prometheus_url: str):
        self._target = prometheus_url
        self.spoilt: Spoilt | None = None
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                proxy._pass_on(self)

            def do_GET(self) -> None:
                proxy._pass_on(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        # More callers at once than the 5 that the standard library lets wait: who is left out tries again after 1 s.
        self._server.socket.listen(128)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> PrometheusProxy:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def _pass_on(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
        status, answer, content_type = self._answer(request, body)
        try:
            request.send_response(status)
            request.send_header("Content-Type", content_type)
            request.send_header("Content-Length", str(len(answer)))
            request.end_headers()
            request.wfile.write(answer)
        except OSError:
            request.close_connection = True

    def _answer(self, request: BaseHTTPRequestHandler, body: bytes) -> tuple[int, bytes, str]:
        match self.spoilt:
            case Spoilt.UNAVAILABLE:
                return 503, b"no backend\n", "text/plain"
            case Spoilt.REJECTED:
                error = {"status": "error", "errorType": "execution", "error": "query processing would load too much"}
                return 422, json.dumps(error).encode(), "application/json"
            case Spoilt.HTML:
                return 200, _HTML, "text/html"
        headers = {"Content-Type": request.headers.get("Content-Type", "")}
        try:
            answer = httpx2.request(request.command, self._target + request.path, content=body, headers=headers)
        except httpx2.TransportError:
            return 502, b"Prometheus is down\n", "text/plain"
        content = answer.content
        if self.spoilt is Spoilt.WARNINGS and answer.status_code == 200:
            document = answer.json() | {"warnings": ["store 10.0.0.7:10901: no answer within 2s"]}
            if document["data"]["resultType"] == "vector":
                document["data"]["result"] = _of_one_store(document["data"]["result"])
            content = json.dumps(document).encode()
        return answer.status_code, content, answer.headers.get("content-type", "application/json")
