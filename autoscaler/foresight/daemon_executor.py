"""How is long work done beside the ticks, such that it never holds up the end of the process?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class WorkBrokenOffError(Exception):
    """The work has raised something: a bug of ours."""


class DaemonExecutor(Executor):
    """A thread for each piece of work, dropped where it stands when the process ends. Only for work that only reads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begins at once. Where the work raises, a traceback is on stderr and the result raises WorkBrokenOffError."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            finally:
                if not future.done():
                    future.set_exception(WorkBrokenOffError(name))

        name = getattr(fn, "__name__", "work")
        threading.Thread(target=work, name=name, daemon=True).start()
        return future
