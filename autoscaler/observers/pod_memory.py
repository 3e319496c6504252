"""What is remembered of a pod's metrics page, and is its newest sample still good?"""

from __future__ import annotations

from dataclasses import dataclass

from policies.signals import Unknown

MAXIMUM_AGE_SECONDS = 120.0  # an older sample is unknown, whatever its steady lag
ASSUMED_INTERVAL_SECONDS = 15.0  # between two scrapes, until it has been seen
MISSED_INTERVALS = 2.0
IN_FLIGHT_KEPT_SECONDS = 75.0  # a minute, and a scrape that is late
LEAST_HELD_SECONDS = 45.0  # samples over so long are taken for the minute that rates look back on


class PodMemory:
    """A pod's newest sample: when it was taken, when it came, its signals by place (None: not on the page).

    `in_flight` are its requests, running and waiting, at the samples of the last minute: (when, how many), the oldest
    first. `was_torn` where the last look found only a part of the page, and left all of this as it was.
    """

    __slots__ = (
        "came_at_seconds",
        "fills_rate_window",
        "first_seen_seconds",
        "has_advanced",
        "in_flight",
        "sampled_at_seconds",
        "values",
        "was_torn",
    )

    def __init__(self, sampled_at_seconds: float, now_seconds: float) -> None:
        self.sampled_at_seconds = sampled_at_seconds
        self.came_at_seconds = now_seconds
        self.first_seen_seconds = now_seconds
        self.has_advanced = False
        self.fills_rate_window = False
        self.was_torn = False
        self.values: list[float | None] = []
        self.in_flight: list[tuple[float, float]] = []

    def advance(self, sampled_at_seconds: float, now_seconds: float) -> float:
        """Takes note of the newest sample's time; returns by how many seconds it is newer, 0.0 when it is the same."""
        newer_by = sampled_at_seconds - self.sampled_at_seconds
        if newer_by <= 0:
            return 0.0
        self.sampled_at_seconds = sampled_at_seconds
        self.came_at_seconds = now_seconds
        self.has_advanced = True
        return newer_by

    def note_in_flight(self, requests: float) -> None:
        """Keeps what is in flight at the newest sample, once a sample."""
        kept, at = self.in_flight, self.sampled_at_seconds
        if kept and kept[-1][0] >= at:
            return
        kept.append((at, requests))
        while kept[0][0] < at - IN_FLIGHT_KEPT_SECONDS:
            del kept[0]

    def in_flight_growth_per_second(self, window_seconds: float) -> float | None:
        """Over the window that ends at the newest sample, or the nearest to it that was seen; None with one sample."""
        if len(self.in_flight) < 2:
            return None
        last_at, last = self.in_flight[-1]
        first_at, first = min(self.in_flight[:-1], key=lambda each: abs(last_at - each[0] - window_seconds))
        return (last - first) / (last_at - first_at)

    @property
    def was_watched(self) -> bool:
        """Whether most of the last minute was seen."""
        return bool(self.in_flight) and self.in_flight[-1][0] - self.in_flight[0][0] >= LEAST_HELD_SECONDS

    @property
    def has_requests(self) -> bool:
        """Whether any ran or waited at the newest sample."""
        return bool(self.in_flight) and self.in_flight[-1][1] > 0

    def held_throughout(self) -> float:
        """The fewest requests that it had at any sample of the last minute; 0.0 where most of it was not seen."""
        return min(requests for _, requests in self.in_flight) if self.was_watched else 0.0


@dataclass(slots=True)
class ScrapeInterval:
    """The time between two samples of a pool's pods, learned from them (at least the time between two ticks)."""

    seconds: float = ASSUMED_INTERVAL_SECONDS
    is_learned: bool = False

    def learn(self, mean_advance_seconds: float) -> None:
        """One tick's mean advance. An outage looks like a long interval, so it grows by at most 20 % at a time."""
        if not self.is_learned:
            self.seconds, self.is_learned = mean_advance_seconds, True
        else:
            self.seconds += 0.2 * (min(mean_advance_seconds, 2 * self.seconds) - self.seconds)


@dataclass(frozen=True, slots=True)
class Good:
    """A sample that counts. Held: nothing newer has come within two scrape intervals."""

    age_seconds: float
    is_held: bool


def judge(memory: PodMemory, interval: ScrapeInterval, now_seconds: float) -> Good | Unknown:
    """Whether a pod's newest sample counts at `now_seconds` of Prometheus' clock.

    What matters is that new samples keep coming, not how old they are: a steady lag is no missing data. Of a pod that
    was just met no arrival was seen, so there its age must do.
    """
    age = max(0.0, now_seconds - memory.sampled_at_seconds)
    if age > MAXIMUM_AGE_SECONDS:
        return Unknown(f"the newest sample is {age:.0f} s old")
    patience = MISSED_INTERVALS * interval.seconds
    waited = now_seconds - memory.came_at_seconds if memory.has_advanced else age
    # Samples have times in milliseconds; what a subtraction adds to them is noise.
    return Good(round(age, 3), is_held=waited > patience)
