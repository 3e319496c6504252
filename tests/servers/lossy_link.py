"""How does a TCP connection behave on a network that loses packets, and what if its other end moves elsewhere?

A lost packet is sent again: what shows is a pause, twice as long for each further loss of the same packet, and a
connection that breaks where too many are lost in a row.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from types import TracebackType

from tests.servers.ports import free_port

# The least time after which Linux sends a packet again.
FIRST_RETRY_SECONDS = 0.2
LOSSES_THAT_BREAK = 4


class LossyLink:
    """Forwards TCP from its own port to `target_port`, which may change; a context manager.

    `loss` is the share of packets that is lost from now on, in both directions. Connections that are open when the
    target changes are closed, as those of a killed server are.
    """

    def __init__(self, seed: int = 1) -> None:
        self.port = free_port()
        self.loss = 0.0
        self._target_port = 0
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._thread = threading.Thread(target=self._accept, name=f"lossy-link-{self.port}", daemon=True)
        self._thread.start()

    def __enter__(self) -> LossyLink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._close_all()
        self._thread.join(10)

    def lead_to(self, port: int) -> None:
        """From now on connections go to this port."""
        self._target_port = port
        self._close_all()

    def _close_all(self) -> None:
        with self._lock:
            connections = tuple(self._open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target_port)) as server:
            with self._lock:
                self._open |= {client, server}
            back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
            back.start()
            self._pump(client, server)
            back.join()
            with self._lock:
                self._open -= {client, server}

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1400):
                if not self._survives():
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _survives(self) -> bool:
        """Waits as long as the packet needs to arrive; False where it never does."""
        for losses in range(LOSSES_THAT_BREAK):
            if self._random.random() >= self.loss:
                return True
            time.sleep(FIRST_RETRY_SECONDS * 2**losses)
        return False
