"""How many replicas that stand ready would serve bursts like those that were seen?

Where bursts recur, `recommenders/recurring_bursts.py` keeps so many.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from policies.bursts import KEPT_SECONDS, Burst, BurstMemory, calm_replicas

# Three in a day are no accident any more.
BURSTS_TO_NAME = 3
# The condition's quantile of the peaks, and the vote's by default.
QUANTILE_PERCENT = 90.0
# A burst is at its height for a minute only, so replicas that stand for it need not have all the time that this takes:
# so much of it before anything is known. In simulation MISSED_AT_HEIGHT of its requests are outside their objectives in
# its worst two minutes where they just have it, and about three times as many with a tenth fewer replicas.
SHARE_OF_HEIGHT = 0.95
MISSED_AT_HEIGHT = 0.07
STEEPNESS = 12.0
# As if so many bursts had been served by as many replicas as they just take, and missed what was foretold.
FORETOLD_BURSTS = 2.0
# Beyond it nearly all requests miss, whatever a replica can do.
MOST_TOLD = 1.2
LEAST_CORRECTION, MOST_CORRECTION = 0.75, 1.25
# The largest of n bursts is exceeded by the next with a chance of 1 / (n + 1): so much more is kept after the first,
# half as much after the second, a third after the third.
MARGIN_OF_ONE = 0.6
# Bursts that the policy expects count as if so many of their height had been seen.
BURSTS_EXPECTED = 4


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


@dataclass(frozen=True, slots=True)
class ExpectedBursts:
    """Bursts that the policy expects at any time, where none recur that were seen: all that `decide` knows.

    `replicas` would serve them: of `amplification` times the calm's load, which takes all the time of so many replicas,
    and less or more where those of the last day were so.
    """

    replicas: int
    amplification: float
    calm_bare_need: float


def standing_capacity(memory: BurstMemory, now_seconds: float) -> StandingCapacity | None:
    """What would serve nine in ten of the last day's short bursts; None for fewer than three of them."""
    bursts = [burst for burst in memory.short if now_seconds - burst.began_at_seconds <= KEPT_SECONDS]
    if len(bursts) < BURSTS_TO_NAME:
        return None
    replicas = math.ceil(_quantile(bursts, QUANTILE_PERCENT))
    return StandingCapacity(
        bursts=len(bursts),
        longest_seconds=max(burst.lasted_seconds for burst in bursts),
        replicas=replicas,
        extra_replicas=max(0, replicas - min(burst.calm_replicas for burst in bursts)),
    )


def recurring_bursts(
    memory: BurstMemory,
    quantile_percent: float,
    recurs_within_seconds: float,
    now_seconds: float,
    expected_amplification: float | None = None,
) -> RecurringBursts | None:
    """The last bursts of which none came later than `recurs_within_seconds` after the one before; None for none.

    None as well where so long has passed since the last of them: they have stopped. What the policy expects counts as
    some more of them.
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
        replicas=_standing(bursts, quantile_percent, _expected_replicas(memory, expected_amplification)),
        longest_seconds=max(burst.lasted_seconds for burst in bursts),
        last_began_at_seconds=began[-1],
        calm_replicas=calm_replicas(memory) or bursts[-1].calm_replicas,
        under_way_since_seconds=None if memory.under_way is None else memory.under_way.began_at_seconds,
    )


def expected_bursts(
    memory: BurstMemory, quantile_percent: float, expected_amplification: float | None
) -> ExpectedBursts | None:
    """What the policy expects, and what the bursts of the last day make of it; None while no calm is known."""
    expected_replicas, calm_bare_need = _expected_replicas(memory, expected_amplification), memory.settled_bare_need
    if expected_amplification is None or expected_replicas is None or calm_bare_need is None:
        return None
    replicas = _standing(memory.short, quantile_percent, expected_replicas)
    return ExpectedBursts(replicas, expected_amplification, calm_bare_need)


def _expected_replicas(memory: BurstMemory, amplification: float | None) -> float | None:
    """What the expected bursts take at their height, in replicas with all of their time."""
    calm = memory.settled_bare_need
    return None if amplification is None or calm is None else amplification * calm


def _standing(bursts: Sequence[Burst], percent: float, expected_replicas: float | None) -> int:
    """The replicas that serve most of them; more while few have been seen, and nearer to what is expected.

    Height = (1 + 0.6 / n) q for n bursts of the quantile q. Where e is expected no room is left beyond it, and it
    counts as four bursts that were no lower than q: (n min((1 + 0.6 / n) q, m) + 4 m) / (n + 4), where m is the larger
    of e and q. One burst of 6 where 15 are expected: (1.6 x 6 + 4 x 15) / 5 = 13.9.
    """
    count, height = len(bursts), 0.0
    if bursts:
        seen = _quantile(bursts, percent)
        height = (1.0 + MARGIN_OF_ONE / count) * seen
        expected_replicas = None if expected_replicas is None else max(expected_replicas, seen)
    if expected_replicas is not None:
        height = min(height, expected_replicas)
        height = (count * height + BURSTS_EXPECTED * expected_replicas) / (count + BURSTS_EXPECTED)
    return math.ceil(share_of_height(bursts) * height)


def share_of_height(bursts: Iterable[Burst]) -> float:
    """How many replicas should stand for one that a burst takes at its height: learned from what bursts have missed.

    What is missed grows with the STEEPNESS-th power of what a burst takes by what stands for it. So where bursts have
    missed m times what is foretold of them, replicas do less than was thought, by the STEEPNESS-th root of m, and as
    many more are kept. What a replica can do is learned in calm, and may be off by a fifth.
    """
    missed, foretold = FORETOLD_BURSTS * MISSED_AT_HEIGHT, FORETOLD_BURSTS * MISSED_AT_HEIGHT
    for burst in bursts:
        taken = burst.needed_replicas / burst.standing_replicas if burst.standing_replicas else math.inf
        if burst.outside_share is not None and taken <= MOST_TOLD:
            missed += burst.outside_share
            foretold += MISSED_AT_HEIGHT * math.pow(taken, STEEPNESS)
    correction = math.pow(missed / foretold, 1.0 / STEEPNESS)
    return SHARE_OF_HEIGHT * min(max(correction, LEAST_CORRECTION), MOST_CORRECTION)


def _quantile(bursts: Sequence[Burst], percent: float) -> float:
    """What so many in a hundred of the bursts took at most, between two of them in proportion."""
    peaks = sorted(burst.needed_replicas for burst in bursts)
    place = (len(peaks) - 1) * percent / 100.0
    below = math.floor(place)
    above = min(below + 1, len(peaks) - 1)
    return peaks[below] + (place - below) * (peaks[above] - peaks[below])
