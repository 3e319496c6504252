"""Does the load come in bursts that are over before a replica could start, and what would it take to serve them?

No policy that reacts can save such a burst: what it orders comes too late. Standing replicas can, or a schedule, or a
forecast that is told that misses are dear.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from policies.cold_start import ColdStart
from policies.recommendation import ScalingRecommendation

# Up to 1 / 0.7 of what the ready replicas should have they can still do: 0.7 is their usual safe utilisation.
BEYOND_READY = 1.4
# Three in a day are no accident any more; of more only the last are kept.
BURSTS_TO_NAME = 3
KEPT_BURSTS = 24
KEPT_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class Burst:
    """A rise of the need above what was ready: when it began, how long it lasted, replicas ready then and needed."""

    began_at_seconds: float
    lasted_seconds: float
    ready_replicas: int
    needed_replicas: int


@dataclass(frozen=True, slots=True)
class BurstMemory:
    """The bursts of the last day that were over before a replica could start, oldest first, and one under way."""

    short: tuple[Burst, ...] = ()
    under_way: Burst | None = None


NO_BURSTS = BurstMemory()


@dataclass(frozen=True, slots=True)
class StandingCapacity:
    """What would serve the bursts of the last day: replicas that always stand, and the hours they cost in a day."""

    bursts: int
    longest_seconds: float
    replicas: int
    extra_replicas: int

    @property
    def replica_hours_per_day(self) -> int:
        """Of the extra replicas, day and night."""
        return 24 * self.extra_replicas


def measured_need(recommendations: Iterable[ScalingRecommendation]) -> int | None:
    """The replicas that the load asks for now; None where no vote that measures it has an opinion."""
    votes = [vote for vote in recommendations if not (vote.is_exact or vote.is_forecast or vote.is_advice)]
    return max((vote.rounded_up for vote in votes if vote.replicas is not None), default=None)


def watch_bursts(
    memory: BurstMemory, need: int | None, ready_replicas: int, cold_start: ColdStart, now_seconds: float
) -> BurstMemory:
    """The memory after one more look; ready replicas are those that do something.

    A burst begins when 1.4 times of what is ready are needed, and ends when what was ready at its beginning suffices.
    It is short if that took less than the median start. What cannot be seen to its end is no burst.
    """
    short = tuple(burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS)
    burst = memory.under_way
    if need is None:
        return BurstMemory(short)
    if burst is None:
        begins = ready_replicas > 0 and need >= BEYOND_READY * ready_replicas
        return BurstMemory(short, Burst(now_seconds, 0.0, ready_replicas, need) if begins else None)
    lasted_seconds = now_seconds - burst.began_at_seconds
    if need > burst.ready_replicas:
        needed = max(need, burst.needed_replicas)
        return BurstMemory(short, replace(burst, lasted_seconds=lasted_seconds, needed_replicas=needed))
    if lasted_seconds >= cold_start.l50_seconds:
        return BurstMemory(short)
    return BurstMemory((*short, replace(burst, lasted_seconds=lasted_seconds))[-KEPT_BURSTS:])


def standing_capacity(memory: BurstMemory, now_seconds: float) -> StandingCapacity | None:
    """What would serve nine in ten of the last day's short bursts; None for fewer than three of them."""
    bursts = [burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS]
    if len(bursts) < BURSTS_TO_NAME:
        return None
    peaks = sorted(burst.needed_replicas for burst in bursts)
    replicas = peaks[-1 - len(peaks) // 10]
    fewest_ready = min(burst.ready_replicas for burst in bursts)
    return StandingCapacity(
        bursts=len(bursts),
        longest_seconds=max(burst.lasted_seconds for burst in bursts),
        replicas=replicas,
        extra_replicas=max(0, replicas - fewest_ready),
    )
