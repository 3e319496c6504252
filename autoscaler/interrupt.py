"""What does Ctrl-C do while a long command runs?"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_interrupt(stop: Callable[..., None]) -> Iterator[None]:
    """Ctrl-C calls `stop` instead of ending the program, where this is the main thread."""
    try:
        before = signal.signal(signal.SIGINT, stop)
    except ValueError:  # not the main thread, which alone may take signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
