"""Which requests reach the app? Health from anybody, discovery from every known caller, metrics from who may read them.

Two ways to be known. The API server forwards a request over a connection with its front-proxy certificate and says in
headers who the caller is; it has asked its own authorizer before, so nothing is asked again. Everybody else brings a
bearer token, of which the API server is asked whose it is and what it may read. The headers of anybody else say
nothing, and a certificate alone makes nobody known.
"""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeVar

from autoscaler.clock import Clock
from autoscaler.external_metrics.app import refusal
from autoscaler.external_metrics.caller import CALLER_STATE, Caller, Headers, PeerCertificate
from autoscaler.external_metrics.front_proxy import FrontProxyTrust, NoTrust
from autoscaler.external_metrics.reviews import Access, NotReviewed, Reviews, Verdict

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH_PATHS = frozenset({"/healthz", "/livez", "/readyz"})
PEER_STATE = "peer_certificate"
"""Under this name the server puts the connection's PeerCertificate into the request's state."""

# A flood of made-up tokens must not become a flood of reviews.
MAXIMUM_REVIEWS_AT_ONCE = 8
MAXIMUM_TOKEN_CHARACTERS = 16_384

# Whatever the routes take must be found here: a path is decoded, so a name may even hold a line's end.
_OBJECT_METRIC = re.compile(r"/apis/([^/]+)/([^/]+)/namespaces/([^/]+)/([^/]+)/([^/]+)/(.+)", re.DOTALL)
_METRIC = re.compile(r"/apis/([^/]+)/([^/]+)/namespaces/([^/]+)/(.+)", re.DOTALL)
_CLUSTER_METRIC = re.compile(r"/apis/([^/]+)/([^/]+)/(.+)", re.DOTALL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a request goes no further, as a Status."""

    code: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _Known:
    caller: Caller
    is_authorized: bool  # the API server has authorized this very request already


UNAUTHORIZED = Refused(401, "Unauthorized", "Unauthorized")


class Guard:
    """An ASGI app before the app."""

    def __init__(
        self,
        app: App,
        trust: Callable[[], FrontProxyTrust | NoTrust],
        reviews: Reviews,
        executor: Executor,
        clock: Clock,
        count_answer: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`trust` is asked for each request, so that a change counts at once; reviews block, so in the executor.

        `count_answer` is told the HTTP status of every answer but those to probes.
        """
        self._app = app
        self._trust = trust
        self._reviews = reviews
        self._executor = executor
        self._clock = clock
        self._count_answer = count_answer
        self._reviews_now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on, or answers with a Status."""
        if scope["type"] != "http" or scope["path"] in HEALTH_PATHS:
            await self._app(scope, receive, send)
            return

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._count_answer(message["status"])
            await send(message)

        await self._answer(scope, receive, counted)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        known = await self._known(scope)
        refused = known if isinstance(known, Refused) else await self._refused(known, scope["path"])
        if refused is not None:
            await refusal(refused.code, refused.reason, refused.message)(scope, receive, send)
            return
        assert isinstance(known, _Known)
        scope.setdefault("state", {})[CALLER_STATE] = known.caller
        await self._app(scope, receive, send)

    async def _known(self, scope: Scope) -> _Known | Refused:
        headers: Headers = scope["headers"]
        trust = self._trust()
        certificate: PeerCertificate | None = scope.get("state", {}).get(PEER_STATE)
        if (
            certificate is not None
            and isinstance(trust, FrontProxyTrust)
            and trust.trusts(certificate, self._clock.now_seconds())
        ):
            caller = trust.caller(headers)
            if caller is not None:
                return _Known(caller, is_authorized=True)
        token = _bearer_token(headers)
        if token is None:
            return UNAUTHORIZED
        remembered = self._reviews.remembered_caller(token)
        caller_or_not = remembered[0] if remembered else await self._review(self._reviews.caller_of_token, token)
        if isinstance(caller_or_not, Caller):
            return _Known(caller_or_not, is_authorized=False)
        return caller_or_not if isinstance(caller_or_not, Refused) else _unavailable_or_unknown(caller_or_not)

    async def _refused(self, known: _Known, path: str) -> Refused | None:
        """None where the caller may have what stands at the path; everybody who is known may have discovery."""
        access = access_to(path)
        if known.is_authorized or access is None or "system:masters" in known.caller.groups:
            return None
        verdict: Verdict | NotReviewed | Refused | None = self._reviews.remembered_verdict(known.caller, access)
        if verdict is None:
            verdict = await self._review(self._reviews.verdict, known.caller, access)
        if isinstance(verdict, Refused):
            return verdict
        if isinstance(verdict, NotReviewed):
            return Refused(503, "ServiceUnavailable", f"the API server could not be asked: {verdict.problem}")
        return None if verdict.is_allowed else _forbidden(known.caller, access, verdict)

    async def _review(self, review: Callable[..., T], *arguments: Any) -> T | Refused:
        if self._reviews_now >= MAXIMUM_REVIEWS_AT_ONCE:
            return Refused(429, "TooManyRequests", "too many callers are being looked up at the API server")
        self._reviews_now += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, functools.partial(review, *arguments))
        finally:
            self._reviews_now -= 1


def access_to(path: str) -> Access | None:
    """What is read at a path, as the API server's authorizer names it; None for discovery and unknown paths."""
    if match := _OBJECT_METRIC.fullmatch(path):
        # A metric of an object is its subresource.
        return Access(match[1], match[2], match[3], match[4], "get", name=match[5], subresource=match[6])
    if match := _METRIC.fullmatch(path):
        return Access(match[1], match[2], match[3], match[4])
    if (match := _CLUSTER_METRIC.fullmatch(path)) and match[3] != "namespaces":
        return Access(match[1], match[2], "", match[3])
    return None


def _bearer_token(headers: Headers) -> str | None:
    value = next((value for name, value in headers if name == b"authorization"), b"").decode("latin-1")
    scheme, _, token = value.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token and len(token) <= MAXIMUM_TOKEN_CHARACTERS else None


def _unavailable_or_unknown(answer: NotReviewed | None) -> Refused:
    if answer is None:
        return UNAUTHORIZED
    return Refused(503, "ServiceUnavailable", f"the API server could not be asked: {answer.problem}")


def _forbidden(caller: Caller, access: Access, verdict: Verdict) -> Refused:
    place = f'in the namespace "{access.namespace}"' if access.namespace else "at the cluster scope"
    message = (
        f'{access.resource}.{access.group} is forbidden: User "{caller.name}" cannot {access.verb} resource '
        f'"{access.resource}" in API group "{access.group}" {place}'
    )
    return Refused(403, "Forbidden", f"{message}: {verdict.reason}" if verdict.reason else message)
