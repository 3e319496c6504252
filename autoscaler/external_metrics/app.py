"""The routes of external.metrics.k8s.io/v1beta1, and of the discovery above it.

Every answer comes from memory, so that a slow Prometheus or API server can never stall a client's discovery. Who may
ask is decided before a request comes here (guard.py).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from autoscaler.clock import Clock
from autoscaler.external_metrics import wire
from autoscaler.external_metrics.selector import BadSelector, parse_selector
from autoscaler.external_metrics.values import MetricSource, MetricUnavailable, ProblemKind, read_metric
from autoscaler.external_metrics.wire import ApiGroup

_CODES = {ProblemKind.NOT_FOUND: 404, ProblemKind.UNAVAILABLE: 503}
_REASONS = {400: "BadRequest", 404: "NotFound", 405: "MethodNotAllowed", 500: "InternalError"}


def create_app(source: MetricSource, clock: Clock, groups: Sequence[ApiGroup] = (wire.EXTERNAL_METRICS,)) -> FastAPI:
    """The app; `groups` are those that discovery names."""
    app = FastAPI(
        title="tokenscaler metrics API", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    _add_discovery(app, tuple(groups))

    @app.get("/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}")
    async def metric(namespace: str, metric: str, labelSelector: str = "") -> Response:  # noqa: N803
        selector = parse_selector(labelSelector)
        if isinstance(selector, BadSelector):
            return refusal(400, "BadRequest", f"unable to parse labelSelector {labelSelector!r}: {selector.problem}")
        found = read_metric(source, namespace, metric, selector, clock.now_seconds())
        if isinstance(found, MetricUnavailable):
            return refusal(_CODES[found.kind], found.kind.value, found.message)
        return answer(wire.value_list(found))

    @app.exception_handler(HTTPException)
    async def failed(_: Request, error: HTTPException) -> Response:
        """What no route takes, in the API's own form."""
        reason = _REASONS.get(error.status_code, "Unknown")
        message = "the server could not find the requested resource" if error.status_code == 404 else str(error.detail)
        return refusal(error.status_code, reason, message)

    return app


def add_health(app: FastAPI) -> None:
    """The paths that a probe asks, which say only that somebody answers: whether it is ready, another port says."""
    for path in ("/healthz", "/livez", "/readyz"):
        app.get(path)(_healthy)


async def _healthy() -> Response:
    return PlainTextResponse("ok\n")


def answer(document: wire.Document) -> Response:
    """A document as the answer."""
    return Response(wire.encode(document), media_type=wire.JSON)


def refusal(code: int, reason: str, message: str) -> Response:
    """A metav1.Status as the answer. Without Retry-After: clients of Kubernetes would wait and ask again for it."""
    return Response(wire.encode(wire.status(code, reason, message)), code, media_type=wire.JSON)


def _add_discovery(app: FastAPI, groups: tuple[ApiGroup, ...]) -> None:
    plain = wire.encode(wire.api_group_list(groups))
    aggregated = {
        version: wire.encode(wire.aggregated_discovery(groups, version)) for version in wire.AGGREGATED_VERSIONS
    }

    @app.get("/apis")
    async def apis(request: Request) -> Response:
        version = wire.wanted_aggregated_version(request.headers.get("accept", ""))
        if version is None:
            return Response(plain, media_type=wire.JSON, headers={"Vary": "Accept"})
        content = aggregated[version]
        headers = {"ETag": wire.entity_tag(content), "Vary": "Accept"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=wire.aggregated_media_type(version), headers=headers)

    for group in groups:
        app.get(f"/apis/{group.name}")(_always(wire.api_group(group)))
        for version in group.versions:
            app.get(f"/apis/{group.name}/{version}")(_always(wire.api_resource_list(group, version)))


def _always(document: wire.Document) -> Callable[[], Awaitable[Response]]:
    content = wire.encode(document)

    async def same() -> Response:
        return Response(content, media_type=wire.JSON)

    return same
