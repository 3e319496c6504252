"""Which of the slowly changing quantities are asked for at this tick?"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from autoscaler.prometheus.query_plan import Purpose

# A new pod's cache size is wanted sooner than at the next round minute, and so is what failed; but not at every tick:
# what failed may be too heavy.
URGENT_SECONDS = 15.0


class SlowQueries:
    """Spreads the slow queries over the ticks: each once an interval, never more at a tick than there is room for."""

    def __init__(self, interval_seconds: float) -> None:
        self._interval_seconds = interval_seconds
        self._asked_at_seconds: dict[Purpose, float] = {}

    def due(
        self, purposes: Iterable[Purpose], urgent: Collection[Purpose], room: int, now_seconds: float
    ) -> list[Purpose]:
        """At most `room` of the purposes: those never asked first, then the longest waiting. They count as asked."""
        waiting = []
        for order, purpose in enumerate(purposes):
            asked_at = self._asked_at_seconds.get(purpose)
            interval = min(URGENT_SECONDS, self._interval_seconds) if purpose in urgent else self._interval_seconds
            # A clock that was set back must not silence a query.
            if asked_at is None or not 0 <= now_seconds - asked_at < interval:
                waiting.append((-1.0 if asked_at is None else asked_at, order, purpose))
        chosen = [purpose for _, _, purpose in sorted(waiting)[:room]]
        for purpose in chosen:
            self._asked_at_seconds[purpose] = now_seconds
        return chosen

    def failed(self, purpose: Purpose, now_seconds: float) -> None:
        """Makes it due again in 15 s."""
        self._asked_at_seconds[purpose] = now_seconds - max(0.0, self._interval_seconds - URGENT_SECONDS)
