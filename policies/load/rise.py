"""Does the load rise, and how fast? By the arrivals of the last five minutes, where they rise beyond their noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from policies.observation import MetricsObservation, ObservationUnavailable
from policies.recommendation import NoOpinion
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.signals import Signal

# Arrivals are means of a minute, so this is five of them. Over three minutes noise looks like a rise, over seven most
# of a cold start is over before a rise is seen.
LOOK_BACK_SECONDS = 300.0
# Of the look back, before anything is said.
LEAST_SEEN_SHARE = 0.8
LEAST_LOOKS = 8
# What is less, from the first to the last, could as well be the coming and going of a calm load.
LEAST_RISE = 0.10
NOISE_DEVIATIONS = 3.0
# Of the line's rise in so many seconds, up to now, to be taken for a rise that goes on.
STILL_RISING_SHARE, STILL_SECONDS = 0.5, 60.0


class TimedArrivals(NamedTuple):
    """Requests per second that arrived in the minute before a look (unix seconds)."""

    at_seconds: float
    per_second: float


@dataclass(frozen=True, slots=True)
class LoadRise:
    """A straight line through the arrivals, as shares of those of the last minute: where it is now, and its slope."""

    share_now: float
    share_per_second: float

    def growth(self, ahead_seconds: float) -> float:
        """By what share more arrives so many seconds from now, if it goes on; never less than 0."""
        return max(0.0, self.share_now + self.share_per_second * ahead_seconds - 1.0)


def watch_arrivals(
    looks: Sequence[TimedArrivals], metrics: MetricsObservation | ObservationUnavailable, now_seconds: float
) -> tuple[TimedArrivals, ...]:
    """The looks of the last five minutes with one more, where the arrivals are known."""
    kept = tuple(look for look in looks if now_seconds - LOOK_BACK_SECONDS <= look.at_seconds < now_seconds)
    arrived = known_signal(metrics, Signal.REQUESTS_ARRIVED)
    if isinstance(arrived, NoOpinion):
        return kept
    return (*kept, TimedArrivals(now_seconds, over_all_replicas(arrived, 0.0).likely))


def rise_of(looks: Sequence[TimedArrivals]) -> LoadRise | None:
    """How fast the arrivals rise: the straight line through all looks, by least squares.

    None where fewer than four of five minutes are seen, where the line rises by less than a tenth of what arrives now
    or by less than three times what the looks stray from it, and where the last minute brought less than half of what
    the line says: through a step a line rises as well, and goes nowhere.
    """
    if len(looks) < LEAST_LOOKS or looks[-1].at_seconds - looks[0].at_seconds < LEAST_SEEN_SHARE * LOOK_BACK_SECONDS:
        return None
    now_seconds, now_per_second = looks[-1]
    times = [look.at_seconds - now_seconds for look in looks]
    rates = [look.per_second for look in looks]
    mean_time, mean_rate = math.fsum(times) / len(looks), math.fsum(rates) / len(looks)
    spread = math.fsum((time - mean_time) ** 2 for time in times)
    slope = math.fsum((t - mean_time) * (r - mean_rate) for t, r in zip(times, rates, strict=True)) / spread
    strays = math.fsum((r - mean_rate - slope * (t - mean_time)) ** 2 for t, r in zip(times, rates, strict=True))
    rise = slope * LOOK_BACK_SECONDS
    if (
        now_per_second <= 0
        or rise < LEAST_RISE * now_per_second
        or rise < NOISE_DEVIATIONS * math.sqrt(strays / len(looks))
    ):
        return None
    if not _still_rises(looks, slope):
        return None
    return LoadRise((mean_rate - slope * mean_time) / now_per_second, slope / now_per_second)


def _still_rises(looks: Sequence[TimedArrivals], slope: float) -> bool:
    now_seconds, now_per_second = looks[-1]
    minute_ago = next(look for look in reversed(looks) if now_seconds - look.at_seconds >= STILL_SECONDS)
    line = slope * (now_seconds - minute_ago.at_seconds)
    return now_per_second - minute_ago.per_second >= STILL_RISING_SHARE * line
