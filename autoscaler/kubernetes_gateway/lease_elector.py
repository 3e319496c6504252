"""Which of several processes may write: the holder of a Lease, and only while it can prove that it holds it.

Times are judged by what this process itself sees on its own monotonic clock, never by comparing wall clocks:
- a holder counts its right from the moment *before* it sent the renewal that succeeded;
- a candidate counts a foreign lease from the moment *after* it read the last change of it.

The holder writes only within RENEW_DEADLINE (6 s) of that moment (`fence`), a candidate takes over LEASE_DURATION
(10 s) after the other one at the earliest. The 4 s between are longer than a write can be under way: 1 s to connect,
2 s until the answer is given up and 2.5 s until the kernel throws away what was not acknowledged (connection.py); the
server itself drops a write that it has not begun within 2 s. What remains is a process that is stopped between the
check and the first byte of the request: there the resourceVersion precondition of the write refuses it as soon as the
new leader, or anybody, has touched the target.

Takeover after a kill -9: the candidate has seen the last renewal at most RETRY (1.5 s) after it was made, waits 10 s
and tries at that very moment: within 12 s, or at the next retry, 13.5 s, if that one request fails.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection

LEASE_DURATION_SECONDS = 10.0
RENEW_DEADLINE_SECONDS = 6.0
RETRY_SECONDS = 1.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How long a lease lasts, for how long its holder trusts it, and how often it is looked at."""

    lease_duration_seconds: float = LEASE_DURATION_SECONDS
    renew_deadline_seconds: float = RENEW_DEADLINE_SECONDS
    retry_seconds: float = RETRY_SECONDS

    def __post_init__(self) -> None:
        if not 0 < self.retry_seconds < self.renew_deadline_seconds < self.lease_duration_seconds:
            raise ValueError(f"retry < renew deadline < lease duration does not hold: {self}")


@dataclass(frozen=True, slots=True)
class _SeenLease:
    """The Lease as last read, and when it was first seen to be so."""

    document: dict[str, Any]
    holder: str
    seen_at_seconds: float

    @property
    def duration_seconds(self) -> float:
        duration = _spec_of(self.document).get("leaseDurationSeconds")
        return float(duration) if isinstance(duration, int) else 0.0


