"""How statuses, Events and marks on pods are written without making the loop wait: by one thread, in their order.

What waits is bounded: one write an object (a newer one replaces an older), and 5,000 objects.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable

from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Rejected, Throttled
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection, Document

logger = logging.getLogger(__name__)

MAXIMUM_WAITING_WRITES = 5000
# Trying these again unchanged cannot help.
FINAL_FAILURES = (Conflict, Forbidden, NotFound, Rejected)

Write = Callable[[ApiConnection], Document | ApiFailure]


class BackgroundWriter:
    """Carries out writes in the order in which their keys first came. A key's newer write replaces its older one.

    `may_write` is asked before each: a process that no longer leads drops what waits instead of overwriting what the
    new leader has written.
    """

    def __init__(self, connection: ApiConnection, may_write: Callable[[], bool], backoff: Backoff) -> None:
        self._connection = connection
        self._may_write = may_write
        self._backoff = backoff
        self._waiting: OrderedDict[tuple[str, ...], Write] = OrderedDict()
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="background-writer", daemon=True)

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Writes what waits, for at most `timeout_seconds`, and ends."""
        with self._changed:
            self._stopping.set()
            self._changed.notify_all()
        self._thread.join(timeout_seconds)

    def is_alive(self) -> bool:
        """False where the thread has ended by a bug: nothing would be told to anybody any more."""
        return self._thread.is_alive() or self._thread.ident is None

    def submit(self, key: tuple[str, ...], write: Write) -> None:
        """Queues a write; where too much waits already, the oldest is dropped (and logged)."""
        with self._changed:
            self._waiting[key] = write
            if len(self._waiting) > MAXIMUM_WAITING_WRITES:
                dropped, _ = self._waiting.popitem(last=False)
                logger.warning("too many writes wait; the oldest is dropped", extra={"object": "/".join(dropped)})
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._stopping.is_set():
                    self._changed.wait()
                if not self._waiting:
                    return
                key, write = self._waiting.popitem(last=False)
            self._write(key, write)

    def _write(self, key: tuple[str, ...], write: Write) -> None:
        if not self._may_write():
            return
        result = write(self._connection)
        if not isinstance(result, ApiFailure):
            self._backoff.reset()
            return
        logger.warning("a write in the background failed", extra={"object": "/".join(key), "problem": result.message})
        if isinstance(result, FINAL_FAILURES) or self._stopping.is_set():
            return
        with self._changed:
            # A newer write of the same object may have come meanwhile: that one counts.
            self._waiting.setdefault(key, write)
        asked_seconds = result.retry_after_seconds if isinstance(result, Throttled) else None
        self._stopping.wait(self._backoff.next_delay_seconds(asked_seconds))
