"""How a kind of object is kept in memory: list once, then watch, and come back gently when the watch breaks.

A watch is opened for 25-35 s at a time. The API server sends a bookmark shortly before it ends a watch, so the next
one resumes where this one stopped, without a list, also where nothing has changed for hours. Longer watches would be
cheaper by a trifle, but a quiet watch and one whose connection has silently died look alike until the server ought
to have ended it: with 35 s, plus 5 s of grace, plus a reconnect, `age_seconds` of a healthy watch never reaches 60 s,
and a dead one is noticed within 40 s even where a proxy keeps answering TCP keep-alives.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Gone, NotFound, ServerError, Throttled
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.object_store import ObjectKey, ObjectStore
from autoscaler.kubernetes_gateway.watch_stream import WatchEvent, WatchStream

PAGE_OBJECTS = 500
SHORTEST_WATCH_SECONDS = 25
LONGEST_WATCH_SECONDS = 35
GRACE_SECONDS = 5.0
# A kind that the server does not know: its CRD may be installed later, but asking often would be noise.
ABSENT_RETRY_SECONDS = 30.0
# A watch that ends sooner without having said anything is no success, or a server that closes at once is stormed.
HEALTHY_WATCH_SECONDS = 5.0

T = TypeVar("T")
_log = logging.getLogger(__name__)


class ListGate:
    """Lets only a few lists run at a time, so that many watches that must begin anew do so one after the other."""

    def __init__(self, places: int = 2) -> None:
        self._semaphore = threading.BoundedSemaphore(places)

    def __enter__(self) -> None:
        self._semaphore.acquire()

    def __exit__(self, *_: object) -> None:
        self._semaphore.release()


class Reflector(Generic[T]):
    """Keeps `store` equal to what the API server has under `path`, in a thread of its own.

    `reduce` makes of a document only what is used of it; None drops the object. `on_change` is called after the
    store has changed: once an event, and once for a whole list.
    """

    def __init__(
        self,
        connection: ApiConnection,
        path: str,
        reduce: Callable[[dict[str, Any]], T | None],
        store: ObjectStore[T],
        clock: Clock,
        backoff: Backoff,
        gate: ListGate,
        on_change: Callable[[], None] = lambda: None,
        absent_retry_seconds: float = ABSENT_RETRY_SECONDS,
        watch_seconds: Callable[[], int] | None = None,
        selection: Mapping[str, str] | None = None,
    ) -> None:
        """`selection` narrows both the list and the watch, as by a fieldSelector."""
        self.path = path
        self.store = store
        self._connection = connection
        self._reduce = reduce
        self._clock = clock
        self._backoff = backoff
        self._gate = gate
        self._on_change = on_change
        self._absent_retry_seconds = absent_retry_seconds
        self._watch_seconds = watch_seconds or self._jittered_watch_seconds
        self._selection = dict(selection or {})
        self._resource_version: str | None = None
        self._alive_at_seconds = -math.inf
        self._has_synced = False
        self._is_absent = False
        self._problem: ApiFailure | None = None
        self._stop = threading.Event()
        self._stream: WatchStream | None = None
        self._stream_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)
        self.lists = 0  # how many times the whole was read; a healthy watch stays at 1

    @property
    def has_synced(self) -> bool:
        """Whether all objects have been read once (for a kind that does not exist: whether the server said so)."""
        return self._has_synced

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know this kind (its CRD is not installed)."""
        return self._is_absent

    @property
    def problem(self) -> ApiFailure | None:
        """Why the last try failed, or None while all is well. A kind that does not exist is no problem."""
        return self._problem

    def age_seconds(self) -> float:
        """Seconds since the server was last heard on this watch (its opening, an event, a bookmark, a list).

        Infinite before the first list. Of a kind that does not exist: the time by which asking again is overdue.
        """
        age = self._clock.monotonic_seconds() - self._alive_at_seconds
        return max(0.0, age - self._absent_retry_seconds) if self._is_absent else max(0.0, age)

    def start(self) -> None:
        """Begins to list and watch."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Ends the watch and waits for its thread, at most `timeout_seconds`. What is stored stays readable."""
        self._stop.set()
        with self._stream_lock:
            if self._stream is not None:
                self._stream.close()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            failure = self._list() if self._resource_version is None else None
            if failure is None and not self._stop.is_set():
                failure = self._watch(self._resource_version or "")
            if self._stop.is_set():
                return
            self._stop.wait(self._after(failure))

    def _after(self, failure: ApiFailure | None) -> float:
        """Notes how the last try ended and gives the time to wait before the next."""
        if failure is None:
            self._problem = None
            return 0.0
        if isinstance(failure, NotFound):
            self._become_absent()
            return self._absent_retry_seconds * (1.0 - 0.1 * self._jitter())
        if isinstance(failure, Gone):
            # Not an error: what happened since is no longer kept, so the whole must be read again.
            self._resource_version = None
        elif self._problem is None or type(self._problem) is not type(failure):
            _log.warning("watch interrupted", extra={"path": self.path, "failure": failure.message})
        self._problem = failure
        return self._backoff.next_delay_seconds(failure.retry_after_seconds if isinstance(failure, Throttled) else None)

    def _list(self) -> ApiFailure | None:
        objects: dict[ObjectKey, T] = {}
        query = {"limit": str(PAGE_OBJECTS)} | self._selection
        self.lists += 1
        with self._gate:
            while not self._stop.is_set():
                page = self._connection.list_page(self.path, query)
                if isinstance(page, ApiFailure):
                    return page
                metadata, items = page.get("metadata"), page.get("items")
                if not isinstance(metadata, dict) or not isinstance(items, list | None):
                    return ServerError("list", self.path, "an answer that is no list")
                for item in items or ():
                    self._keep(item, objects)
                token = metadata.get("continue")
                if not token:
                    self._take(objects, str(metadata.get("resourceVersion", "")))
                    return None
                query = {"limit": str(PAGE_OBJECTS), "continue": str(token)} | self._selection
        return None

    def _keep(self, item: Any, objects: dict[ObjectKey, T]) -> None:
        key = _key_of(item)
        reduced = self._reduced(item) if key is not None else None
        if key is not None and reduced is not None:
            objects[key] = reduced

    def _take(self, objects: dict[ObjectKey, T], resource_version: str) -> None:
        self._resource_version = resource_version
        self._is_absent = False
        self.store.replace(objects)
        self._alive_at_seconds = self._clock.monotonic_seconds()
        self._has_synced = True
        self._on_change()

    def _become_absent(self) -> None:
        self._resource_version = None
        self._is_absent = True
        self._problem = None
        self._alive_at_seconds = self._clock.monotonic_seconds()
        self._has_synced = True
        self._backoff.reset()
        if self.store.all():
            self.store.replace({})
        self._on_change()

    def _watch(self, resource_version: str) -> ApiFailure | None:
        seconds = self._watch_seconds()
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        } | self._selection
        opened_at_seconds = self._clock.monotonic_seconds()
        stream = self._connection.watch(self.path, query, seconds + GRACE_SECONDS)
        if isinstance(stream, ApiFailure):
            return stream
        with self._stream_lock:
            self._stream = stream
            if self._stop.is_set():
                stream.close()
        self._alive_at_seconds = self._clock.monotonic_seconds()
        self._problem = None
        failure: ApiFailure | None = None
        is_heard = False
        for item in stream:
            if isinstance(item, WatchEvent) and self._apply(item):
                self._alive_at_seconds = self._clock.monotonic_seconds()
                is_heard = True
                continue
            failure = item if isinstance(item, ApiFailure) else ServerError("watch", self.path, "an event without name")
            break
        lasted_seconds = self._clock.monotonic_seconds() - opened_at_seconds
        if is_heard or lasted_seconds >= HEALTHY_WATCH_SECONDS:
            self._backoff.reset()
        elif failure is None:
            return ServerError("watch", self.path, f"closed after {lasted_seconds:.1f} s without a word")
        return failure

    def _apply(self, event: WatchEvent) -> bool:
        """Brings the event into the store; False when the event is unusable."""
        metadata = event.object.get("metadata")
        version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
        if not isinstance(version, str) or not version:
            return False
        if event.type != "BOOKMARK":
            key = _key_of(event.object)
            if key is None:
                return False
            reduced = None if event.type == "DELETED" else self._reduced(event.object)
            if reduced is None:
                self.store.remove(key)
            else:
                self.store.put(key, reduced)
            self._on_change()
        self._resource_version = version
        return True

    def _reduced(self, document: dict[str, Any]) -> T | None:
        try:
            return self._reduce(document)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # One object that is not shaped as its kind should be must not hide the others.
            _log.warning(
                "object dropped", extra={"path": self.path, "key": str(_key_of(document)), "failure": repr(error)}
            )
            return None

    def _jitter(self) -> float:
        return self._backoff.chance()

    def _jittered_watch_seconds(self) -> int:
        return SHORTEST_WATCH_SECONDS + int((LONGEST_WATCH_SECONDS - SHORTEST_WATCH_SECONDS) * self._jitter())


def _key_of(document: Any) -> ObjectKey | None:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not isinstance(metadata, dict):
        return None
    return (str(metadata.get("namespace") or ""), name)