class LeaseElector:
    """Competes for a Lease in a thread of its own.

    `identity` must be of this process alone (a pod's name is not enough: a restarted container would take its
    predecessor's writes for its own). `on_change` is told True when the lease is won and False when it is lost.
    """

    def __init__(
        self,
        connection: ApiConnection,
        namespace: str,
        name: str,
        identity: str,
        clock: Clock,
        random: Callable[[], float],
        timing: LeaseTiming | None = None,
        on_change: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._connection = connection
        self._collection = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._path = f"{self._collection}/{name}"
        self._metadata = {"name": name, "namespace": namespace}
        self._identity = identity
        self._clock = clock
        self._random = random
        self._timing = timing or LeaseTiming()
        self._on_change = on_change
        self._seen: _SeenLease | None = None
        self._renewed_at_seconds = -math.inf
        self._was_leader = False
        self._tenures = 0
        self._problem: ApiFailure | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    @property
    def identity(self) -> str:
        """Who this process is in the Lease."""
        return self._identity

    @property
    def holder(self) -> str | None:
        """Who holds the Lease as last read; None when nobody does or nothing has been read yet."""
        return self._seen.holder or None if self._seen is not None else None

    @property
    def problem(self) -> ApiFailure | None:
        """Why the last try to read or renew the Lease failed, or None."""
        return self._problem

    def is_leader(self) -> bool:
        """Whether this process holds the lease and can still prove it."""
        return self.fence()

    def tenure(self) -> int | None:
        """None unless this process leads; else a number that is another one when somebody else may have led since.

        While nobody else has held the lease (the API server was away) it stays the same.
        """
        return self._tenures if self.fence() else None

    def fence(self) -> bool:
        """True only within the renew deadline of the last renewal; to be asked immediately before each write.

        Right also for a process that was stopped (SIGSTOP, a paused machine): its clock has gone on meanwhile.
        """
        age_seconds = self._clock.monotonic_seconds() - self._renewed_at_seconds
        return not self._stop.is_set() and age_seconds < self._timing.renew_deadline_seconds

    def start(self) -> None:
        """Begins to compete."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 7.0) -> None:
        """Gives the lease back, so that another takes over at once. To be called after the last write has ended."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(timeout_seconds)

    def step(self) -> float:
        """Looks at the Lease once, takes or renews it where it may, and gives the seconds until the next look."""
        failure = self._renew() if self._is_holder() else self._try_to_take()
        if failure is not None and type(failure) is not type(self._problem):
            _log.warning("lease not renewed", extra={"failure": failure.message})
        self._problem = failure
        self._announce()
        return self._seconds_to_next_look()

    def release(self) -> None:
        """Clears the holder, if this process holds the lease. A failure is harmless: the lease runs out by itself."""
        if not self._is_holder() or self._seen is None:
            return
        spec = _spec_of(self._seen.document) | {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": self._timestamp(),
        }
        result = self._connection.update(self._path, self._with_spec(self._seen.document, spec))
        if isinstance(result, ApiFailure):
            _log.warning("lease not released", extra={"failure": result.message})
        self._renewed_at_seconds = -math.inf
        self._announce()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self.step())
        self.release()

    def _is_holder(self) -> bool:
        return self._seen is not None and self._seen.holder == self._identity

    def _renew(self) -> ApiFailure | None:
        """Renews without reading first: one request, refused when anybody has changed the Lease meanwhile."""
        if self._seen is None:
            return None
        spec = _spec_of(self._seen.document) | self._renewal()
        failure = self._put(self._with_spec(self._seen.document, spec))
        # After a timeout the renewal may have happened nonetheless, and then the next one conflicts: read again.
        # A Lease that somebody has deleted is made again.
        return self._try_to_take() if isinstance(failure, Conflict | NotFound) else failure

    def _try_to_take(self) -> ApiFailure | None:
        document = self._connection.get(self._path)
        if isinstance(document, NotFound):
            return self._create()
        if isinstance(document, ApiFailure):
            return document
        self._note(document)
        seen = self._seen
        if seen is None or not self._may_take(seen):
            return None
        spec = _spec_of(document) | self._renewal()
        if seen.holder != self._identity:
            transitions = spec.get("leaseTransitions")
            spec["leaseTransitions"] = (transitions if isinstance(transitions, int) else 0) + 1
            spec["acquireTime"] = self._timestamp()
        failure = self._put(self._with_spec(document, spec))
        return None if isinstance(failure, Conflict) else failure  # another was faster

    def _may_take(self, seen: _SeenLease) -> bool:
        return not seen.holder or seen.holder == self._identity or self._seconds_to_expiry(seen) <= 0.0

    def _seconds_to_expiry(self, seen: _SeenLease) -> float:
        # The longer of what the holder wrote and what we use: versions with other settings may meet in a rollout.
        duration = max(seen.duration_seconds, self._timing.lease_duration_seconds)
        return seen.seen_at_seconds + duration - self._clock.monotonic_seconds()

    def _create(self) -> ApiFailure | None:
        spec = self._renewal() | {"acquireTime": self._timestamp(), "leaseTransitions": 0}
        sent_at_seconds = self._clock.monotonic_seconds()
        document = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": self._metadata,
            "spec": spec,
        }
        result = self._connection.create(self._collection, document)
        if isinstance(result, Conflict):
            return None
        return self._after_write(result, sent_at_seconds)

    def _put(self, document: dict[str, Any]) -> ApiFailure | None:
        sent_at_seconds = self._clock.monotonic_seconds()
        return self._after_write(self._connection.update(self._path, document), sent_at_seconds)

    def _after_write(self, result: dict[str, Any] | ApiFailure, sent_at_seconds: float) -> ApiFailure | None:
        if isinstance(result, ApiFailure):
            return result
        self._note(result)
        self._renewed_at_seconds = sent_at_seconds
        return None

    def _note(self, document: dict[str, Any]) -> None:
        """Remembers what was read, and since when it has been so."""
        spec = _spec_of(document)
        if self._seen is None or spec != _spec_of(self._seen.document):
            seen_at_seconds = self._clock.monotonic_seconds()
        else:
            seen_at_seconds = self._seen.seen_at_seconds
        was_holder = self._is_holder()
        self._seen = _SeenLease(document, str(spec.get("holderIdentity") or ""), seen_at_seconds)
        if not self._is_holder():
            self._renewed_at_seconds = -math.inf
        elif not was_holder:
            self._tenures += 1

    def _renewal(self) -> dict[str, Any]:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease_duration_seconds),
            "renewTime": self._timestamp(),
        }

    def _with_spec(self, document: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
        """The document with another spec; its resourceVersion stays, so a stale one is refused."""
        return document | {"spec": spec}

    def _timestamp(self) -> str:
        """Wall time, for people who look at the Lease; no process decides by it."""
        return datetime.fromtimestamp(self._clock.now_seconds(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _announce(self) -> None:
        is_leader = self.fence()
        if is_leader == self._was_leader:
            return
        self._was_leader = is_leader
        _log.info("lease won" if is_leader else "lease lost", extra={"identity": self._identity, "holder": self.holder})
        self._on_change(is_leader)

    def _seconds_to_next_look(self) -> float:
        if self.fence() or self._seen is None or not self._seen.holder or self._is_holder():
            return self._timing.retry_seconds
        # Candidates come at slightly different times, but not later than the moment at which the lease runs out.
        retry = self._timing.retry_seconds * (1.0 - 0.2 * self._random())
        return min(retry, max(self._seconds_to_expiry(self._seen), 0.05))


def _spec_of(document: dict[str, Any]) -> dict[str, Any]:
    spec = document.get("spec")
    return spec if isinstance(spec, dict) else {}
