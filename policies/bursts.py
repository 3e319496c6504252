"""Does the load come in bursts that are largely over before new replicas could serve?

No policy that reacts can save such a burst: what it orders comes too late. Replicas that stand ready can:
`standing_for_bursts.py` says how many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies.cold_start import ColdStart
from policies.observation import ObservationUnavailable
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
# Of more only the last are kept.
KEPT_BURSTS = 24
KEPT_SECONDS = 86_400.0
# Of one look in the means of calm times: five minutes at a tick of 15 s.
CALM_WEIGHT = 0.05
# Bursts that a policy expects are told in multiples of the calm, so the calm must be one: not known before three
# minutes (a controller may begin in a burst), nor of a load that was thought a burst before it has lasted twenty more.
FIRST_LOOKS_TO_SETTLE, LATER_LOOKS_TO_SETTLE = 12, 80


@dataclass(frozen=True, slots=True)
class Burst:
    """A rise of the load: when it began, how long it lasted, replicas that calm took before it, and that it took.

    `standing_replicas` were ready when it began, and `outside_share` of the requests were outside their objectives in
    the worst two minutes of it; None: not measured.
    """

    began_at_seconds: float
    lasted_seconds: float
    calm_replicas: int
    needed_replicas: int
    standing_replicas: int = 0
    outside_share: float | None = None


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """What is measured of the load at one look; None: not known.

    `need` are the replicas that votes ask for, `bare_need` those that could just do it with all of their time: the work
    rate where it votes. Of a burst the need tells too much for too long: what has piled up is needed until it is done.
    `outside_share` of the last two minutes' requests were outside their objectives.
    """

    need: float | None
    bare_need: float | None
    arrivals_per_second: float | None
    outside_share: float | None = None


@dataclass(frozen=True, slots=True)
class BurstUnderWay:
    """A burst that is not over: the most replicas so far by what arrives, and by what is measured.

    `fell_at_seconds` is since when so little arrives as in calm, while the votes still ask for more. The last two are
    as in `Burst`, so far.
    """

    began_at_seconds: float
    calm_replicas: int
    most_by_arrivals: float
    most_needed: float
    fell_at_seconds: float | None = None
    standing_replicas: int = 0
    outside_share: float | None = None


@dataclass(frozen=True, slots=True)
class BurstMemory:
    """The bursts of the last day that were too short for new replicas, oldest first, and one under way.

    The next two are means over some five minutes without a burst: at other arrivals the bare need is as many times
    larger. `settled_bare_need` is that of a calm which is surely none of a burst, and falls with the load at once; so
    many looks more are wanted before it follows the mean.
    """

    short: tuple[Burst, ...] = ()
    under_way: BurstUnderWay | None = None
    calm_bare_need: float | None = None
    calm_arrivals_per_second: float | None = None
    settled_bare_need: float | None = None
    looks_to_settle: int = FIRST_LOOKS_TO_SETTLE


NO_BURSTS = BurstMemory()


def measured_load(decision_input: DecisionInput, recommendations: Iterable[ScalingRecommendation]) -> MeasuredLoad:
    """The load of one look: the largest vote that measures it, the work, and the arrivals of the last half minute."""
    votes = [vote for vote in recommendations if not (vote.is_exact or vote.is_forecast or vote.is_advice)]
    need = bare_need = max((vote.replicas for vote in votes if vote.replicas is not None), default=None)
    for vote in votes:
        if vote.recommender == WORK_RATE:
            bare_need = None if vote.replicas is None else vote.demand
    arrivals = known_signal(decision_input.metrics, Signal.REQUESTS_ARRIVED_RECENTLY)
    per_second = None if isinstance(arrivals, NoOpinion) else over_all_replicas(arrivals, 0.0).likely
    metrics = decision_input.metrics
    outside = None if isinstance(metrics, ObservationUnavailable) else metrics.latency.outside_objectives_share
    return MeasuredLoad(need, bare_need, per_second, outside)


def watch_bursts(
    memory: BurstMemory, load: MeasuredLoad, ready_replicas: int, cold_start: ColdStart, now_seconds: float
) -> BurstMemory:
    """The memory after one more look; ready replicas are those that do something.

    A burst begins when what arrives takes 1.4 times of what stands in the calm before it, and ends when that suffices
    again. What lasts longer than three median starts is no burst but another load. What cannot be seen to its end is no
    burst either.
    """
    kept = tuple(burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS)
    if len(kept) < len(memory.short):
        memory = replace(memory, short=kept)
    if load.need is None or load.bare_need is None:
        looks_to_settle = memory.looks_to_settle - (load.arrivals_per_second is not None)
        return replace(memory, under_way=None, looks_to_settle=max(0, looks_to_settle))
    by_arrivals, burst = _by_arrivals(memory, load, load.bare_need), memory.under_way
    if burst is None:
        calm = calm_replicas(memory)
        if ready_replicas > 0 and calm is not None and _is_beyond(by_arrivals, calm):
            begun = BurstUnderWay(now_seconds, calm, by_arrivals, load.need, standing_replicas=ready_replicas)
            return replace(memory, under_way=begun)
        return _calm(memory, load)
    burst = replace(
        burst,
        most_by_arrivals=max(by_arrivals, burst.most_by_arrivals),
        most_needed=max(load.need, burst.most_needed),
        outside_share=_larger(load.outside_share, burst.outside_share),
    )
    has_fallen = by_arrivals <= burst.calm_replicas
    fell_at_seconds = burst.fell_at_seconds if has_fallen and burst.fell_at_seconds is not None else now_seconds
    if fell_at_seconds - burst.began_at_seconds > LONGEST_STARTS * cold_start.l50_seconds:
        settled, later = memory.settled_bare_need, LATER_LOOKS_TO_SETTLE
        return BurstMemory(kept, None, load.bare_need, load.arrivals_per_second, settled, later)
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
    ended = Burst(
        burst.began_at_seconds,
        lasted_seconds,
        burst.calm_replicas,
        math.ceil(needed),
        burst.standing_replicas,
        burst.outside_share,
    )
    return (*short, ended)[-KEPT_BURSTS:]


def _larger(one: float | None, other: float | None) -> float | None:
    return max((share for share in (one, other) if share is not None), default=None)


def calm_replicas(memory: BurstMemory) -> int | None:
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
    mean, looks_to_settle = _moved(memory.calm_bare_need, load.bare_need), max(0, memory.looks_to_settle - 1)
    settled = memory.settled_bare_need
    if looks_to_settle == 0 and mean is not None and load.bare_need is not None:
        settled = min(mean, load.bare_need)
    return replace(
        memory,
        calm_bare_need=mean,
        calm_arrivals_per_second=_moved(memory.calm_arrivals_per_second, load.arrivals_per_second),
        settled_bare_need=settled,
        looks_to_settle=looks_to_settle,
    )


def _moved(mean: float | None, value: float | None) -> float | None:
    if mean is None or value is None:
        return value if mean is None else mean
    return mean + CALM_WEIGHT * (value - mean)
