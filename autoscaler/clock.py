"""The only reader of wall time."""

from __future__ import annotations

import time
from typing import Protocol

_MONOTONIC_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Wall time for records and windows, monotonic time for deadlines."""

    def now_seconds(self) -> float:
        """Unix time; may jump when somebody sets the machine's clock."""
        ...

    def monotonic_seconds(self) -> float:
        """Seconds from an arbitrary origin; never jumps."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_seconds(self) -> float:
        """Unix time of the machine."""
        return time.time()

    def monotonic_seconds(self) -> float:
        """Monotonic time of the machine, which on Linux also passes while the machine itself is suspended."""
        # A lease must run out for a virtual machine that was paused, so the boot-time clock where there is one.
        return time.clock_gettime(_MONOTONIC_CLOCK)


class ManualClock:
    """A clock that moves only when told to: for simulated runs and tests."""

    def __init__(self, now_seconds: float) -> None:
        self._now_seconds = now_seconds

    def now_seconds(self) -> float:
        """The simulated time."""
        return self._now_seconds

    def monotonic_seconds(self) -> float:
        """The simulated time again: it never goes back."""
        return self._now_seconds

    def advance(self, seconds: float) -> None:
        """Moves on by `seconds`, which must not be negative."""
        if seconds < 0:
            raise ValueError(f"a clock cannot go back by {-seconds} s")
        self._now_seconds += seconds
