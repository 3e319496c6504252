"""What has a simulated Prometheus scraped of each replica, and what of it can be queried already?"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from autoscaler.replay.serving_counters import ServingSnapshot

# Samples older than the longest window that anybody asks for (request sizes, 300 s) are forgotten.
KEPT_SECONDS = 330.0


@dataclass(frozen=True, slots=True)
class ScrapeSettings:
    """How often each replica is scraped, and how long it takes until a sample can be queried."""

    interval_seconds: float = 15.0
    delay_seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class ScrapedSample:
    """A replica's page as it was at one moment."""

    at_seconds: float
    page: ServingSnapshot


class ScrapedPages:
    """The samples of one pool by replica, oldest first. Of a replica that is gone they stay until they are too old."""

    def __init__(self, delay_seconds: float, copies: int = 1) -> None:
        """With `copies` each replica stands for so many, which are `name~0`, `name~1` and so on to those who ask."""
        self._copies = copies
        self.delay_seconds = delay_seconds
        self._samples: dict[str, deque[ScrapedSample]] = {}

    def add(self, replica: str, sample: ScrapedSample) -> None:
        """Keeps one sample."""
        samples = self._samples.get(replica)
        if samples is None:
            self._forget_old(sample.at_seconds)  # as often as a replica comes is often enough
            samples = self._samples[replica] = deque()
        samples.append(sample)
        while samples[0].at_seconds < sample.at_seconds - KEPT_SECONDS:
            samples.popleft()

    def _forget_old(self, now_seconds: float) -> None:
        """Drops the replicas of which nothing is new enough for any window."""
        gone = [name for name, s in self._samples.items() if s[-1].at_seconds < now_seconds - KEPT_SECONDS]
        for name in gone:
            del self._samples[name]

    def newest(self, replica: str, now_seconds: float) -> ScrapedSample | None:
        """The newest sample of a replica that can be queried at `now_seconds`; None where there is none."""
        visible_until = now_seconds - self.delay_seconds
        for sample in reversed(self._of(replica)):
            if sample.at_seconds <= visible_until:
                return sample
        return None

    def names(self, replica: str) -> tuple[str, ...]:
        """The names under which a simulated replica is seen."""
        return (replica,) if self._copies == 1 else tuple(f"{replica}~{copy}" for copy in range(self._copies))

    @property
    def replicas(self) -> tuple[str, ...]:
        """Those of which anything is remembered, those that are gone included."""
        return tuple(name for replica in self._samples for name in self.names(replica))

    def samples(self, replica: str, now_seconds: float, seconds: float) -> tuple[ScrapedSample, ...]:
        """The queryable samples of the last `seconds`, oldest first."""
        oldest, newest = now_seconds - seconds, now_seconds - self.delay_seconds
        return tuple(each for each in self._of(replica) if oldest <= each.at_seconds <= newest)

    def _of(self, replica: str) -> Sequence[ScrapedSample]:
        return self._samples.get(replica.partition("~")[0], ())

    def window(self, replica: str, now_seconds: float, seconds: float) -> tuple[ScrapedSample, ScrapedSample] | None:
        """The first and the last queryable sample of the last `seconds`; None with fewer than two."""
        first = last = None
        visible_until = now_seconds - self.delay_seconds
        for sample in reversed(self._of(replica)):
            if sample.at_seconds < now_seconds - seconds:
                break
            if sample.at_seconds <= visible_until:
                last = last or sample
                first = sample
        return (first, last) if first is not None and last is not None and first is not last else None

    def windows(self, now_seconds: float, seconds: float) -> Iterator[tuple[ScrapedSample, ScrapedSample]]:
        """The windows of all replicas that have one, those that are gone included."""
        for replica in self._samples:
            window = self.window(replica, now_seconds, seconds)
            if window is not None:
                yield window
