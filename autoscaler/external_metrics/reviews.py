"""Whose token is this, and may they read that metric? Asked of the API server, and remembered for a short while."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from autoscaler.clock import Clock
from autoscaler.external_metrics.caller import Caller
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import Document

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

# As long as extension API servers usually remember an answer: a right that is withdrawn ends so soon.
REMEMBERED_SECONDS = 10.0
MAXIMUM_REMEMBERED = 4096

T = TypeVar("T")


class Creates(Protocol):
    """The part of a connection to the API server that is used here."""

    def create(self, path: str, body: Document) -> Document | ApiFailure:
        """The created document, or why there is none."""
        ...


@dataclass(frozen=True, slots=True)
class NotReviewed:
    """The API server gave no answer, so the request is refused for now."""

    problem: str


@dataclass(frozen=True, slots=True)
class Access:
    """What somebody wants to read: a metric of a namespace (empty: of the whole cluster), in a group and version.

    A metric of an object has the object's resource and name, and is itself the subresource.
    """

    group: str
    version: str
    namespace: str
    resource: str
    verb: str = "list"
    name: str = ""
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it may be read, and the API server's own reason."""

    is_allowed: bool
    reason: str = ""


class Reviews:
    """Blocking: for a thread of its own, never for the event loop. Used by several threads at once."""

    def __init__(self, connection: Creates, clock: Clock) -> None:
        self._connection = connection
        self._callers: _Remembered[Caller | None] = _Remembered(clock)
        self._verdicts: _Remembered[Verdict] = _Remembered(clock)

    def remembered_caller(self, token: str) -> tuple[Caller | None] | None:
        """What is remembered of the token (None inside: nobody's); None where nothing is."""
        return self._callers.get(_digest(token))

    def remembered_verdict(self, caller: Caller, access: Access) -> Verdict | None:
        """What is remembered of the caller's right; None where nothing is."""
        found = self._verdicts.get(_question(caller, access))
        return found[0] if found else None

    def caller_of_token(self, token: str) -> Caller | NotReviewed | None:
        """Whose token it is; None where it is nobody's."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = self._connection.create(TOKEN_REVIEWS, body)
        if isinstance(answer, ApiFailure):
            return NotReviewed(answer.message)
        found = answer.get("status") or {}
        caller = _caller(found.get("user") or {}) if found.get("authenticated") is True else None
        self._callers.put(_digest(token), caller)
        return caller

    def verdict(self, caller: Caller, access: Access) -> Verdict | NotReviewed:
        """Whether the caller may read it."""
        attributes = {
            "group": access.group,
            "version": access.version,
            "resource": access.resource,
            "verb": access.verb,
            **({"namespace": access.namespace} if access.namespace else {}),
            **({"name": access.name, "subresource": access.subresource} if access.subresource else {}),
        }
        spec: dict[str, Any] = {"user": caller.name, "groups": list(caller.groups), "resourceAttributes": attributes}
        if caller.uid:
            spec["uid"] = caller.uid
        if caller.extra:
            spec["extra"] = {key: list(values) for key, values in caller.extra.items()}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = self._connection.create(ACCESS_REVIEWS, body)
        if isinstance(answer, ApiFailure):
            return NotReviewed(answer.message)
        found = answer.get("status") or {}
        is_allowed = found.get("allowed") is True and found.get("denied") is not True
        verdict = Verdict(is_allowed, str(found.get("reason") or ""))
        self._verdicts.put(_question(caller, access), verdict)
        return verdict


def _caller(user: dict[str, Any]) -> Caller | None:
    name = str(user.get("username") or "")
    if not name:
        return None
    extra = {str(key): tuple(map(str, values or ())) for key, values in (user.get("extra") or {}).items()}
    return Caller(name, str(user.get("uid") or ""), tuple(map(str, user.get("groups") or ())), extra)


def _digest(token: str) -> bytes:
    # A token itself is not kept in memory for longer than its request.
    return hashlib.sha256(token.encode(errors="replace")).digest()


def _question(caller: Caller, access: Access) -> Hashable:
    return (caller.name, caller.uid, caller.groups, tuple(sorted(caller.extra.items())), access)


class _Remembered(Generic[T]):
    """Answers by question for a short while; the oldest go where there are too many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._answers: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()

    def get(self, question: Hashable) -> tuple[T] | None:
        with self._lock:
            found = self._answers.get(question)
        if found is None or self._clock.monotonic_seconds() - found[0] >= REMEMBERED_SECONDS:
            return None
        return (found[1],)

    def put(self, question: Hashable, answer: T) -> None:
        with self._lock:
            self._answers[question] = (self._clock.monotonic_seconds(), answer)
            self._answers.move_to_end(question)
            while len(self._answers) > MAXIMUM_REMEMBERED:
                self._answers.popitem(last=False)
