"""How many replicas should stand ready for the next of bursts that keep coming, each too short for new replicas?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation, vote
from policies.standing_for_bursts import QUANTILE_PERCENT, ExpectedBursts
from policies.wording import counted

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here

NAME = "recurringBursts"


class RecurringBurstsParameters(ParameterModel):
    """Replicas that stand ready for bursts which come again and again and are over before new ones could serve."""

    within_seconds: int = Field(
        default=3600,
        ge=0,
        le=86_400,
        description=(
            "Replicas stand ready for the next burst until so long after the last has begun. Default 3600: bursts that "
            "come less than hourly cost more to wait for than they are worth. 0: none stand ready."
        ),
    )
    quantile_percent: float = Field(
        default=QUANTILE_PERCENT,
        ge=50,
        le=100,
        description="Which quantile of what the last bursts took is kept ready. Default 90; 100 is the largest.",
    )
    expected_amplification: float | None = Field(
        default=None,
        ge=1,
        le=1000,
        description=(
            "How tall a burst may be that comes at any time, the first one too: so many times the calm's load at its "
            "height, as a graph of requests a second shows it. Replicas for so much always stand ready; bursts that "
            "are seen correct it, and count for more from the fifth in a day. Left out: the first is not expected."
        ),
    )


def recommend_recurring_bursts(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """The quantile of what the last bursts took at their height, with all of the replicas' time.

    It votes while bursts recur, in policies with objectives (only there is the work known that a burst brings), and
    always in policies that expect them.
    """
    bursts, parameters = decision_input.recurring_bursts, decision_input.parameters
    if decision_input.expected_bursts is not None:
        return (_vote_for_expected(decision_input.expected_bursts),)
    if bursts is None or (parameters.objectives is None and parameters.recurring_bursts.expected_amplification is None):
        return ()
    minutes_ago = (decision_input.now_seconds - bursts.last_began_at_seconds) / 60.0
    return (
        vote(
            NAME,
            Reason.RECURRING_BURSTS,
            float(bursts.replicas),
            1.0,
            "the next of recurring bursts ({}, the last {} min ago) needs",
            {
                "bursts": float(bursts.bursts),
                "lastBeganSecondsAgo": 60.0 * minutes_ago,
                "longestSeconds": bursts.longest_seconds,
            },
            terms=(counted(bursts.bursts, "burst") + " so far", minutes_ago),
            reads_replicas=False,
            is_forecast=True,
        ),
    )


def _vote_for_expected(bursts: ExpectedBursts) -> ScalingRecommendation:
    return vote(
        NAME,
        Reason.EXPECTED_BURSTS,
        float(bursts.replicas),
        1.0,
        "bursts of {} times the calm's load ({} replicas' time), which the policy expects, need",
        {"amplification": bursts.amplification, "calmBareReplicas": bursts.calm_bare_need},
        terms=(bursts.amplification, bursts.calm_bare_need),
        reads_replicas=False,
        is_forecast=True,
    )
