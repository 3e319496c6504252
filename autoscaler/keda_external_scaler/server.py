"""How is the external scaler served: a port of its own, TLS both ways, certificates that are renewed on disk?"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from concurrent.futures import Future
from pathlib import Path

import grpc
from grpc import aio

from autoscaler.keda_external_scaler.service import STREAM_LOOK_SECONDS, ExternalScalerService, ValueLookup

logger = logging.getLogger(__name__)

MAXIMUM_REQUEST_BYTES = 64 * 1024
MAXIMUM_STREAMS_OF_A_CONNECTION = 4096
STOP_SECONDS = 2.0
START_SECONDS = 10.0


class CertificateFiles:
    """`tls.crt` and `tls.key` to serve with and `ca.crt`, the authority of the clients, in a folder.

    So a Secret of cert-manager is mounted; somebody else renews them.
    """

    def __init__(self, directory: Path) -> None:
        """Reads nothing yet."""
        self._paths = (directory / "tls.crt", directory / "tls.key", directory / "ca.crt")
        self._newest: tuple[bytes, ...] | None = None

    def read(self) -> grpc.ServerCertificateConfiguration:
        """What the files hold. Raises OSError."""
        return self._configuration(self._contents())

    def read_if_changed(self) -> grpc.ServerCertificateConfiguration | None:
        """What the files hold, for the next handshake; None where it is what was read last, or cannot be read."""
        try:
            contents = self._contents()
        except OSError as error:
            logger.warning("a certificate cannot be read: the old one stays", extra={"problem": str(error)})
            return None
        return None if contents == self._newest else self._configuration(contents)

    def _contents(self) -> tuple[bytes, ...]:
        return tuple(path.read_bytes() for path in self._paths)

    def _configuration(self, contents: tuple[bytes, ...]) -> grpc.ServerCertificateConfiguration:
        self._newest = contents
        certificate, key, authority = contents
        return grpc.ssl_server_certificate_configuration([(key, certificate)], authority)


class ExternalScalerServer:
    """A gRPC server in a thread of its own. Only clients with a certificate of the given authority get through."""

    def __init__(
        self,
        look_up: ValueLookup,
        host: str,
        port: int,
        files: CertificateFiles,
        look_seconds: float = STREAM_LOOK_SECONDS,
    ) -> None:
        """Port 0 takes a free one; `port` says which, once it has started."""
        self.port = port
        self._look_up = look_up
        self._host = host
        self._files = files
        self._look_seconds = look_seconds
        self._loop = asyncio.new_event_loop()
        self._started: Future[int] = Future()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="keda-external-scaler", daemon=True)

    def start(self) -> None:
        """Serves until `stop`. Raises OSError when a file cannot be read, or the port is taken."""
        self._thread.start()
        self.port = self._started.result(START_SECONDS)

    def stop(self) -> None:
        """Ends the streams, lets running calls finish for two seconds, then closes. Nothing where it does not run."""
        with contextlib.suppress(RuntimeError):  # its loop has ended already
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread.ident is not None:
            self._thread.join(2 * STOP_SECONDS + 1.0)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        try:
            server, port = self._listen()
        except OSError as error:
            self._started.set_exception(error)
            return
        await server.start()
        self._started.set_result(port)
        await self._stopping.wait()
        await server.stop(STOP_SECONDS)

    def _listen(self) -> tuple[aio.Server, int]:
        server = aio.server(
            options=[
                ("grpc.max_receive_message_length", MAXIMUM_REQUEST_BYTES),
                ("grpc.max_concurrent_streams", MAXIMUM_STREAMS_OF_A_CONNECTION),
                ("grpc.so_reuseport", 0),  # a port that is taken is an error, not shared
            ]
        )
        service = ExternalScalerService(self._look_up, self._stopping, self._look_seconds)
        server.add_generic_rpc_handlers((service.handler(),))
        credentials = grpc.dynamic_ssl_server_credentials(
            self._files.read(),
            self._files.read_if_changed,  # type: ignore[arg-type]  # None is the documented answer for "as before"
            require_client_authentication=True,
        )
        host = f"[{self._host}]" if ":" in self._host else self._host
        try:
            return server, server.add_secure_port(f"{host}:{self.port}", credentials)
        except RuntimeError as error:
            raise OSError(None, f"cannot listen on {host}:{self.port}: is the port taken?") from error
