"""The routes of external.metrics.k8s.io/v1beta1, and of the discovery above it.

Every answer comes from memory, so that a slow Prometheus or API server can never stall a client's discovery. Who may
ask is decided before a request comes here (guard.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from autoscaler.clock import Clock
from autoscaler.external_metrics import wire
from autoscaler.external_metrics.caller import CALLER_STATE, FORWARDED_HEADER, Caller
from autoscaler.external_metrics.discovery import Discovery, Groups
from autoscaler.external_metrics.selector import BadSelector, parse_selector
from autoscaler.external_metrics.values import (
    METRIC_NAMES,
    MetricSource,
    MetricUnavailable,
    ProblemKind,
    is_metric_name,
    read_metric,
)

_CODES = {ProblemKind.NOT_FOUND: 404, ProblemKind.UNAVAILABLE: 503}
_REASONS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 500: "InternalError"}


# (namespace, metric, label selector, who asks) -> the answer of another provider of external metrics.
Forward = Callable[[str, str, str, Caller | None], Awaitable[Response]]
ONLY_EXTERNAL_METRICS: Groups = (wire.EXTERNAL_METRICS,)


def create_app(
    source: MetricSource,
    clock: Clock,
    groups: Callable[[], Groups] = lambda: ONLY_EXTERNAL_METRICS,
    forward: Forward | None = None,
) -> FastAPI:
    """The app; `groups` are those that discovery names. Metrics that we do not have are asked for at `forward`."""
    app = FastAPI(
        title="tokenscaler metrics API", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    Discovery(groups).add_to(app)

    @app.get("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}")
    async def metric(request: Request, namespace: str, metric: str, labelSelector: str = "") -> Response:  # noqa: N803
        selector = parse_selector(labelSelector)
        if isinstance(selector, BadSelector):
            return refusal(400, "BadRequest", f"unable to parse labelSelector {labelSelector!r}: {selector.problem}")
        found = read_metric(source, namespace, metric, selector, clock.now_seconds())
        if not isinstance(found, MetricUnavailable):
            return answer(wire.value_list(found))
        is_theirs = found.kind is ProblemKind.NOT_FOUND and metric not in METRIC_NAMES
        if forward is None or not is_theirs or FORWARDED_HEADER in request.headers:
            return refusal_of(found)
        forwarded = await forward(namespace, metric, labelSelector, request.scope.get("state", {}).get(CALLER_STATE))
        # custom-NAME may be ours or theirs; where it is nobody's, our own words say more.
        return refusal_of(found) if forwarded.status_code == 404 and is_metric_name(metric) else forwarded

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> Response:
        """What no route takes, in the API's own form."""
        reason = _REASONS.get(error.status_code, "Unknown")
        message = "the server could not find the requested resource" if error.status_code == 404 else str(error.detail)
        response = refusal(error.status_code, reason, message)
        response.headers.update(error.headers or {})
        return response

    return app


def add_health(app: FastAPI) -> None:
    """The paths that a probe asks, which say only that somebody answers: whether it is ready, another port says."""
    for path in ("/healthz", "/livez", "/readyz"):
        app.get(path)(_healthy)


async def _healthy() -> Response:
    return PlainTextResponse("ok\n")


def refusal_of(unavailable: MetricUnavailable) -> Response:
    """The Status that says why there is no value."""
    return refusal(_CODES[unavailable.kind], unavailable.kind.value, unavailable.message)


def answer(document: wire.Document) -> Response:
    """A document as the answer."""
    return Response(wire.encode(document), media_type=wire.JSON)


def refusal(code: int, reason: str, message: str) -> Response:
    """A metav1.Status as the answer. Without Retry-After: clients of Kubernetes would wait and ask again for it."""
    return Response(wire.encode(wire.status(code, reason, message)), code, media_type=wire.JSON)
