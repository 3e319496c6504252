"""How does every pod of a pool get a /metrics page of its own, with the load and the faults that a test states?

One HTTP server on loopback serves them all: `/pods/NAMESPACE/POD/metrics` a page, `/gateway` that of the gateway
before them, `/targets` the list of them for Prometheus' `http_sd_configs`.
"""

from __future__ import annotations

import enum
import itertools
import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.servers.vllm_page import KV_CAPACITY_TOKENS, Counters, PodLoad, render_page

# Writes a pod's page from what it does and what it has done.
Renderer = Callable[[PodLoad, Counters], str]


class Fault(enum.Enum):
    """How an exporter misbehaves."""

    DEAD = "the connection is closed without an answer"
    HANGS = "the connection stays open without an answer"
    NAN = "every gauge says NaN"
    RENAMED = "vllm:num_requests_waiting is called vllm:requests_waiting"
    EMPTY = "200 with an empty page"


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """What a whole pool has to do; it is shared out evenly over the pods that serve.

    All waiting requests are with the pod that has served longest: pods are scraped one after the other, so that a step
    on many pages is seen piecemeal, and a request that moves may be seen twice. `queue_on_every_pod` shares them out,
    for tests of what part of a pool tells.
    """

    running: int = 0
    waiting: int = 0
    queue_on_every_pod: bool = False
    tokens_in_flight: float = 0.0
    prompt_tokens_per_second: float = 0.0
    generation_tokens_per_second: float = 0.0
    requests_per_second: float = 0.0
    time_to_first_token_seconds: float = 0.05
    inter_token_latency_seconds: float = 0.02
    request_seconds: float = 0.0  # from a request's arrival to its last token, for what is lost with a pod

    def share(self, index: int, pods: int) -> PodLoad:
        """The part of the index-th of so many pods; whole requests, the first pods take the remainder."""

        def whole(total: int) -> int:
            return total // pods + (1 if index < total % pods else 0)

        return PodLoad(
            running=whole(self.running),
            waiting=whole(self.waiting) if self.queue_on_every_pod else self.waiting if index == 0 else 0,
            kv_cache_usage=min(1.0, self.tokens_in_flight / pods / KV_CAPACITY_TOKENS),
            prompt_tokens_per_second=self.prompt_tokens_per_second / pods,
            generation_tokens_per_second=self.generation_tokens_per_second / pods,
            requests_per_second=self.requests_per_second / pods,
            time_to_first_token_seconds=self.time_to_first_token_seconds,
            inter_token_latency_seconds=self.inter_token_latency_seconds,
        )


@dataclass(frozen=True, slots=True)
class ExportedPod:
    """A pod as its exporter needs to know it; a pod that does not serve yet refuses its scrapes.

    One that is being stopped is sent no more requests, and ends those that it has as long as it is there.
    """

    namespace: str
    pool: str
    name: str
    serving: bool
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class LostRequests:
    """What a pod took with it: the requests that it held when it was sent its last one, and those never answered."""

    pod: str
    held: int
    lost: int


@dataclass(slots=True)
class _Exporter:
    pod: ExportedPod
    number: int  # in the order in which they came
    counters: Counters
    advanced_at_seconds: float
    own_load: PodLoad | None = None
    fault: Fault | None = None
    stopping_since_seconds: float | None = None
    held_requests: int = 0  # when it began to stop


