"""What would the count be without the binding vote, without one of the limits, or if an advice had acted?

Judged for this one moment, with what is seen and remembered as it is: the answer to "who is it that holds this count?",
not to "how would the pool have fared?".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from policies.recommendation import ScalingRecommendation
from policies.situation import Situation, largest

# The count that comes of a situation; with a limit's name, of the same limits without that one.
CountOf = Callable[[Situation, str | None], int]


@dataclass(frozen=True, slots=True)
class Counterfactuals:
    """Counts by the name of a vote or of a limit.

    `without` has the binding vote, and each limit that changed the count; `with_advice` each vote that is advice only.
    """

    without: Mapping[str, int]
    with_advice: Mapping[str, int]


def counterfactuals(situation: Situation, changed_by: tuple[str, ...], count_of: CountOf) -> Counterfactuals:
    """The counts for a situation in which the limits `changed_by` have changed the count."""
    without = {name: count_of(situation, name) for name in changed_by}
    if situation.binding is not None:
        without = {situation.binding.recommender: count_of(without_binding_vote(situation), None), **without}
    with_advice = {
        advice.recommender: count_of(_with_votes(situation, (*situation.recommendations, advice)), None)
        for advice in situation.advice
        if advice.replicas is not None
    }
    return Counterfactuals(without, with_advice)


def without_binding_vote(situation: Situation) -> Situation:
    """The situation in which the largest vote has not been given."""
    return _with_votes(situation, tuple(vote for vote in situation.recommendations if vote is not situation.binding))


def _with_votes(situation: Situation, votes: tuple[ScalingRecommendation, ...]) -> Situation:
    return replace(situation, recommendations=votes, binding=largest(votes))
