"""An API server on loopback that keeps objects in memory: list, watch, patch, scale, leases, and faults on demand.

It follows the real server in what a client can see of it: one counter of resourceVersions, paged lists, bookmarks
shortly before a watch ends, 410 for versions that were compacted away, 409 for a stale resourceVersion, field
managers, `/status` and `/scale`. The contract tests in tests/cluster run the same client against the real one.
"""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Document = dict[str, Any]
Key = tuple[str, str]

BOOKMARK_BEFORE_END_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind that the server knows."""

    group_version: str
    plural: str
    kind: str
    is_namespaced: bool = True
    has_scale: bool = False

    @property
    def root(self) -> str:
        return f"/api/{self.group_version}" if "/" not in self.group_version else f"/apis/{self.group_version}"


BUILT_IN = (
    Resource("v1", "pods", "Pod"),
    Resource("v1", "nodes", "Node", is_namespaced=False),
    Resource("apps/v1", "deployments", "Deployment", has_scale=True),
    Resource("apps/v1", "statefulsets", "StatefulSet", has_scale=True),
    Resource("apps/v1", "daemonsets", "DaemonSet"),
    Resource("autoscaling/v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler"),
    Resource("coordination.k8s.io/v1", "leases", "Lease"),
    Resource("events.k8s.io/v1", "events", "Event"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    query: dict[str, str]
    body: Document | None
    headers: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def is_list(self) -> bool:
        return self.method == "GET" and not self.is_watch


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server sends instead of the right answer; `hang_seconds` first, a None status drops the connection."""

    status: int | None
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hang_seconds: float = 0.0
    is_unfinished: bool = False  # the body is announced longer than it is, then the connection breaks


@dataclass(slots=True)
class _Fault:
    matches: Callable[[Request], bool]
    answer: Answer
    times: int


@dataclass(frozen=True, slots=True)
class _Event:
    version: int
    type: str
    object: Document


