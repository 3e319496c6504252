"""Does the load come in bursts that are over before a replica could start, and what would it take to serve them?

No policy that reacts can save such a burst: what it orders comes too late. Standing replicas can, or a schedule, or a
forecast that is told that misses are dear.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies.cold_start import ColdStart
from policies.recommendation import NoOpinion, ScalingRecommendation
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.signals import Signal

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput

# Up to 1 / 0.7 of what the ready replicas should have they can still do: 0.7 is their usual safe utilisation.
BEYOND_READY = 1.4
# Three in a day are no accident any more; of more only the last are kept.
BURSTS_TO_NAME = 3
KEPT_BURSTS = 24
KEPT_SECONDS = 86_400.0
# Of one look in the means of calm times: five minutes at a tick of 15 s.
CALM_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class Burst:
    """A rise of the load above what was ready: when it began, how long it lasted, replicas ready then and needed."""

    began_at_seconds: float
    lasted_seconds: float
    ready_replicas: int
    needed_replicas: int


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """The replicas that votes ask for by what they measure, and the requests that arrive per second (None: not known).

    Of a burst the need tells too much for too long: what has piled up is needed until it is done.
    """

    need: float | None
    arrivals_per_second: float | None


@dataclass(frozen=True, slots=True)
class BurstUnderWay:
    """A burst that is not over: the most replicas so far by what arrives, and by what the votes ask for."""

    began_at_seconds: float
    ready_replicas: int
    most_by_arrivals: float
    most_needed: float


@dataclass(frozen=True, slots=True)
class BurstMemory:
    """The bursts of the last day that were over before a replica could start, oldest first, and one under way.

    `calm_need` and `calm_arrivals_per_second` are means over some five minutes without a burst: at other arrivals the
    need is as many times larger.
    """

    short: tuple[Burst, ...] = ()
    under_way: BurstUnderWay | None = None
    calm_need: float | None = None
    calm_arrivals_per_second: float | None = None


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


def measured_load(decision_input: DecisionInput, recommendations: Iterable[ScalingRecommendation]) -> MeasuredLoad:
    """The load of one look: the largest vote that measures it, and the arrivals of the last half minute."""
    votes = [vote for vote in recommendations if not (vote.is_exact or vote.is_forecast or vote.is_advice)]
    need = max((vote.replicas for vote in votes if vote.replicas is not None), default=None)
    arrivals = known_signal(decision_input.metrics, Signal.REQUESTS_ARRIVED_RECENTLY)
    return MeasuredLoad(need, None if isinstance(arrivals, NoOpinion) else over_all_replicas(arrivals, 0.0).likely)


def watch_bursts(
    memory: BurstMemory, load: MeasuredLoad, ready_replicas: int, cold_start: ColdStart, now_seconds: float
) -> BurstMemory:
    """The memory after one more look; ready replicas are those that do something.

    A burst begins when 1.4 times of what is ready are needed for what arrives, and ends when what was ready at its
    beginning suffices. It is short if that took less than the median start. What cannot be seen to its end is no burst.
    """
    short = tuple(burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS)
    memory = replace(memory, short=short)
    if load.need is None:
        return replace(memory, under_way=None)
    by_arrivals, burst = _need_by_arrivals(memory, load, load.need), memory.under_way
    if burst is None:
        if ready_replicas > 0 and by_arrivals >= BEYOND_READY * ready_replicas:
            return replace(memory, under_way=BurstUnderWay(now_seconds, ready_replicas, by_arrivals, load.need))
        return _calm(memory, load)
    burst = replace(
        burst,
        most_by_arrivals=max(by_arrivals, burst.most_by_arrivals),
        most_needed=max(load.need, burst.most_needed),
    )
    if by_arrivals > burst.ready_replicas:
        return replace(memory, under_way=burst)
    lasted_seconds = now_seconds - burst.began_at_seconds
    needed = min(burst.most_by_arrivals, burst.most_needed)
    if lasted_seconds >= cold_start.l50_seconds or needed < BEYOND_READY * burst.ready_replicas:
        return replace(memory, under_way=None)
    ended = Burst(burst.began_at_seconds, lasted_seconds, burst.ready_replicas, math.ceil(needed))
    return replace(memory, short=(*short, ended)[-KEPT_BURSTS:], under_way=None)


def _need_by_arrivals(memory: BurstMemory, load: MeasuredLoad, need: float) -> float:
    """The need in proportion to what arrives; as the votes have it where arrivals are not known."""
    calm = memory.calm_arrivals_per_second
    if load.arrivals_per_second is None or memory.calm_need is None or not calm:
        return need
    return memory.calm_need * load.arrivals_per_second / calm


def _calm(memory: BurstMemory, load: MeasuredLoad) -> BurstMemory:
    return replace(
        memory,
        calm_need=_moved(memory.calm_need, load.need),
        calm_arrivals_per_second=_moved(memory.calm_arrivals_per_second, load.arrivals_per_second),
    )


def _moved(mean: float | None, value: float | None) -> float | None:
    if mean is None or value is None:
        return value if mean is None else mean
    return mean + CALM_WEIGHT * (value - mean)


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
