"""How long to wait before the next try."""

from __future__ import annotations

from collections.abc import Callable

FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 30.0
# A server may ask for any wait; one absurd header must not silence us for a day.
LONGEST_RETRY_AFTER_SECONDS = 120.0


class Backoff:
    """Delays that double from 0.5 s to 30 s, each shortened at random by up to a half.

    The chance is what keeps many watches (and many controllers) from coming back in step after the API server was
    away. `random` gives numbers in [0, 1).
    """

    def __init__(
        self,
        random: Callable[[], float],
        first_seconds: float = FIRST_DELAY_SECONDS,
        longest_seconds: float = LONGEST_DELAY_SECONDS,
    ) -> None:
        self._random = random
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._next_seconds = first_seconds

    def next_delay_seconds(self, retry_after_seconds: float | None = None) -> float:
        """The delay before the next try; the one after it is twice as long.

        `retry_after_seconds` is what the server asked for. Everybody was told the same number, so the delay comes on
        top of it: later by chance, never sooner. It counts for at most two minutes.
        """
        delay = self._next_seconds
        self._next_seconds = min(delay * 2.0, self._longest_seconds)
        return min(retry_after_seconds or 0.0, LONGEST_RETRY_AFTER_SECONDS) + delay * (1.0 - 0.5 * self._random())

    def reset(self) -> None:
        """Begins again with the shortest delay: the last try went well."""
        self._next_seconds = self._first_seconds

    def chance(self) -> float:
        """A number in [0, 1) from the same source, for spreading other times."""
        return self._random()

    def again(self) -> Backoff:
        """A new one with the same bounds and the same source of chance."""
        return Backoff(self._random, self._first_seconds, self._longest_seconds)
