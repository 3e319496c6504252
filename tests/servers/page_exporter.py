"""How does a test serve many /metrics pages at once, and let one of them die, hang or change?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal

# A text, a function that writes it anew at each scrape, or a way of failing.
Page = str | Callable[[], str] | Literal["dead", "hanging", "error"]


class PageExporter:
    """One server for all pages, each at its own path; a context manager. `pages` may be changed at any time."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.address = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                page = exporter.pages.get(self.path.removeprefix("/"))
                if page is None or page == "dead":
                    self.close_connection = True
                    return
                if page == "hanging":
                    time.sleep(5)
                status, text = (500, "no") if page == "error" else (200, page if isinstance(page, str) else page())
                body = text.encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    self.close_connection = True  # the scrape timed out

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler

    def scrape_targets(self, namespace: str, pod: str, **labels: str) -> dict[str, Any]:
        """An entry of `static_configs` that scrapes the page named like the pod, with the pod's labels."""
        return {
            "targets": [self.address],
            "labels": {"__metrics_path__": f"/{pod}", "namespace": namespace, "pod": pod, **labels},
        }

    def __enter__(self) -> PageExporter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
