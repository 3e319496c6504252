"""How long does a replica of this pool take from being asked for until it is Ready? Learned from its own starts.

A start has three phases: until it has a node (`node`), until its containers run (`image`: pull and init containers),
and until it is Ready (`load`: weights, compilation, warm-up).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Enough for a 0.95 quantile, and a pool that starts one replica an hour forgets an old image in two days.
KEPT_STARTS = 50
# The weight of a start halves with every 20 later ones, so that three slow starts in a row are the new L90.
HALF_LIFE_STARTS = 20.0
# A replica may take 1.5 times what 19 of 20 starts take, and never less than five minutes, before it counts as stuck.
START_LIMIT_FACTOR = 1.5
SHORTEST_START_LIMIT_SECONDS = 300.0
# A pod that the scheduler could not place for two minutes, or for 1.5 times what half of the pool's starts have waited,
# waits for a node that may never come. A node with accelerators takes three minutes and more on some clouds.
SHORTEST_NODE_LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ObservedStart:
    """One finished start of a replica, seconds a phase; None: the phase could not be told from the next one."""

    node_seconds: float | None
    image_seconds: float | None
    load_seconds: float | None

    @property
    def seconds(self) -> float:
        """From being asked for until Ready."""
        return (self.node_seconds or 0.0) + (self.image_seconds or 0.0) + (self.load_seconds or 0.0)


@dataclass(frozen=True, slots=True)
class ColdStart:
    """How long starts take: half of them at most `l50_seconds`, 90 % `l90_seconds`, 95 % `l95_seconds`.

    The phases are medians, None where none was seen. `starts` is how many starts it was learned from; with 0 it is the
    policy's prior.
    """

    l50_seconds: float
    l90_seconds: float
    l95_seconds: float
    node_seconds: float | None = None
    image_seconds: float | None = None
    load_seconds: float | None = None
    starts: int = 0

    @property
    def is_measured(self) -> bool:
        """Whether any start of this pool has been seen."""
        return self.starts > 0

    @property
    def start_limit_seconds(self) -> float:
        """How long a replica may take to become Ready before it counts as stuck: 1.5 L95, at least 300 s."""
        return max(START_LIMIT_FACTOR * self.l95_seconds, SHORTEST_START_LIMIT_SECONDS)

    @property
    def node_limit_seconds(self) -> float:
        """How long a replica may wait for its node before it counts as stuck: 1.5 medians of that, at least 120 s."""
        usual_seconds = START_LIMIT_FACTOR * (self.node_seconds or 0.0)
        return min(max(usual_seconds, SHORTEST_NODE_LIMIT_SECONDS), self.start_limit_seconds)


def learn_cold_start(starts: Sequence[ObservedStart], prior_seconds: float) -> ColdStart:
    """The cold start by the last 50 of `starts` (oldest first); the prior alone where there are none.

    The prior counts as one start before the first. So a start that takes longer than the prior is believed at once,
    while L90 comes below the prior only with the eighth shorter one and L95 with the fifteenth: to wait too long
    costs a little, to trust in a short start too soon costs requests. Quantiles are the least value that so much of
    the weight does not exceed.
    """
    prior_seconds = float(prior_seconds)
    if not starts:
        return ColdStart(prior_seconds, prior_seconds, prior_seconds)
    kept = starts[-KEPT_STARTS:]
    weights = [_weight(age) for age in range(len(kept) - 1, -1, -1)]
    totals = [(start.seconds, weight) for start, weight in zip(kept, weights, strict=True)]
    if len(kept) < KEPT_STARTS:
        totals.append((prior_seconds, _weight(len(kept))))
    return ColdStart(
        l50_seconds=_quantile(totals, 0.50),
        l90_seconds=_quantile(totals, 0.90),
        l95_seconds=_quantile(totals, 0.95),
        node_seconds=_median((start.node_seconds for start in kept), weights),
        image_seconds=_median((start.image_seconds for start in kept), weights),
        load_seconds=_median((start.load_seconds for start in kept), weights),
        starts=len(kept),
    )


def _weight(later_starts: int) -> float:
    return math.exp2(-later_starts / HALF_LIFE_STARTS)


def _median(seconds: Iterable[float | None], weights: Iterable[float]) -> float | None:
    known = [(value, weight) for value, weight in zip(seconds, weights, strict=True) if value is not None]
    return _quantile(known, 0.50) if known else None


def _quantile(weighted: Iterable[tuple[float, float]], share: float) -> float:
    """The least value with at least this share of the weight at or below it."""
    ascending = sorted(weighted)
    needed = share * sum(weight for _, weight in ascending)
    below = 0.0
    for value, weight in ascending:
        below += weight
        if below >= needed:
            return value
    return ascending[-1][0]  # the sum in another order may differ in its last bit
