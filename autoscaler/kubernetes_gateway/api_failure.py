"""What can come back from the API server instead of an answer, in words a person can act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import orjson

MAXIMUM_DETAIL_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class ApiFailure:
    """A request that gave no answer: what was tried (`verb`), on what (`path`), what came back (`detail`).

    `verb` is the word that RBAC uses (get, list, watch, create, update, patch, delete).
    """

    advice: ClassVar[str] = ""

    verb: str
    path: str
    detail: str

    @property
    def message(self) -> str:
        """One sentence with all of it and with what can be done."""
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.verb} {self.path}: {self.detail}{advice}"


@dataclass(frozen=True, slots=True)
class Unreachable(ApiFailure):
    """No connection, or it broke before the answer was complete: whether the server acted is not known."""

    advice: ClassVar[str] = "is the API server up, and does the network allow it?"


@dataclass(frozen=True, slots=True)
class Timeout(ApiFailure):
    """No answer in time: whether the server acted is not known."""

    advice: ClassVar[str] = "the API server is overloaded or the network is cut"


@dataclass(frozen=True, slots=True)
class Unauthorized(ApiFailure):
    """401, or credentials that could not be read."""

    advice: ClassVar[str] = "the token or client certificate is not accepted: renew it"


@dataclass(frozen=True, slots=True)
class Forbidden(ApiFailure):
    """403; the message names the verb and the resource that a Role must grant."""

    @property
    def message(self) -> str:
        """The sentence, with the permission that is missing."""
        return f"{self.verb} {self.path}: {self.detail}; grant {self.permission}"

    @property
    def permission(self) -> str:
        """The missing permission, as in `verb "patch" on "deployments/scale" in API group "apps"`."""
        group, resource = resource_of(self.path)
        return f'verb "{self.verb}" on "{resource}" in API group "{group}"'


@dataclass(frozen=True, slots=True)
class NotFound(ApiFailure):
    """404: no such object, or no such kind."""


@dataclass(frozen=True, slots=True)
class Conflict(ApiFailure):
    """409: the object has changed since it was read, or it exists already."""


@dataclass(frozen=True, slots=True)
class Gone(ApiFailure):
    """410: the resourceVersion asked for is no longer kept; list again."""


@dataclass(frozen=True, slots=True)
class Throttled(ApiFailure):
    """429, or 503 with a Retry-After: come back after `retry_after_seconds` (None: the server did not say)."""

    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected(ApiFailure):
    """Any other 4xx: the request itself is not acceptable to this server."""


@dataclass(frozen=True, slots=True)
class ServerError(ApiFailure):
    """5xx, or an answer that is no JSON (a proxy's page, a truncated body)."""


def failure_of_response(verb: str, path: str, status: int, body: bytes, retry_after: str | None) -> ApiFailure:
    """The failure that an HTTP answer of 300 or more stands for."""
    detail = f"{status} {_status_message(body)}".rstrip()
    seconds = _seconds(retry_after)
    if status == 429 or (status == 503 and seconds is not None):
        return Throttled(verb, path, detail, seconds)
    kind: type[ApiFailure]
    match status:
        case 401:
            kind = Unauthorized
        case 403:
            kind = Forbidden
        case 404:
            kind = NotFound
        case 409:
            kind = Conflict
        case 410:
            kind = Gone
        case _ if 400 <= status < 500:
            kind = Rejected
        case _:
            kind = ServerError
    return kind(verb, path, detail)


def failure_of_status(verb: str, path: str, status: dict[str, Any]) -> ApiFailure:
    """The failure that a Status object inside a watch (an ERROR event) stands for; code 500 where it has none."""
    code = status.get("code")
    details = status.get("details")
    retry_after = details.get("retryAfterSeconds") if isinstance(details, dict) else None
    return failure_of_response(
        verb,
        path,
        code if isinstance(code, int) else 500,
        orjson.dumps({"message": status.get("message"), "reason": status.get("reason")}),
        None if retry_after is None else str(retry_after),
    )


def resource_of(path: str) -> tuple[str, str]:
    """(API group, "resource" or "resource/subresource") that a URL path names; ("", path) where it names none."""
    parts = path.strip("/").split("/")
    if parts[:1] == ["api"] and len(parts) > 2:
        group, rest = "", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return "", path
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return group, f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]


def _status_message(body: bytes) -> str:
    """The text of a Status object, or the first words of whatever else was sent."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body[:MAXIMUM_DETAIL_CHARACTERS].decode(errors="replace").strip()
    if not isinstance(document, dict):
        return str(document)[:MAXIMUM_DETAIL_CHARACTERS]
    text = document.get("message") or document.get("reason") or document
    return str(text)[:MAXIMUM_DETAIL_CHARACTERS]


def _seconds(text: str | None) -> float | None:
    """Retry-After in seconds; None where absent or given as a date (the API server sends seconds)."""
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        return None
