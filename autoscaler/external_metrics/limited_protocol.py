"""How much may one connection ask of us? uvicorn's HTTP protocol with bounds on size, time and number."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from autoscaler.external_metrics.guard import PEER_STATE
from autoscaler.external_metrics.tls import peer_certificate

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed. kube-apiserver opens a few connections a replica of its own; the rest is room for scrapes.

    A head (a request's line and its headers) holds the caller's groups and extras, which may be many. Nothing that is
    served has a body, so what follows a head may be little, and is not kept. A request must have arrived so long after
    its connection or its first byte.
    """

    connections: int = 512
    head_bytes: int = 64 * 1024
    body_bytes: int = 16 * 1024
    arrival_seconds: float = 10.0


_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 25\r\n\r\nthe headers are too large"
)


class LimitedProtocol(HttpToolsProtocol):
    """One connection. What exceeds a bound is closed; the requests of others are not touched."""

    limits = Limits()
    _arrival: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _body_bytes = 0
    _is_in_head = True

    def connection_made(self, transport: Any) -> None:
        """Takes the client's certificate down; closes at once where there are too many connections.

        Who has a certificate of the front proxy's authority is let in nevertheless: strangers who hold all the others
        would else keep the API server out.
        """
        is_too_many = len(self.connections) >= self.limits.connections
        super().connection_made(transport)
        certificate = peer_certificate(transport.get_extra_info("ssl_object"))
        if is_too_many and certificate is None:
            logger.warning("too many connections to the metrics API", extra={"maximum": self.limits.connections})
            transport.abort()
            return
        self.app_state = {**self.app_state, PEER_STATE: certificate}
        self._await_arrival()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the timer."""
        self._cancel_arrival()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads on, within the bounds."""
        if self.transport.is_closing():
            return
        if self._is_in_head:
            self._head_bytes += len(data)
        else:
            self._body_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._is_in_head and self._head_bytes > self.limits.head_bytes:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif not self._is_in_head and self._body_bytes > self.limits.body_bytes:
            self.transport.abort()  # a polite end would read on for some seconds
        elif self._is_arriving():
            self._await_arrival()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._is_in_head, self._body_bytes = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header. What stands behind a body is dropped: who passes a request on may not have read so far.

        uvicorn would put it among the headers, where it could say who the caller is.
        """
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Its head is there."""
        self._is_in_head, self._head_bytes = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """It has arrived."""
        self._is_in_head, self._body_bytes = True, 0
        self._cancel_arrival()
        super().on_message_complete()

    def _is_arriving(self) -> bool:
        return self._head_bytes > 0 or not self._is_in_head

    def _await_arrival(self) -> None:
        if self._arrival is None:
            self._arrival = self.loop.call_later(self.limits.arrival_seconds, self._is_too_slow)

    def _cancel_arrival(self) -> None:
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _is_too_slow(self) -> None:
        self._arrival = None
        if not self.transport.is_closing():
            self.transport.abort()
