"""What may happen while a pool cannot be seen, in whole or in part?"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field

from policies.constraints.constraint import Limited
from policies.constraints.stuck_replicas import count_with_stuck
from policies.history import held_replicas
from policies.observation import MetricsObservation
from policies.parameter_model import ParameterModel
from policies.reasons import Reason
from policies.wording import counted, duration

if TYPE_CHECKING:
    from policies.recommendation import ScalingRecommendation
    from policies.situation import Situation

# A gap that lasts is a fact to live with: lowering is blocked so long, then it goes on with care. A block that never
# ends lets every peak stay for good, and the pool grows to 2.5 times what it needs.
LOW_COVERAGE_BLOCK_SECONDS = 900.0


class FallbackBehavior(StrEnum):
    """What the fallback's count means. There is no word for fewer replicas: missing data never lowers a count."""

    CURRENT_IF_HIGHER = "CurrentIfHigher"


class FallbackParameters(ParameterModel):
    """The count that a pool goes to when it has not been seen for `holdSeconds`."""

    replicas: int = Field(ge=0, le=100_000, description="Replicas to run while blind.")
    behavior: FallbackBehavior = Field(
        default=FallbackBehavior.CURRENT_IF_HIGHER,
        description="CurrentIfHigher, the only one: never fewer than the last desired count.",
    )


class MissingDataParameters(ParameterModel):
    """How long the last desired count is held while nothing is seen, and what then."""

    hold_seconds: int = Field(
        default=120,
        ge=0,
        le=86_400,
        description="Seconds without usable metrics before the fallback rules. Default 120: a Prometheus restart.",
    )
    fallback: FallbackParameters | None = Field(
        default=None, description="Without it the last desired count is held for as long as the pool is not seen."
    )


def limit_by_missing_data(situation: Situation, replicas: int) -> Limited:
    """The count that may be concluded from what is seen: growth easily, shrinking only if unseen replicas may be full.

    - blind: the last desired count (after holdSeconds the fallback), or more where a vote that needs no replica says so
    - recovering: the same, or more where any vote says so
    - a vote's signal is unknown: no shrinking
    - low coverage: no shrinking for 15 min without a further loss; then one replica at a time, with unseen ones full
    - only a forecast has an opinion: no shrinking
    - else: shrinking to what is needed with unseen replicas counted as full, and with what unready ones still hold
    """
    sight = situation.sight
    if sight.is_blind or sight.is_recovering:
        return _hold(situation, replicas)
    if replicas >= situation.current_replicas:
        return Limited(replicas, Reason.NOT_LIMITED, sight.message)
    return _shrink_with_care(situation, replicas)


def is_refusal(situation: Situation, reason: Reason) -> bool:
    """Whether this limit held the count for want of a metric, in a policy in an HPA's terms alone.

    Like HPA's refusal it is then no recommendation to look back on. Where votes rest on replicas it is one: after an
    outage a full window must be seen again before anything shrinks.
    """
    if situation.reads_replicas:
        return False
    return reason is Reason.SIGNAL_UNKNOWN or (situation.sight.is_blind and reason is situation.sight.reason)


def _hold(situation: Situation, replicas: int) -> Limited:
    sight = situation.sight
    held = held_replicas(situation.history, situation.decision_input.replicas.spec)
    reason, held_by = sight.reason, "held"
    fallback = situation.parameters.missing_data.fallback
    if sight.is_in_fallback and fallback is not None:
        held = max(fallback.replicas, held)
        reason, held_by = Reason.FALLBACK if sight.is_blind else sight.reason, "fallback"
    asked_for = _asked_without_replicas(situation) if sight.is_blind else replicas
    after = max(held, asked_for)
    if after == replicas and not sight.is_blind:
        return Limited(after, Reason.NOT_LIMITED, sight.message)
    message = f"{held_by} at {after}" if after == held else f"{after} asked for over the {held} that are {held_by}"
    return Limited(after, reason, f"{message}, {sight.message}")


def _asked_without_replicas(situation: Situation) -> int:
    """The largest vote that needs no replica to be seen: schedules, pending requests, a user's own query."""
    return max((vote.rounded_up for vote in situation.recommendations if not vote.reads_replicas), default=0)


def _shrink_with_care(situation: Situation, replicas: int) -> Limited:
    current = situation.current_replicas
    unknown = _first_unknown(situation)
    if unknown is not None:
        return Limited(current, Reason.SIGNAL_UNKNOWN, f"held at {current}: {unknown.message}")
    if _only_forecasts(situation):
        return Limited(current, Reason.FORECAST, f"held at {current}: a forecast alone lowers nothing")
    sight = situation.sight
    low_since = sight.low_coverage_since_seconds
    if low_since is not None and situation.now_seconds - low_since < LOW_COVERAGE_BLOCK_SECONDS:
        seconds = duration(situation.now_seconds - low_since)
        return Limited(current, Reason.LOW_COVERAGE, f"held at {current}: for {seconds} now only {sight.message}")
    cautious = _cautious_replicas(situation)
    after = min(current, max(replicas, cautious))
    reason, message = Reason.NOT_LIMITED, sight.message
    if after > replicas:
        reason, message = _why_cautious(situation, after)
    if low_since is not None and after < current - 1:
        after = current - 1
        reason, message = Reason.LOW_COVERAGE, f"{after}, one replica at a time: {sight.message}"
    return Limited(after, reason, message)


def _why_cautious(situation: Situation, after: int) -> tuple[Reason, str]:
    metrics = situation.decision_input.metrics
    if isinstance(metrics, MetricsObservation) and metrics.unsteady_replicas:
        unsteady = counted(metrics.unsteady_replicas, "replica")
        return Reason.UNSTEADY_REPLICAS, f"kept at {after}: {unsteady} not ready, or standing still, with requests"
    return Reason.LOW_COVERAGE, f"kept at {after}: unseen replicas may be full"


def _only_forecasts(situation: Situation) -> bool:
    opinions = [vote for vote in situation.recommendations if vote.replicas is not None and not vote.is_exact]
    return bool(opinions) and all(vote.is_forecast for vote in opinions)


def _first_unknown(situation: Situation) -> ScalingRecommendation | None:
    return next((vote for vote in situation.recommendations if vote.reason is Reason.SIGNAL_UNKNOWN), None)


def _cautious_replicas(situation: Situation) -> int:
    """What is needed if unseen replicas are full; the present count if that is within tolerance; 0 if all is seen."""
    needs = [vote.cautious_replicas or 0.0 for vote in situation.recommendations if _has_unseen_replicas(vote)]
    if not needs:
        return 0
    current = situation.current_replicas
    need = max(needs)
    if need >= current * (1.0 - situation.parameters.behavior.scale_down.tolerance):
        return current
    return count_with_stuck(situation.decision_input.replicas, math.ceil(need))


def _has_unseen_replicas(vote: ScalingRecommendation) -> bool:
    return vote.replicas is not None and vote.cautious_replicas is not None and vote.cautious_replicas > vote.replicas
