"""A Prometheus that answers what a test tells it to, over real HTTP: every way of answering badly included."""

from __future__ import annotations

import gzip
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

EVALUATED_AT = 1_800_000_000.0


@dataclass(frozen=True)
class Reply:
    """One HTTP answer. `delay_seconds` before it, `drip_seconds` between single bytes of its body."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    drip_seconds: float | None = None
    promised_bytes: int | None = None  # a Content-Length that is not kept


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    method: str
    path: str
    address_query: str
    form: Mapping[str, str]
    headers: Mapping[str, str]


def vector(
    rows: Sequence[tuple[Mapping[str, str], float | str]], warnings: Sequence[str] = (), at: float = EVALUATED_AT
) -> Reply:
    """A successful instant vector; numbers are written as Prometheus writes them."""
    result = [{"metric": dict(labels), "value": [at, _number(value)]} for labels, value in rows]
    document: dict[str, Any] = {"status": "success", "data": {"resultType": "vector", "result": result}}
    if warnings:
        document["warnings"] = list(warnings)
    return Reply(body=json.dumps(document).encode(), headers={"Content-Type": "application/json"})


def scalar(value: float | str, at: float = EVALUATED_AT) -> Reply:
    """A successful scalar."""
    document = {"status": "success", "data": {"resultType": "scalar", "result": [at, _number(value)]}}
    return Reply(body=json.dumps(document).encode())


def rejection(status: int, error_type: str, error: str) -> Reply:
    """Prometheus' own words for no."""
    return Reply(status, json.dumps({"status": "error", "errorType": error_type, "error": error}).encode())


def compressed(reply: Reply) -> Reply:
    """The same, as gzip."""
    return Reply(reply.status, gzip.compress(reply.body), {**reply.headers, "Content-Encoding": "gzip"})


def _number(value: float | str) -> str:
    return value if isinstance(value, str) else repr(float(value))


class FakePrometheus:
    """A context manager; `answer` gets each request's PromQL and says what to reply."""

    def __init__(self, answer: Callable[[str], Reply], tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Received] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        # More callers at once than the 5 that the standard library lets wait: who is left out tries again after 1 s.
        self._server.socket.listen(128)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if tls is not None else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                form = {name: values[0] for name, values in parse_qs(self.rfile.read(length).decode()).items()}
                parts = urlsplit(self.path)
                fake.requests.append(Received("POST", parts.path, parts.query, form, dict(self.headers)))
                self._send(fake.answer(form.get("query", "")))

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                fake.requests.append(Received("GET", parts.path, parts.query, {}, dict(self.headers)))
                self._send(fake.answer(""))

            def _send(self, reply: Reply) -> None:
                time.sleep(reply.delay_seconds)
                try:
                    self.send_response(reply.status)
                    for name, value in reply.headers.items():
                        self.send_header(name, value)
                    promised = len(reply.body) if reply.promised_bytes is None else reply.promised_bytes
                    self.send_header("Content-Length", str(promised))
                    self.end_headers()
                    if reply.drip_seconds is None:
                        self.wfile.write(reply.body)
                    else:
                        for index in range(len(reply.body)):
                            self.wfile.write(reply.body[index : index + 1])
                            time.sleep(reply.drip_seconds)
                except OSError:
                    pass  # the client has given up
                if reply.promised_bytes is not None:
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def __enter__(self) -> FakePrometheus:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
