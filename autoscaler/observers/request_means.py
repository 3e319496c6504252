"""How long are a pool's prompts and answers on average, without jumping at every odd request?"""

from __future__ import annotations

MINIMUM_REQUESTS = 20  # below it the mean is held
MAXIMUM_CHANGE_PER_MINUTE = 0.10


class BoundedMean:
    """A mean over finished requests: None until 20 have finished, then moved by at most 10 % a minute."""

    def __init__(self) -> None:
        self.value: float | None = None
        self._at_seconds = 0.0

    def update(self, total: float | None, requests: float | None, now_seconds: float) -> None:
        """A new window's tokens and requests. Missing numbers and fewer than 20 requests leave the mean as it is."""
        if total is None or requests is None or requests < MINIMUM_REQUESTS:
            return
        measured = total / requests
        if self.value is None:
            self.value = measured
        else:
            reach = self.value * MAXIMUM_CHANGE_PER_MINUTE * max(0.0, now_seconds - self._at_seconds) / 60.0
            # A mean of zero could never move again.
            self.value = measured if self.value == 0 else min(max(measured, self.value - reach), self.value + reach)
        self._at_seconds = now_seconds


class HitShare:
    """The share of prompt tokens found in the prefix cache; None until there was a query, held while there is none."""

    def __init__(self) -> None:
        self.value: float | None = None

    def update(self, hits: float | None, queries: float | None) -> None:
        """A new window's hits and queries; 0 / 0 leaves the share as it is."""
        if hits is not None and queries:
            self.value = min(1.0, max(0.0, hits / queries))