class FakeApiServer:
    """The server; `start` before use, `stop` at the end, `start` again for a restart on the same port."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.resources: dict[tuple[str, str], Resource] = {}
        self._objects: dict[Resource, dict[Key, Document]] = {}
        self._events: dict[Resource, list[_Event]] = {}
        self._oldest: dict[Resource, int] = {}
        self._version = 100
        self._faults: list[_Fault] = []
        self._raw_lines: dict[Resource, list[bytes]] = {}
        self._watch_generation = 0
        self._changed = threading.Condition()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.port = 0
        for resource in BUILT_IN:
            self.add_resource(resource)

    # --- the server as a process

    def start(self) -> FakeApiServer:
        self._server = _Server(("127.0.0.1", self.port), self)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.break_connections()
        self.close_watches()
        self._server.server_close()
        self._thread.join()
        self._server = None

    def __enter__(self) -> FakeApiServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def write_kubeconfig(self, folder: Path) -> str:
        """Path of a kubeconfig file for this server."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "fake", "cluster": {"server": self.url}}],
            "users": [{"name": "tester", "user": {"token": "secret"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "tester"}}],
            "current-context": "fake",
        }
        path = folder / "kubeconfig.json"
        path.write_text(json.dumps(config))
        return str(path)

    # --- what is in it

    def add_resource(self, resource: Resource) -> None:
        """Installs a kind, as a CRD does."""
        with self._changed:
            self.resources[(resource.group_version, resource.plural)] = resource
            self._objects.setdefault(resource, {})
            self._events.setdefault(resource, [])
            self._oldest.setdefault(resource, self._version)

    def remove_resource(self, resource: Resource) -> None:
        with self._changed:
            self.resources.pop((resource.group_version, resource.plural), None)
            self._objects.pop(resource, None)
            self._watch_generation += 1
            self._changed.notify_all()

    def put(self, plural: str, document: Document) -> Document:
        """Creates or replaces an object, as somebody else would, and gives it as stored."""
        resource = self._resource_named(plural)
        with self._changed:
            return self._store(resource, copy.deepcopy(document))

    def get(self, plural: str, name: str, namespace: str = "inference") -> Document:
        resource = self._resource_named(plural)
        key = (namespace if resource.is_namespaced else "", name)
        with self._changed:
            return copy.deepcopy(self._objects[resource][key])

    def all(self, plural: str) -> list[Document]:
        with self._changed:
            return copy.deepcopy(list(self._objects[self._resource_named(plural)].values()))

    def delete(self, plural: str, name: str, namespace: str = "inference") -> None:
        resource = self._resource_named(plural)
        key = (namespace if resource.is_namespaced else "", name)
        with self._changed:
            self._remove(resource, key)

    # --- what goes wrong

    def compact(self) -> None:
        """Forgets all past events and ends all watches: resuming gives 410."""
        with self._changed:
            self._version += 1
            for resource in self._oldest:
                self._oldest[resource] = self._version
                self._events[resource] = []
        self.close_watches()

    def close_watches(self) -> None:
        """Ends every open watch without a bookmark."""
        with self._changed:
            self._watch_generation += 1
            self._changed.notify_all()

    def send_line(self, plural: str, line: bytes) -> None:
        """Sends a raw line into every open watch of a kind."""
        with self._changed:
            self._raw_lines.setdefault(self._resource_named(plural), []).append(line)
            self._changed.notify_all()

    def fail(self, matches: Callable[[Request], bool], answer: Answer, times: int = 1) -> None:
        """Answers the next `times` matching requests wrongly."""
        self._faults.append(_Fault(matches, answer, times))

    def requests_of(self, matches: Callable[[Request], bool]) -> list[Request]:
        return [request for request in tuple(self.requests) if matches(request)]

    # --- inside

    def _resource_named(self, plural: str) -> Resource:
        return next(resource for resource in self._objects if resource.plural == plural)

    def _next_version(self) -> int:
        self._version += 1
        return self._version

    def _store(self, resource: Resource, document: Document) -> Document:
        metadata = document.setdefault("metadata", {})
        metadata.setdefault("namespace", "inference") if resource.is_namespaced else None
        key = (metadata.get("namespace", ""), metadata["name"])
        old = self._objects[resource].get(key)
        version = self._next_version()
        document.setdefault("apiVersion", resource.group_version)
        document.setdefault("kind", resource.kind)
        metadata.setdefault("uid", old["metadata"]["uid"] if old else f"uid-{version}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        metadata["resourceVersion"] = str(version)
        self._objects[resource][key] = document
        self._emit(resource, _Event(version, "MODIFIED" if old else "ADDED", copy.deepcopy(document)))
        return copy.deepcopy(document)

    def _remove(self, resource: Resource, key: Key) -> None:
        document = self._objects[resource].pop(key)
        version = self._next_version()
        document["metadata"]["resourceVersion"] = str(version)
        self._emit(resource, _Event(version, "DELETED", document))

    def _emit(self, resource: Resource, event: _Event) -> None:
        self._events[resource].append(event)
        self._changed.notify_all()

    def fault_for(self, request: Request) -> Answer | None:
        for fault in self._faults:
            if fault.times > 0 and fault.matches(request):
                fault.times -= 1
                return fault.answer
        return None

    def answer(self, request: Request) -> tuple[int, Document] | Iterator[bytes]:
        """The right answer to a request: a status and a document, or the lines of a watch."""
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        group_version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
        if not rest:
            return self._discovery(group_version)
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        with self._changed:
            resource = self.resources.get((group_version, rest[0]))
            if resource is None:
                return _failure(404, "NotFound", "the server could not find the requested resource")
            if len(rest) == 1:
                return self._collection(request, resource, namespace)
            return self._single(request, resource, (namespace, rest[1]), rest[2] if len(rest) > 2 else "")

    def _discovery(self, group_version: str) -> tuple[int, Document]:
        known = [resource for (version, _), resource in self.resources.items() if version == group_version]
        if not known:
            return _failure(404, "NotFound", f"group version {group_version} not found")
        entries: list[Document] = []
        for resource in known:
            entry = {"name": resource.plural, "kind": resource.kind, "namespaced": resource.is_namespaced}
            entries.append(entry)
            if resource.has_scale:
                scale = {"name": f"{resource.plural}/scale", "kind": "Scale", "group": "autoscaling", "version": "v1"}
                entries.append(scale | {"namespaced": True})
        return 200, {"kind": "APIResourceList", "groupVersion": group_version, "resources": entries}

    def _collection(
        self, request: Request, resource: Resource, namespace: str
    ) -> tuple[int, Document] | Iterator[bytes]:
        if request.method == "POST":
            document = copy.deepcopy(request.body or {})
            key = (document.setdefault("metadata", {}).get("namespace", namespace), document["metadata"].get("name"))
            if key in self._objects[resource]:
                return _failure(409, "AlreadyExists", f"{resource.plural} {key[1]!r} already exists")
            return 201, self._store(resource, document)
        if not request.is_watch:
            return self._list(request, resource, namespace)
        version = int(request.query.get("resourceVersion") or self._version)
        if version < self._oldest[resource]:
            return _failure(410, "Expired", f"too old resource version: {version} ({self._oldest[resource]})")
        return self._watch(request, resource, namespace, version)

    def _list(self, request: Request, resource: Resource, namespace: str) -> tuple[int, Document]:
        found = [
            document
            for key, document in sorted(self._objects[resource].items())
            if not namespace or key[0] == namespace
        ]
        version, offset = str(self._version), 0
        if token := request.query.get("continue"):
            version, _, position = token.partition(":")
            offset = int(position)
            if int(version) < self._oldest[resource]:
                return _failure(410, "Expired", "the provided continue parameter is too old")
        end = offset + int(request.query.get("limit", len(found) or 1))
        metadata: Document = {"resourceVersion": version}
        if end < len(found):
            metadata["continue"] = f"{version}:{end}"
        return 200, {"kind": "List", "metadata": metadata, "items": copy.deepcopy(found[offset:end])}

    def _watch(self, request: Request, resource: Resource, namespace: str, version: int) -> Iterator[bytes]:
        ends_at = time.monotonic() + float(request.query.get("timeoutSeconds", 300))
        generation = self._watch_generation
        raw_sent = len(self._raw_lines.get(resource, []))

        def lines() -> Iterator[bytes]:
            nonlocal version, raw_sent
            is_bookmarked = request.query.get("allowWatchBookmarks") != "true"
            while True:
                with self._changed:
                    if generation != self._watch_generation:
                        return
                    news = [event for event in self._events.get(resource, []) if event.version > version]
                    raw = self._raw_lines.get(resource, [])[raw_sent:]
                    left = ends_at - time.monotonic()
                    if not news and not raw and left > (0 if is_bookmarked else BOOKMARK_BEFORE_END_SECONDS):
                        self._changed.wait(min(left, 0.1))
                        continue
                for event in news:
                    version = event.version
                    if not namespace or event.object["metadata"].get("namespace") == namespace:
                        yield json.dumps({"type": event.type, "object": event.object}).encode() + b"\n"
                for line in raw:
                    raw_sent += 1
                    yield line + b"\n"
                if not news and not raw:
                    if is_bookmarked and left <= 0:
                        return
                    is_bookmarked = True
                    yield json.dumps(self._bookmark(resource)).encode() + b"\n"

        return lines()

    def _bookmark(self, resource: Resource) -> Document:
        metadata = {"resourceVersion": str(self._version), "creationTimestamp": None}
        return {"type": "BOOKMARK", "object": {"kind": resource.kind, "metadata": metadata}}

    def _single(self, request: Request, resource: Resource, key: Key, subresource: str) -> tuple[int, Document]:
        document = self._objects[resource].get(key)
        if document is None or (subresource == "scale" and not resource.has_scale):
            return _failure(404, "NotFound", f'{resource.plural} "{key[1]}" not found')
        if request.method == "GET":
            return 200, _scale_of(document) if subresource == "scale" else copy.deepcopy(document)
        if request.method == "DELETE":
            self._remove(resource, key)
            return 200, {"kind": "Status", "status": "Success"}
        body = request.body or {}
        expected = body.get("metadata", {}).get("resourceVersion")
        if expected is not None and expected != document["metadata"]["resourceVersion"]:
            return _failure(409, "Conflict", f'Operation cannot be fulfilled on {resource.plural} "{key[1]}"')
        changed = copy.deepcopy(document)
        if request.method == "PUT":
            changed = copy.deepcopy(body) | {"metadata": body["metadata"] | {"uid": document["metadata"]["uid"]}}
        elif subresource == "scale":
            changed.setdefault("spec", {})["replicas"] = body["spec"]["replicas"]
            _take_replicas(changed, request.query.get("fieldManager", "unknown"))
        elif subresource == "status":
            changed["status"] = _merged(changed.get("status"), body.get("status"))
        else:
            changed = _merged(changed, body)
        stored = self._store(resource, changed)
        return 200, _scale_of(stored) if subresource == "scale" else stored


def _scale_of(document: Document) -> Document:
    labels = document.get("spec", {}).get("selector", {}).get("matchLabels", {})
    metadata = document["metadata"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: metadata[key] for key in ("name", "namespace", "uid", "resourceVersion")},
        "spec": {"replicas": document.get("spec", {}).get("replicas", 0)},
        "status": {
            "replicas": document.get("status", {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in labels.items()),
        },
    }


def _take_replicas(document: Document, manager: str) -> None:
    """Makes `manager` the owner of spec.replicas, as an update that changes the value does."""
    others = [
        entry
        for entry in document["metadata"].get("managedFields", [])
        if "f:replicas" not in entry.get("fieldsV1", {}).get("f:spec", {})
    ]
    entry = {
        "manager": manager,
        "operation": "Update",
        "subresource": "scale",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "fieldsV1": {"f:spec": {"f:replicas": {}}},
    }
    document["metadata"]["managedFields"] = [*others, entry]


def _merged(document: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _failure(code: int, reason: str, message: str) -> tuple[int, Document]:
    return code, {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": code}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128  # more callers at once than 5 must not have to try again after 1 s

    def __init__(self, address: tuple[str, int], fake: FakeApiServer) -> None:
        super().__init__(address, _Handler)
        self.fake = fake
        self._open: set[socket] = set()

    def get_request(self) -> tuple[socket, Any]:
        connection, address = super().get_request()
        self._open.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def break_connections(self) -> None:
        for connection in tuple(self._open):
            try:
                connection.shutdown(SHUT_RDWR)
            except OSError:
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: apart, the client's delayed acknowledgement costs 40 ms a request
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        request = Request(self.command, parts.path, query, body, dict(self.headers.items()))
        fake = self.server.fake
        fake.requests.append(request)
        wrong = fake.fault_for(request)
        if wrong is not None:
            self._answer_wrongly(wrong)
            return
        answer = fake.answer(request)
        if isinstance(answer, tuple):
            self._send(answer[0], json.dumps(answer[1]).encode(), {})
        else:
            self._stream(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815 - the names that http.server calls

    def _answer_wrongly(self, answer: Answer) -> None:
        if answer.hang_seconds:
            time.sleep(answer.hang_seconds)
        if answer.status is None:
            self.close_connection = True
            return
        self._send(answer.status, answer.body, answer.headers, 1000 if answer.is_unfinished else 0)
        if answer.is_unfinished:
            self.close_connection = True

    def _send(self, status: int, body: bytes, headers: dict[str, str], missing_bytes: int = 0) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + missing_bytes))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, lines: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for line in lines:
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
