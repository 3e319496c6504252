"""Does the load come in bursts that are largely over before new replicas could serve, and what would serve them?

No policy that reacts can save such a burst: what it orders comes too late. Replicas that stand ready can. Where bursts
recur, `recommenders/recurring_bursts.py` keeps as many as the last ones took.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from policies.cold_start import ColdStart
from policies.recommendation import NoOpinion, ScalingRecommendation
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.recommenders.work_rate import NAME as WORK_RATE
from policies.signals import Signal

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput

# Of the time of replicas that stand in calm so much is taken: a usual safe utilisation.
CALM_SHARE = 0.7
# A burst takes more than all that the replicas of the calm before it can do, by so much; less is noise.
BEYOND_CALM = 1.4
LEAST_EXTRA_REPLICAS = 2
# What lasts longer than so many starts is mostly served by replicas that were ordered at its beginning.
LONGEST_STARTS = 3.0
# While replicas become Ready, what arrives at them is not counted yet. So an end is believed when the votes have come
# near to calm as well, or after so many starts.
BELIEVED_CALM = 1.5
DOUBTED_STARTS = 2.0
# Three in a day are no accident any more; of more only the last are kept.
BURSTS_TO_NAME = 3
KEPT_BURSTS = 24
KEPT_SECONDS = 86_400.0
# The condition's quantile of the peaks, and the vote's by default.
QUANTILE_PERCENT = 90.0
# The largest of n bursts is exceeded by the next with a chance of 1 / (n + 1): so much more is kept after the first,
# half as much after the second, a third after the third.
MARGIN_OF_ONE = 0.25
# Of one look in the means of calm times: five minutes at a tick of 15 s.
CALM_WEIGHT = 0.05


@dataclass(frozen=True, slots=True)
class Burst:
    """A rise of the load: when it began, how long it lasted, replicas that calm took before it, and that it took."""

    began_at_seconds: float
    lasted_seconds: float
    calm_replicas: int
    needed_replicas: int


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """What is measured of the load at one look; None: not known.

    `need` are the replicas that votes ask for, `bare_need` those that could just do it with all of their time: the work
    rate where it votes. Of a burst the need tells too much for too long: what has piled up is needed until it is done.
    """

    need: float | None
    bare_need: float | None
    arrivals_per_second: float | None


@dataclass(frozen=True, slots=True)
class BurstUnderWay:
    """A burst that is not over: the most replicas so far by what arrives, and by what is measured.

    `fell_at_seconds` is since when so little arrives as in calm, while the votes still ask for more.
    """

    began_at_seconds: float
    calm_replicas: int
    most_by_arrivals: float
    most_needed: float
    fell_at_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BurstMemory:
    """The bursts of the last day that were too short for new replicas, oldest first, and one under way.

    The other two are means over some five minutes without a burst: at other arrivals the bare need is as many times
    larger.
    """

    short: tuple[Burst, ...] = ()
    under_way: BurstUnderWay | None = None
    calm_bare_need: float | None = None
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


@dataclass(frozen=True, slots=True)
class RecurringBursts:
    """Bursts of which each came soon after the one before it, so that the next may come soon: all that `decide` knows.

    `replicas` would serve most of them and leave room for a larger one, `longest_seconds` is the longest that lasted,
    `calm_replicas` stand in the calm between them. `under_way_since_seconds` is None where none is under way as far as
    the last look knew.
    """

    bursts: int
    replicas: int
    longest_seconds: float
    last_began_at_seconds: float
    calm_replicas: int
    under_way_since_seconds: float | None = None


def measured_load(decision_input: DecisionInput, recommendations: Iterable[ScalingRecommendation]) -> MeasuredLoad:
    """The load of one look: the largest vote that measures it, the work, and the arrivals of the last half minute."""
    votes = [vote for vote in recommendations if not (vote.is_exact or vote.is_forecast or vote.is_advice)]
    need = bare_need = max((vote.replicas for vote in votes if vote.replicas is not None), default=None)
    for vote in votes:
        if vote.recommender == WORK_RATE:
            bare_need = None if vote.replicas is None else vote.demand
    arrivals = known_signal(decision_input.metrics, Signal.REQUESTS_ARRIVED_RECENTLY)
    per_second = None if isinstance(arrivals, NoOpinion) else over_all_replicas(arrivals, 0.0).likely
    return MeasuredLoad(need, bare_need, per_second)


def watch_bursts(
    memory: BurstMemory, load: MeasuredLoad, ready_replicas: int, cold_start: ColdStart, now_seconds: float
) -> BurstMemory:
    """The memory after one more look; ready replicas are those that do something.

    A burst begins when what arrives takes 1.4 times of what stands in the calm before it, and ends when that suffices
    again. What lasts longer than three median starts is no burst but another load. What cannot be seen to its end is no
    burst either.
    """
    kept = tuple(burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS)
    memory = replace(memory, short=kept)
    if load.need is None or load.bare_need is None:
        return replace(memory, under_way=None)
    by_arrivals, burst = _by_arrivals(memory, load, load.bare_need), memory.under_way
    if burst is None:
        calm = _calm_replicas(memory)
        if ready_replicas > 0 and calm is not None and _is_beyond(by_arrivals, calm):
            return replace(memory, under_way=BurstUnderWay(now_seconds, calm, by_arrivals, load.need))
        return _calm(memory, load)
    burst = replace(
        burst,
        most_by_arrivals=max(by_arrivals, burst.most_by_arrivals),
        most_needed=max(load.need, burst.most_needed),
    )
    has_fallen = by_arrivals <= burst.calm_replicas
    fell_at_seconds = burst.fell_at_seconds if has_fallen and burst.fell_at_seconds is not None else now_seconds
    if fell_at_seconds - burst.began_at_seconds > LONGEST_STARTS * cold_start.l50_seconds:
        return BurstMemory(kept, None, load.bare_need, load.arrivals_per_second)
    if not has_fallen:
        return replace(memory, under_way=replace(burst, fell_at_seconds=None))
    is_doubted = load.need > BELIEVED_CALM * burst.calm_replicas
    if is_doubted and now_seconds - fell_at_seconds < DOUBTED_STARTS * cold_start.l50_seconds:
        return replace(memory, under_way=replace(burst, fell_at_seconds=fell_at_seconds))
    return replace(memory, short=_with_ended(memory.short, burst, fell_at_seconds), under_way=None)


def _with_ended(short: tuple[Burst, ...], burst: BurstUnderWay, ended_at_seconds: float) -> tuple[Burst, ...]:
    needed = min(burst.most_by_arrivals, burst.most_needed)
    if not _is_beyond(needed, burst.calm_replicas):
        return short
    lasted_seconds = ended_at_seconds - burst.began_at_seconds
    ended = Burst(burst.began_at_seconds, lasted_seconds, burst.calm_replicas, math.ceil(needed))
    return (*short, ended)[-KEPT_BURSTS:]


def _calm_replicas(memory: BurstMemory) -> int | None:
    """What stands in calm; None where no calm has been seen yet."""
    return None if memory.calm_bare_need is None else max(1, math.ceil(memory.calm_bare_need / CALM_SHARE))


def _is_beyond(needed: float, calm_replicas: int) -> bool:
    return needed >= BEYOND_CALM * calm_replicas and math.ceil(needed) >= calm_replicas + LEAST_EXTRA_REPLICAS


def _by_arrivals(memory: BurstMemory, load: MeasuredLoad, bare_need: float) -> float:
    """The bare need in proportion to what arrives; as it is measured where arrivals are not known."""
    calm = memory.calm_arrivals_per_second
    if load.arrivals_per_second is None or memory.calm_bare_need is None or not calm:
        return bare_need
    return memory.calm_bare_need * load.arrivals_per_second / calm


def _calm(memory: BurstMemory, load: MeasuredLoad) -> BurstMemory:
    return replace(
        memory,
        calm_bare_need=_moved(memory.calm_bare_need, load.bare_need),
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
    replicas = _quantile(bursts, QUANTILE_PERCENT)
    return StandingCapacity(
        bursts=len(bursts),
        longest_seconds=max(burst.lasted_seconds for burst in bursts),
        replicas=replicas,
        extra_replicas=max(0, replicas - min(burst.calm_replicas for burst in bursts)),
    )


def recurring_bursts(
    memory: BurstMemory, quantile_percent: float, recurs_within_seconds: float, now_seconds: float
) -> RecurringBursts | None:
    """The last bursts of which none came later than `recurs_within_seconds` after the one before; None for none.

    None as well where so long has passed since the last of them: they have stopped.
    """
    began = [burst.began_at_seconds for burst in memory.short]
    if memory.under_way is not None:
        began.append(memory.under_way.began_at_seconds)
    if not memory.short or now_seconds - began[-1] > recurs_within_seconds:
        return None
    apart = [
        place for place, (one, next_one) in enumerate(pairwise(began), 1) if next_one - one > recurs_within_seconds
    ]
    bursts = memory.short[apart[-1] if apart else 0 :]
    if not bursts:
        return None
    return RecurringBursts(
        bursts=len(bursts),
        replicas=math.ceil(_quantile(bursts, quantile_percent) * (1.0 + MARGIN_OF_ONE / len(bursts))),
        longest_seconds=max(burst.lasted_seconds for burst in bursts),
        last_began_at_seconds=began[-1],
        calm_replicas=_calm_replicas(memory) or bursts[-1].calm_replicas,
        under_way_since_seconds=None if memory.under_way is None else memory.under_way.began_at_seconds,
    )


def _quantile(bursts: Sequence[Burst], percent: float) -> int:
    """What so many in a hundred of the bursts took at most; of fewer than ten, the largest at 90."""
    peaks = sorted(burst.needed_replicas for burst in bursts)
    return peaks[-1 - min(len(peaks) - 1, math.floor(len(peaks) * (100.0 - percent) / 100.0))]
