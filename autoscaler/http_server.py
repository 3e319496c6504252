"""The controller's HTTP side: health, metrics, the newest records, and the page."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from autoscaler.controller.latest_records import LatestRecords
from autoscaler.telemetry import Telemetry


def create_app(
    telemetry: Telemetry,
    records: LatestRecords,
    is_alive: Callable[[], bool],
    not_ready_because: Callable[[], str | None],
) -> FastAPI:
    """The app; it reads snapshots only, so a slow client delays no tick."""
    app = FastAPI(title="tokenscaler", docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/healthz")
    async def healthz() -> Response:
        if is_alive():
            return PlainTextResponse("ok\n")
        return PlainTextResponse("no tick has ended for too long, or statuses are no longer written\n", status_code=503)

    @app.get("/readyz")
    async def readyz() -> Response:
        reason = not_ready_because()
        return PlainTextResponse("ok\n") if reason is None else PlainTextResponse(f"{reason}\n", status_code=503)

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(telemetry.render(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/decisions/{namespace}/{name}")
    def decision(namespace: str, name: str, at: float | None = None, back: float | None = None) -> Response:
        if back is not None:
            lines = records.back(namespace, name, back)
        elif at is not None:
            lines = [line for line in [records.at(namespace, name, at)] if line is not None]
        else:
            newest = records.latest(namespace, name)
            lines = [] if newest is None else [newest.to_json_line()]
        if not lines:
            return JSONResponse({"problem": _why_no_decision(records, namespace, name, at)}, status_code=404)
        media_type = "application/json" if back is None else "application/jsonl"
        return Response("\n".join(lines), media_type=media_type)

    return app


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError where the address is taken. Port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # :: means every address, of both families.
    takes_both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=128, dualstack_ipv6=takes_both)
    except OSError as error:
        # What was tried is said by the caller; Python repeats the address.
        said = (error.strerror or str(error)).partition(" (while ")[0]
        hint = "; another program has the port, give another one or 0" if error.errno == errno.EADDRINUSE else ""
        raise OSError(error.errno, f"{said}{hint}") from error


def _why_no_decision(records: LatestRecords, namespace: str, name: str, at_seconds: float | None) -> str:
    because = records.undecided_because(namespace, name)
    if at_seconds is not None and records.latest(namespace, name) is not None:
        because = "of that moment nothing is kept here; is there a decision log (run --decisions FILE)?"
    return f"no decision for {namespace}/{name}" + (
        f": {because}" if because else " yet: is it an InferenceScaler, and does this replica lead?"
    )


class HttpServer:
    """uvicorn in a thread; bound before it starts, so a port that is taken is known at once."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        """Binds the address. Raises OSError when it is taken. Port 0 takes a free one."""
        self._socket = bind(host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,  # its own would print lines that are no JSON
            log_level="warning",
            access_log=False,
            lifespan="off",
            timeout_graceful_shutdown=2,
            loop="uvloop",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="http", daemon=True)

    def start(self) -> None:
        """Serves until `stop`."""
        self._thread.start()

    def stop(self) -> None:
        """Lets running answers finish for two seconds, then closes. Also right where it was never started."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(timeout=5.0)
        self._socket.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])
