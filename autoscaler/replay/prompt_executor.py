"""An executor without threads: a job is done as soon as it is given, so that a run depends on nothing but its seed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any


class PromptExecutor(Executor):
    """Runs each job where it is submitted. What a job raises comes up at once: there it is a bug."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The finished job."""
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done
