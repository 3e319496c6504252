"""How far is a search, and does the user want to stop it?"""

from __future__ import annotations

import signal
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from autoscaler.interrupt import on_interrupt


class SearchProgress:
    """Shows how many of the runs are done, and knows whether the user wants to stop; a second Ctrl-C ends it hard."""

    def __init__(self, console: Console, runs: int) -> None:
        counted = TextColumn("{task.completed:.0f} of {task.total:.0f} runs")
        columns = (TextColumn("{task.description}"), BarColumn(), counted, TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=runs)
        self._console = console
        self._runs = runs
        self._done = 0
        self._what = ""
        self._tenths_told = 0
        self._stopped = False
        self._interrupt = on_interrupt(self._stop)

    def __enter__(self) -> Self:
        self._interrupt.__enter__()
        self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.stop()
        self._interrupt.__exit__(None, None, None)

    def was_stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._stopped

    def says(self, what: str) -> None:
        """What is being run from now on."""
        self._what = what
        self._bar.update(self._task, description=what)

    def tells(self, runs: int) -> None:
        """So many more runs are done. Where there is no terminal, every tenth of all is a line."""
        self._done += runs
        self._bar.update(self._task, completed=self._done)
        tenths = 10 * self._done // self._runs
        if tenths > self._tenths_told and not self._console.is_terminal:
            self._tenths_told = tenths
            self._console.print(f"{self._what}: {self._done} of {self._runs} runs", soft_wrap=True)

    def _stop(self, *_: object) -> None:
        self._stopped = True
        signal.signal(signal.SIGINT, signal.default_int_handler)
