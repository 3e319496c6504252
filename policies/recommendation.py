"""What is a vote? An absolute count of replicas that one rule asks for, or its word that it has no opinion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from policies.hpa.metric_proposal import MAXIMUM_INT32, whole_replicas
from policies.reasons import Reason
from policies.wording import filled_in, number

# A record holds no infinity, and this is where a count ends.
MOST_REPLICAS = float(MAXIMUM_INT32)


class ScalingRecommendation(NamedTuple):
    """One vote: replicas as a real number, or None for "no opinion" with the reason why.

    `replicas` is `demand / per_replica`, as an External metric with an AverageValue target is in HPA. Replicas that
    are not seen stand at their peers' mean in it; in `cautious_replicas` they count as full, and lowering is judged by
    that one. `values` holds the terms of the formula by name, units in the names, so that a record can be checked by
    hand. `words` say it, with {} for each of `terms` in turn. With `ready_replicas` it is HPA's Value target instead:
    so many replicas times `demand / per_replica`.

    A named tuple, as what a step makes of a count is: a decision makes dozens of them, and a frozen dataclass of as
    many fields takes two to five times as long.
    """

    recommender: str
    replicas: float | None
    reason: Reason
    words: str
    values: Mapping[str, float]
    terms: tuple[float | str, ...] = ()
    demand: float = 0.0
    per_replica: float = 1.0
    ready_replicas: int | None = None
    cautious_replicas: float | None = None
    reads_replicas: bool = True  # False: known without any replica (gateway, calendar, a user's own query)
    is_exact: bool = False  # a count somebody has written down: no tolerance applies
    is_forecast: bool = False  # of what is to come: it proves nothing of now, and alone it lowers nothing
    is_advice: bool = False  # recorded, and without effect

    @property
    def message(self) -> str:
        """The vote in words, its count at the end. Made here and not with the vote: most are read by nobody."""
        if self.replicas is None:
            return self.words
        return f"{filled_in(self.words, self.terms)} {number(self.replicas)}"

    @property
    def rounded_up(self) -> int:
        """Whole replicas; 0 for no opinion."""
        return 0 if self.replicas is None else whole_replicas(self.replicas)


@dataclass(frozen=True, slots=True)
class NoOpinion:
    """Why a vote cannot be given: its signal is absent (`SignalAbsent`) or unknown (`SignalUnknown`)."""

    reason: Reason
    message: str


def vote(
    recommender: str,
    reason: Reason,
    demand: float,
    per_replica: float,
    words: str,
    values: Mapping[str, float],
    *,
    terms: tuple[float | str, ...] = (),
    ready_replicas: int | None = None,
    cautious_demand: float | None = None,
    reads_replicas: bool = True,
    is_exact: bool = False,
    is_forecast: bool = False,
    is_advice: bool = False,
) -> ScalingRecommendation:
    """A vote of `demand / per_replica` replicas, times `ready_replicas` if these are given.

    `words` have a {} for each of `terms`; the count comes behind them. `cautious_demand` defaults to the demand:
    nothing is unknown. No vote is for more than the int32 maximum.
    """
    ratio = demand / per_replica
    replicas = cautious = min(ratio if ready_replicas is None else ratio * ready_replicas, MOST_REPLICAS)
    if cautious_demand is not None and cautious_demand > demand:
        cautious = min(cautious_demand / per_replica, MOST_REPLICAS)
    return ScalingRecommendation(
        recommender=recommender,
        replicas=replicas,
        reason=reason,
        words=words,
        values=values,
        terms=terms,
        ready_replicas=ready_replicas,
        demand=demand,
        per_replica=per_replica,
        cautious_replicas=cautious,
        reads_replicas=reads_replicas,
        is_exact=is_exact,
        is_forecast=is_forecast,
        is_advice=is_advice,
    )


def abstention(
    recommender: str,
    why: NoOpinion,
    *,
    reads_replicas: bool = True,
    is_forecast: bool = False,
    is_advice: bool = False,
) -> ScalingRecommendation:
    """A vote that has no opinion."""
    return ScalingRecommendation(
        recommender,
        None,
        why.reason,
        why.message,
        {},
        reads_replicas=reads_replicas,
        is_forecast=is_forecast,
        is_advice=is_advice,
    )
