"""How do ten thousand pods get into Prometheus on two cores? By one target that says what all their pages would."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

# Labels are the page's own (`honor_labels`), so the series are those of ten thousand single targets. Latency
# histograms are left out: their ten thousand times twenty buckets are Prometheus' work, not the controller's.
GAUGES = {"vllm:num_requests_running": 8.0, "vllm:num_requests_waiting": 4.0, "vllm:kv_cache_usage_perc": 0.5}
COUNTERS_PER_SECOND = {
    "vllm:prompt_tokens_total": 1000.0,
    "vllm:generation_tokens_total": 200.0,
    "vllm:num_preemptions_total": 0.0,
    "vllm:prefix_cache_queries_total": 1000.0,
    "vllm:prefix_cache_hits_total": 250.0,
    "vllm:request_prompt_tokens_sum": 1000.0,
    "vllm:request_prompt_tokens_count": 1.0,
    "vllm:request_generation_tokens_sum": 200.0,
    "vllm:request_generation_tokens_count": 1.0,
}


class ManyPages:
    """One page for all pods, each pod with the same steady load; a context manager."""

    def __init__(self, pods: Iterable[tuple[str, str]]):
        self._labels = [f'engine="0",model_name="llama",namespace="{namespace}",pod="{pod}"' for namespace, pod in pods]
        self._started = time.monotonic()
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages._page().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def scrape_config(self) -> dict[str, Any]:
        """For prometheus.yml."""
        targets = [{"targets": [f"127.0.0.1:{self._server.server_port}"]}]
        return {"job_name": "vllm", "honor_labels": True, "static_configs": targets}

    def _page(self) -> str:
        age = time.monotonic() - self._started
        lines = []
        for name, value in GAUGES.items():
            lines += [f"{name}{{{labels}}} {value}" for labels in self._labels]
        for name, rate in COUNTERS_PER_SECOND.items():
            lines += [f"{name}{{{labels}}} {rate * age:.0f}" for labels in self._labels]
        success, info = "vllm:request_success_total", "vllm:cache_config_info"
        lines += [f'{success}{{{labels},finished_reason="stop"}} {age:.0f}' for labels in self._labels]
        lines += [f'{info}{{block_size="16",num_gpu_blocks="27000",{labels}}} 1' for labels in self._labels]
        return "\n".join(lines) + "\n"

    def __enter__(self) -> ManyPages:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(30)
