"""How long are a pool's prompts and answers on average, without jumping at every odd request?"""

from __future__ import annotations

MINIMUM_REQUESTS = 20.0  # below it nothing is said
# So many of those that came before count beside the new ones. Their mean is 8 % off, as lengths of requests differ; a
# pool of ten requests a second has as many in half a minute, and its mean is that of the last window.
REMEMBERED_REQUESTS = 300.0


def unseen_seconds(last_at_seconds: float | None, window_seconds: float, now_seconds: float) -> float:
    """How much of a window that ends now is newer than the last one; all of the first, nothing of one that ends before
    the last, by a clock that was set back.
    """
    if last_at_seconds is None:
        return window_seconds
    return min(max(0.0, now_seconds - last_at_seconds), window_seconds)


class RequestMean:
    """A mean over finished requests: of those that are new, and of 300 before them. None until 20 have finished."""

    def __init__(self) -> None:
        self._mean = 0.0
        self._requests = 0.0
        self._at_seconds: float | None = None

    @property
    def value(self) -> float | None:
        """Tokens of a request; None until 20 have finished."""
        return self._mean if self._requests >= MINIMUM_REQUESTS else None

    def update(self, total: float | None, requests: float | None, window_seconds: float, now_seconds: float) -> None:
        """A window's tokens and requests, of which those count that are newer than the last window.

        Missing numbers, numbers that are none, and a window without requests leave the mean as it is.
        """
        if total is None or requests is None or not requests > 0 or not total >= 0:
            return
        seconds = unseen_seconds(self._at_seconds, window_seconds, now_seconds)
        self._at_seconds = now_seconds
        new = requests * seconds / window_seconds
        if new <= 0:
            return
        remembered = min(self._requests, REMEMBERED_REQUESTS)
        self._requests = remembered + new
        self._mean += (total / requests - self._mean) * new / self._requests


class HitShare:
    """The share of prompt tokens found in the prefix cache; None until there was a query, held while there is none."""

    def __init__(self) -> None:
        self.value: float | None = None

    def update(self, hits: float | None, queries: float | None) -> None:
        """A new window's hits and queries; 0 / 0 leaves the share as it is."""
        if hits is not None and queries:
            self.value = min(1.0, max(0.0, hits / queries))
