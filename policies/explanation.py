"""How is a decision said in one sentence?"""

from __future__ import annotations

from collections.abc import Iterable

from policies.observation import ReplicaCounts
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation
from policies.situation import Situation
from policies.wording import counted, joined, number


def explain(situation: Situation, desired_replicas: int, limits: Iterable[str]) -> str:
    """The count, who asks for it, who else asked for what, what limited it, and which supply is not there yet.

    `limits` are the messages of the steps that had something to say, in their order.
    """
    parts = joined((_votes(situation), *limits, _supply(situation.decision_input.replicas)))
    return f"{desired_replicas}: {parts}"


def _votes(situation: Situation) -> str:
    binding = situation.binding
    silent = [vote for vote in situation.recommendations if vote.reason is Reason.SIGNAL_UNKNOWN]
    # Blind, all are unknown, and the step that holds the count says why.
    unknown = "" if situation.sight.is_blind else ", ".join(f"{vote.recommender} unknown" for vote in silent)
    if binding is None:
        return unknown if silent else "no vote has an opinion"
    others = ", ".join(_short(vote) for vote in situation.recommendations if vote is not binding and _speaks(vote))
    advice = ", ".join(f"{_short(vote)} (advice only)" for vote in situation.advice if _speaks(vote))
    return joined((binding.message, others, advice, unknown))


def _speaks(vote: ScalingRecommendation) -> bool:
    return vote.replicas is not None


def _short(vote: ScalingRecommendation) -> str:
    return f"{vote.recommender} {number(vote.replicas or 0.0)}"


def _supply(replicas: ReplicaCounts) -> str:
    """Replicas that are asked for and do not serve."""
    return joined(
        (
            _share(replicas.starting, replicas.spec, "still starting"),
            _share(replicas.stuck - replicas.wedged, replicas.spec, "stuck"),
            _share(replicas.wedged, replicas.spec, "wedged"),
            _share(replicas.leaving, replicas.spec, "on a node about to go"),
        )
    )


def _share(count: int, of: int, doing_what: str) -> str:
    if count == 0:
        return ""
    return f"{count} of {counted(of, 'replica')} {'is' if count == 1 else 'are'} {doing_what}"
