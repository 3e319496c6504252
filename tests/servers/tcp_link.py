"""How is the network between a client and a server on loopback cut, and mended again?"""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType

from tests.servers.ports import free_port


class TcpLink:
    """Forwards TCP from its own port to a server's; a context manager.

    `cut` acts as a network that drops packets: open connections stay open and silent, new ones are accepted by the
    kernel and get no answer. `mend` lets new connections through; the silenced ones are closed.
    """

    def __init__(self, target_port: int):
        self.port = free_port()
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._connected = threading.Event()
        self._connected.set()
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name=f"link-{self.port}", daemon=True)
        self._thread.start()

    def __enter__(self) -> TcpLink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cut(self) -> None:
        """From now on no byte passes in either direction."""
        self._connected.clear()

    def mend(self) -> None:
        """New connections pass again; those that were silenced are reset."""
        with self._lock:
            silenced = tuple(self._open)
        self._connected.set()
        for connection in silenced:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Closes everything."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.mend()
        self._thread.join(10)

    def _accept(self) -> None:
        while not self._closing:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            with self._lock:
                self._open.add(client)
            try:
                self._connected.wait()
                with socket.create_connection(("127.0.0.1", self._target_port), timeout=10) as server:
                    server.settimeout(None)
                    with self._lock:
                        self._open.add(server)
                    back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                    back.start()
                    self._pump(client, server)
                    back.join()
                    with self._lock:
                        self._open.discard(server)
            except OSError:
                pass  # the server is down: the client sees its connection closed
            finally:
                with self._lock:
                    self._open.discard(client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                self._connected.wait()
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
