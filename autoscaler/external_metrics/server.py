"""How is the guarded app served over TLS? By uvicorn's protocol in a thread with a loop of its own."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from typing import Any

import uvicorn
import uvloop
from uvicorn.server import ServerState

from autoscaler.external_metrics.guard import App
from autoscaler.external_metrics.limited_protocol import LimitedProtocol, Limits
from autoscaler.external_metrics.tls import RenewedContext

logger = logging.getLogger(__name__)

# Longer than the 90 s after which the API server itself closes an idle connection: it must not meet one just closing.
KEEP_ALIVE_SECONDS = 120
HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 3.0


class SecureServer:
    """Serves until it is stopped. Connections that are open survive a renewal of the certificate."""

    def __init__(self, app: App, context: RenewedContext, bound: socket.socket, limits: Limits | None = None) -> None:
        """Takes a bound and listening socket, and closes it at the end."""
        self._limits = limits or Limits()
        self.port: int = bound.getsockname()[1]
        self._context = context
        self._socket = bound
        self._config = uvicorn.Config(
            app,
            http=LimitedProtocol,
            ws="none",
            lifespan="off",
            log_config=None,  # its own would print lines that are no JSON
            log_level="error",  # whatever a stranger sends is no warning
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        self._state = ServerState()
        self._loop = uvloop.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-api", daemon=True)

    def start(self) -> None:
        """Begins to serve."""
        self._thread.start()

    def stop(self) -> None:
        """Lets running answers finish, then closes. Also right where it was never started."""
        if self._thread.ident is None:
            self._socket.close()
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(GOODBYE_SECONDS + 2.0)

    def begin_anew(self) -> None:
        """Every connection ends after the answer it waits for, so that the next one is judged by what holds now."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._close_connections)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._config.load()
        server = await self._loop.create_server(
            self._protocol,
            sock=self._socket,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=GOODBYE_SECONDS,
        )
        await self._stopping.wait()
        server.close()
        self._close_connections()
        deadline = self._loop.time() + GOODBYE_SECONDS
        while self._state.connections and self._loop.time() < deadline:
            await asyncio.sleep(0.02)

    def _protocol(self) -> Any:
        protocol = LimitedProtocol(self._config, self._state, {}, self._loop)
        protocol.limits = self._limits
        return protocol

    def _close_connections(self) -> None:
        for connection in list(self._state.connections):
            connection.shutdown()
