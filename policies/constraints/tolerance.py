"""Is the difference to the present count worth a change?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.constraints.constraint import Limited
from policies.hpa.metric_proposal import Tolerance, propose_average_value, propose_value, share_of_quantity
from policies.reasons import Reason
from policies.situation import largest
from policies.wording import number

if TYPE_CHECKING:
    from policies.parameters import ScalingParameters
    from policies.recommendation import ScalingRecommendation
    from policies.situation import Situation


# What stands for bursts that the policy expects is a height, and no load that goes up and down: in a day of bursts a
# tenth too many would stand for hours.
MOST_ABOVE_EXPECTED_BURSTS = 0.05


def tolerance_of(parameters: ScalingParameters) -> Tolerance:
    """The policy's band around the present count, each share as Kubernetes reads it."""
    behavior = parameters.behavior
    return Tolerance(
        up=share_of_quantity(behavior.scale_up.tolerance), down=share_of_quantity(behavior.scale_down.tolerance)
    )


def _band_of(vote: ScalingRecommendation, parameters: ScalingParameters) -> Tolerance:
    """The policy's band; no more than 5 % below the present count for a vote that stands for expected bursts."""
    band = tolerance_of(parameters)
    if vote.reason not in (Reason.RECURRING_BURSTS, Reason.EXPECTED_BURSTS):
        return band
    if parameters.recurring_bursts.expected_amplification is None:
        return band
    return Tolerance(up=band.up, down=min(band.down, MOST_ABOVE_EXPECTED_BURSTS))


def _proposed(vote: ScalingRecommendation, current: int, band: Tolerance) -> int:
    if vote.ready_replicas is None:
        return propose_average_value(vote.demand, vote.per_replica, current, band)
    return propose_value(vote.demand, vote.per_replica, current, vote.ready_replicas, band)


def limit_by_tolerance(situation: Situation, replicas: int) -> Limited:
    """The present count where the largest vote is within the band around it; exact votes are never ignored.

    As in HPA, with the target's own count in place of its status: surge pods of a rollout are no demand. Votes below
    the largest are below the band, or in it with the same result, so to judge the largest is to judge each; only votes
    by the ready replicas have a band of their own, around a ratio of 1.
    """
    tolerant = situation.binding
    if tolerant is not None and tolerant.is_exact:
        tolerant = largest(vote for vote in situation.recommendations if not vote.is_exact)
    if tolerant is None or tolerant.replicas is None:
        return Limited(replicas, Reason.NOT_LIMITED, "no vote that a tolerance applies to")
    exact = max((vote.rounded_up for vote in situation.recommendations if vote.is_exact), default=0)
    current = situation.current_replicas
    band = _band_of(tolerant, situation.parameters)
    ruling, proposed = tolerant, _proposed(tolerant, current, band)
    for by_ready in (vote for vote in situation.recommendations if vote.ready_replicas is not None):
        asked = _proposed(by_ready, current, band)
        if asked > proposed:
            ruling, proposed = by_ready, asked
    after = max(exact, proposed)
    if after == replicas:
        return Limited(replicas, Reason.NOT_LIMITED, f"{number(tolerant.replicas)} against {current} replicas")
    what, whereof = number(tolerant.replicas), str(current)
    if ruling.ready_replicas is not None:
        what, whereof = ruling.recommender, "what it should be"
    around = f"{number(100 * band.down)} % below and {number(100 * band.up)} % above"
    return Limited(after, Reason.WITHIN_TOLERANCE, f"kept at {after}: {what} is within {around} {whereof}")
