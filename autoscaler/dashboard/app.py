"""The page and its data over HTTP; reads snapshots only, so that a slow reader delays no tick."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from autoscaler.dashboard.snapshot import FleetSnapshot
from autoscaler.dashboard.wire import fleet_document, pool_document

STATIC_FILES = Path(__file__).parent / "static"

# Everything the page needs comes from here: nothing is fetched from elsewhere, and nothing may embed it.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def create_app(read_snapshot: Callable[[], FleetSnapshot]) -> FastAPI:
    """The app; its addresses are relative, so it may be mounted below any path. Read-only: it has no other methods."""
    app = FastAPI(title="tokenscaler dashboard", docs_url=None, redoc_url=None, openapi_url=None)

    @app.middleware("http")
    async def with_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        response.headers.update(HEADERS)
        return response

    @app.get("/api/fleet")
    def fleet() -> Response:
        return Response(fleet_document(read_snapshot()), media_type="application/json")

    @app.get("/api/pools/{namespace}/{name}")
    def pool(namespace: str, name: str, since: float = 0.0) -> Response:
        view = read_snapshot().pools.get((namespace, name))
        if view is None:
            return JSONResponse({"problem": f"there is no pool {namespace}/{name} in the last tick"}, status_code=404)
        return Response(pool_document(view, since), media_type="application/json")

    app.mount("/", StaticFiles(directory=STATIC_FILES, html=True), name="page")
    return app
