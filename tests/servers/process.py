"""How is a program started for a test, watched, and surely gone at the end?"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def _die_with_parent() -> None:
    # A test run that is killed hard leaves nothing running either.
    _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# Times are stated for a machine that has little else to do. A busy one gets more: where all is well that costs nothing.
PATIENCE = 3


def wait_until(condition: Callable[[], bool], what: str, timeout_seconds: float, poll_seconds: float = 0.1) -> float:
    """Seconds until `condition` held; raises TimeoutError naming `what` when it did not within PATIENCE times that."""
    started = time.monotonic()
    while not condition():
        waited = time.monotonic() - started
        if waited > PATIENCE * timeout_seconds:
            raise TimeoutError(f"{what}: not within {PATIENCE * timeout_seconds:g} s")
        time.sleep(poll_seconds)
    return time.monotonic() - started


class Program:
    """One program under test control: output goes to a log file, and its death is noticed while waiting for it."""

    def __init__(
        self, name: str, command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None
    ):
        self.name = name
        self.command = [str(part) for part in command]
        self.log_path = directory / f"{name}.log"
        self._directory = directory
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the last start. Raises RuntimeError before the first."""
        if self._process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last start (negative: the signal), None while running or before the first start."""
        return None if self._process is None else self._process.poll()

    def start(self) -> None:
        """Starts it; the log is appended to, so one file tells the story of all starts."""
        if self.running:
            raise RuntimeError(f"{self.name} is running already")
        with self.log_path.open("ab") as log:
            # Its own session: Ctrl-C in a terminal reaches only us, and we stop things in order.
            self._process = subprocess.Popen(
                self.command,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                cwd=self._directory,
                env=os.environ | self._environment,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )

    def wait_ready(self, ready: Callable[[], bool], timeout_seconds: float = 120.0) -> float:
        """Seconds until `ready()`; raises RuntimeError with the end of its log when it dies or takes too long."""

        def ready_or_dead() -> bool:
            return not self.running or ready()

        try:
            waited = wait_until(ready_or_dead, f"{self.name} is ready", timeout_seconds, poll_seconds=0.05)
        except TimeoutError as error:
            raise RuntimeError(f"{error}; the end of {self.log_path}:\n{self.log_tail()}") from error
        if not self.running:
            raise RuntimeError(f"{self.name} ended with {self.exit_code}; its log's end:\n{self.log_tail()}")
        return waited

    def send_signal(self, number: signal.Signals) -> None:
        """Sends a signal when it is running; nothing otherwise."""
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def suspend(self) -> None:
        """SIGSTOP: it keeps its sockets and does nothing."""
        self.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL, and waits for its end."""
        self.send_signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(30)

    def stop(self, timeout_seconds: float = 60.0) -> None:
        """SIGTERM and waits for its end; SIGKILL when that takes too long. Nothing when it is not running."""
        if self._process is None:
            return
        self.resume()
        self.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def wait(self, timeout_seconds: float = 60.0) -> int:
        """Waits for its end by itself; returns the exit code. Raises subprocess.TimeoutExpired."""
        if self._process is None:
            raise RuntimeError(f"{self.name} has not been started")
        return self._process.wait(timeout_seconds)

    def log_text(self) -> str:
        """Everything it has written so far."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def log_tail(self, lines: int = 30) -> str:
        """The last lines that it has written."""
        return "\n".join(self.log_text().splitlines()[-lines:])