class VllmExporters:
    """The exporters of any number of pools; a context manager. All methods may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loads: dict[tuple[str, str], PoolLoad] = {}
        self._exporters: dict[tuple[str, str], _Exporter] = {}
        self._gateway_pending: dict[str, int] = {}
        self._lost: dict[str, list[LostRequests]] = {}
        self._renderers: dict[str, Renderer] = {}
        self._numbers = itertools.count()
        self._released = threading.Event()
        exporters = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                exporters._answer(self)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        # More callers at once than the 5 that the standard library lets wait: who is left out tries again after 1 s.
        self._server.socket.listen(128)
        self.address = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.address}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> VllmExporters:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def scrape_config(self, job_name: str = "vllm") -> dict[str, Any]:
        """For prometheus.yml: every page, with labels `namespace` and `pod`, found anew every second."""
        return {
            "job_name": job_name,
            "http_sd_configs": [{"url": f"{self.url}/targets", "refresh_interval": "1s"}],
        }

    def set_load(self, namespace: str, pool: str, load: PoolLoad) -> None:
        """From now on the pool does this."""
        with self._lock:
            self._advance_all()
            self._loads[namespace, pool] = load

    def set_pod_load(self, namespace: str, pod: str, load: PodLoad | None) -> None:
        """One pod does this instead of its share; None gives it its share again."""
        with self._lock:
            self._advance_all()
            self._exporters[namespace, pod].own_load = load

    def set_fault(self, namespace: str, pods: Iterable[str], fault: Fault | None) -> None:
        """These pods' exporters misbehave from now on; None heals them."""
        with self._lock:
            for pod in pods:
                self._exporters[namespace, pod].fault = fault
            self._released.set()
            self._released = threading.Event()

    def set_page(self, namespace: str, render: Renderer) -> None:
        """The pods of this namespace are of another engine, whose pages are written so."""
        with self._lock:
            self._renderers[namespace] = render

    def set_gateway_pending(self, pool: str, requests: int) -> None:
        """The gateway's own page says `gateway_pending_requests{pool=...}` from now on."""
        with self._lock:
            self._gateway_pending[pool] = requests

    def restart(self, namespace: str, pod: str) -> None:
        """The engine in this pod starts anew: its counters are zero again."""
        with self._lock:
            exporter = self._exporters[namespace, pod]
            exporter.counters = Counters(started_at_seconds=time.time())
            exporter.advanced_at_seconds = time.monotonic()

    def set_pods(self, namespace: str, pods: Iterable[ExportedPod]) -> None:
        """The pods that this namespace has now; those that were there keep their counters and faults."""
        with self._lock:
            self._advance_all()
            known = {key: item for key, item in self._exporters.items() if key[0] == namespace}
            there = tuple(pods)
            for key in known.keys() - {(namespace, pod.name) for pod in there}:
                self._lose(known[key])
            for pod in there:
                if pod.stopping and (namespace, pod.name) in known:
                    self._begin_stop(known[namespace, pod.name])
            for key in known:
                del self._exporters[key]
            for pod in there:
                key = (namespace, pod.name)
                exporter = known.get(key) or _Exporter(
                    pod, next(self._numbers), Counters(time.time()), time.monotonic()
                )
                exporter.pod = pod
                self._exporters[key] = exporter

    def lost(self, namespace: str) -> tuple[LostRequests, ...]:
        """What was lost with each pod that served and has gone since the beginning, in that order."""
        with self._lock:
            return tuple(self._lost.get(namespace, ()))

    def _begin_stop(self, exporter: _Exporter) -> None:
        if exporter.stopping_since_seconds is None and exporter.pod.serving:
            load = self._load_of(exporter)
            exporter.stopping_since_seconds = time.monotonic()
            exporter.held_requests = load.running + load.waiting

    def _lose(self, exporter: _Exporter) -> None:
        """A pod is gone. Its requests came evenly over the time that each takes: the oldest have been answered."""
        if not exporter.pod.serving:
            return
        self._begin_stop(exporter)  # one that went at once
        assert exporter.stopping_since_seconds is not None
        pool = self._loads.get((exporter.pod.namespace, exporter.pod.pool), PoolLoad())
        stopped_for_seconds = time.monotonic() - exporter.stopping_since_seconds
        unanswered = max(0.0, 1 - stopped_for_seconds / pool.request_seconds) if pool.request_seconds else 0.0
        lost = LostRequests(exporter.pod.name, exporter.held_requests, math.ceil(exporter.held_requests * unanswered))
        self._lost.setdefault(exporter.pod.namespace, []).append(lost)

    def pods(self, namespace: str) -> tuple[ExportedPod, ...]:
        """The pods known in a namespace, by name."""
        with self._lock:
            return tuple(item.pod for key, item in sorted(self._exporters.items()) if key[0] == namespace)

    def _load_of(self, exporter: _Exporter) -> PodLoad:
        if exporter.own_load is not None:
            return exporter.own_load
        pod = exporter.pod
        pool = self._loads.get((pod.namespace, pod.pool))
        others = [
            item
            for item in self._exporters.values()
            if item.pod.serving
            and item.own_load is None
            and (item.pod.namespace, item.pod.pool) == (pod.namespace, pod.pool)
        ]
        serving = [item.pod.name for item in sorted(others, key=lambda item: item.number)]
        if pool is None or pod.name not in serving:
            return PodLoad()
        return pool.share(serving.index(pod.name), len(serving))

    def _advance_all(self) -> None:
        # Before anything changes, counters take in what was done until now under the old load.
        for exporter in self._exporters.values():
            self._advance(exporter)

    def _advance(self, exporter: _Exporter) -> PodLoad:
        now = time.monotonic()
        load = self._load_of(exporter)
        if exporter.pod.serving:
            exporter.counters.advance(load, now - exporter.advanced_at_seconds)
        exporter.advanced_at_seconds = now
        return load

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        if request.path == "/targets":
            self._reply(request, 200, json.dumps(self._targets()), "application/json")
            return
        if request.path == "/gateway":
            with self._lock:
                lines = [f'gateway_pending_requests{{pool="{pool}"}} {n}' for pool, n in self._gateway_pending.items()]
            self._reply(request, 200, "\n".join(["# TYPE gateway_pending_requests gauge", *lines, ""]), "text/plain")
            return
        match = re.fullmatch(r"/pods/([^/]+)/([^/]+)/metrics", request.path)
        page, fault = self._page(match[1], match[2]) if match else (None, None)
        if fault is Fault.HANGS:
            self._released.wait(60)
            fault = Fault.DEAD
        if fault is Fault.DEAD:
            request.close_connection = True
        elif page is None:
            self._reply(request, 404, "no such pod\n", "text/plain")
        else:
            self._reply(request, 200, page, "text/plain; version=0.0.4; charset=utf-8")

    def _page(self, namespace: str, pod: str) -> tuple[str | None, Fault | None]:
        with self._lock:
            exporter = self._exporters.get((namespace, pod))
            if exporter is None:
                return None, None
            if not exporter.pod.serving:
                return None, Fault.DEAD
            load = self._advance(exporter)
            counters, fault = replace(exporter.counters), exporter.fault
            render = self._renderers.get(namespace, render_page)
        if fault is Fault.EMPTY:
            return "", fault
        page = render(load, counters)
        if fault is Fault.NAN:
            page = re.sub(r"^(vllm:(?:num_requests|kv_cache)\S* )\S+$", r"\1NaN", page, flags=re.MULTILINE)
        if fault is Fault.RENAMED:
            page = page.replace("vllm:num_requests_waiting", "vllm:requests_waiting")
        return page, fault

    def _targets(self) -> list[Mapping[str, Any]]:
        with self._lock:
            pods = [exporter.pod for _, exporter in sorted(self._exporters.items())]
        gateway = {"targets": [self.address], "labels": {"__metrics_path__": "/gateway", "instance": "gateway"}}
        targets = [
            {
                "targets": [self.address],
                "labels": {
                    "__metrics_path__": f"/pods/{pod.namespace}/{pod.name}/metrics",
                    "namespace": pod.namespace,
                    "pod": pod.name,
                    "instance": f"{pod.name}:8000",
                },
            }
            for pod in pods
        ]
        return [gateway, *targets]

    @staticmethod
    def _reply(request: BaseHTTPRequestHandler, status: int, text: str, content_type: str) -> None:
        body = text.encode()
        try:
            request.send_response(status)
            request.send_header("Content-Type", content_type)
            request.send_header("Content-Length", str(len(body)))
            request.end_headers()
            request.wfile.write(body)
        except OSError:
            request.close_connection = True  # the scraper gave up
