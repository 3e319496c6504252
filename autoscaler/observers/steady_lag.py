"""By how much do all samples come late, always? A remote write or a store behind Prometheus does that.

What is late and keeps coming is not missing. Gauges tell the newest value whatever its age, but a rate over the last
minute has nothing to go by where that minute has not arrived yet: its window must end where the samples do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

# The least of so many ticks: a pod that is scraped every 15 s shows each age between the lag and 15 s more.
TICKS = 4
# Less is what a scrape interval and its transport take. A window reaches over that.
LEAST_LAG_SECONDS = 30.0
# Queries are written anew when the lag moves by so much, not at every millisecond.
STEP_SECONDS = 5


class SteadyLag:
    """The lag that all pods share, whole seconds; 0 where a single one is in time."""

    def __init__(self) -> None:
        self._least_ages: deque[float] = deque(maxlen=TICKS)

    @property
    def seconds(self) -> int:
        """By how much the newest samples of all are late when they come; 0 for less than half a minute."""
        least = min(self._least_ages, default=0.0)
        return 0 if least <= LEAST_LAG_SECONDS else int(least // STEP_SECONDS) * STEP_SECONDS

    def learn(self, ages_at_arrival_seconds: Iterable[float]) -> None:
        """One tick's samples that are new: how old they were when they came. Without any, nothing is learned."""
        least = min(ages_at_arrival_seconds, default=None)
        if least is not None:
            self._least_ages.append(least)
