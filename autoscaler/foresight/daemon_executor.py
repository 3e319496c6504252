"""How is long work done beside the ticks, such that it never holds up the end of the process?"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class DaemonExecutor(Executor):
    """A thread for each piece of work, dropped where it stands when the process ends. Only for work that only reads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begins at once; what the work raises is raised by the future's `result`."""
        future: Future[Any] = Future()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except BaseException as error:  # handed on as it is: whoever asks for the result gets it
                future.set_exception(error)

        threading.Thread(target=work, name=getattr(fn, "__name__", "work"), daemon=True).start()
        return future
