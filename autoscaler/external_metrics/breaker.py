"""When do we stop asking somebody who does not answer, and when do we try again?"""

from __future__ import annotations

import threading

from autoscaler.clock import Clock

FAILURES_UNTIL_OPEN = 5
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 60.0


class Breaker:
    """Opens after five failures in a row; then one question a pause may be tried, and the pause doubles up to a minute.

    Used by many threads. Every `True` of `may_ask` must be followed by `answered` or `failed`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._pause_seconds = 0.0
        self._ask_again_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether questions are held back at the moment, but for a trial now and then."""
        return self._pause_seconds > 0

    def may_ask(self) -> bool:
        """Whether to ask now. While it is open, True is given to one caller a pause."""
        with self._lock:
            if not self.is_open:
                return True
            now = self._clock.monotonic_seconds()
            if now < self._ask_again_at:
                return False
            # The trial that is now under way may take its time; nobody else tries meanwhile.
            self._ask_again_at = now + self._pause_seconds
            return True

    def answered(self) -> None:
        """Somebody is there, whatever they said."""
        with self._lock:
            self._failures, self._pause_seconds = 0, 0.0

    def failed(self) -> None:
        """Nobody answered, or not in time."""
        with self._lock:
            self._failures += 1
            if self._failures < FAILURES_UNTIL_OPEN:
                return
            self._pause_seconds = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds), LONGEST_PAUSE_SECONDS)
            self._ask_again_at = self._clock.monotonic_seconds() + self._pause_seconds
