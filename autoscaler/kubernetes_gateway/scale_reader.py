"""What the scale subresource says of objects whose kind is not known, read again only when the object has changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.kubernetes_gateway.watched_target import TargetScale, scale_from_subresource

# After a failed read the next try waits; the object may change a hundred times meanwhile.
RETRY_SECONDS = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadScale:
    """What was last read of one object's scale, for which of its versions, and what is waited for."""

    path: str
    watched_version: Callable[[], str | None]  # the object's resourceVersion by the watch; None: it has gone
    wanted_version: str  # what `watched_version` last gave
    wanted_since_seconds: float  # since when that one has not been read
    scale: TargetScale | None = None
    resource_version: str = ""
    read_for_version: str = ""
    problem: ApiFailure | None = None
    not_before_seconds: float = 0.0

    @property
    def is_current(self) -> bool:
        """Whether what was read belongs to the version of the object that is wanted."""
        return self.wanted_version in (self.resource_version, self.read_for_version)


class ScaleReader:
    """Scales by the URL path of their subresource. `want` is called by readers, `read_changed` by one thread.

    `on_wanted` is called when a scale is asked for that was not known, so that it is read without delay.
    """

    def __init__(self, connection: ApiConnection, clock: Clock, on_wanted: Callable[[], None]) -> None:
        self._on_wanted = on_wanted
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()
        self._scales: dict[str, ReadScale] = {}

    def want(self, path: str, watched_version: Callable[[], str | None]) -> ReadScale:
        """What is known of this scale now; from now on it is read whenever its object has changed."""
        with self._lock:
            known = self._scales.get(path)
            if known is None:
                known = ReadScale(path, watched_version, watched_version() or "", self._clock.monotonic_seconds())
                self._on_wanted()
            self._scales[path] = self._noting_version(known)
            return self._scales[path]

    def read_changed(self, stop: threading.Event) -> None:
        """Reads every scale whose object has changed since the last read, one after the other."""
        now = self._clock.monotonic_seconds()
        with self._lock:
            # An object that has gone takes its scale with it; who wants it again will say so.
            there = {path: known for path, known in self._scales.items() if known.watched_version() is not None}
            self._scales = {path: self._noting_version(known) for path, known in there.items()}
            due = [known for known in self._scales.values() if not known.is_current and now >= known.not_before_seconds]
        for known in due:
            if stop.is_set():
                return
            self._read(known)

    def _noting_version(self, known: ReadScale) -> ReadScale:
        version = known.watched_version()
        if version is None or version == known.wanted_version:
            return known
        since = self._clock.monotonic_seconds() if known.is_current else known.wanted_since_seconds
        return replace(known, wanted_version=version, wanted_since_seconds=since)

    def _read(self, known: ReadScale) -> None:
        answer = self._connection.get(known.path)
        with self._lock:
            current = self._scales.get(known.path, known)
            if isinstance(answer, ApiFailure):
                _log.warning("scale not read", extra={"path": known.path, "failure": answer.message})
                not_before = self._clock.monotonic_seconds() + RETRY_SECONDS
                self._scales[known.path] = replace(current, problem=answer, not_before_seconds=not_before)
                return
            self._scales[known.path] = replace(
                current,
                scale=scale_from_subresource(answer),
                resource_version=str((answer.get("metadata") or {}).get("resourceVersion") or ""),
                read_for_version=known.wanted_version,
                problem=None,
            )
