"""Which TCP port on loopback is free, and stays ours while its server is down for a minute?"""

from __future__ import annotations

import random
import socket

# Below Linux's range of ephemeral ports: an outgoing connection never takes one of these while a server restarts.
FIRST_PORT, LAST_PORT = 20_000, 32_000


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on now. Raises RuntimeError when a thousand draws find none."""
    draw = random.SystemRandom()
    for _ in range(1000):
        port = draw.randint(FIRST_PORT, LAST_PORT)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError(f"no free port between {FIRST_PORT} and {LAST_PORT} on 127.0.0.1")
