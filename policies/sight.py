"""How well is the pool seen at this moment, and since when?

Three states: seen; partly seen (fewer than nine in ten ready replicas have fresh samples); blind (fewer than half, no
answer at all, or no vote that measures has a value). Out of blindness lead three good readings in a row.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.decision_input import DecisionInput
from policies.history import ScalingHistory
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation
from policies.wording import duration

# One replica in ten that restarts is ordinary; more is a fault of the scrape, and the rest do not speak for it.
FULL_COVERAGE = 0.9
# With fewer than half of the replicas the sum is a guess.
LEAST_COVERAGE = 0.5
# One good answer of a Prometheus that is starting up proves little; three are 45 s at the default tick.
GOOD_READINGS_TO_RECOVER = 3


@dataclass(frozen=True, slots=True)
class Sight:
    """What is seen, and what of it the next decision must know (see the same names in `ScalingHistory`)."""

    reason: Reason  # NotLimited where all is seen
    message: str
    is_blind: bool
    blind_since_seconds: float | None
    consecutive_good_readings: int
    is_in_fallback: bool
    low_coverage_since_seconds: float | None
    most_missing_replicas: int

    @property
    def is_recovering(self) -> bool:
        """The readings are good again, but fewer than three in a row."""
        return self.blind_since_seconds is not None and not self.is_blind


def assess_sight(
    decision_input: DecisionInput, history: ScalingHistory, recommendations: tuple[ScalingRecommendation, ...]
) -> Sight:
    """The sight of this moment, carried on from the history's."""
    now_seconds = decision_input.now_seconds
    metrics = decision_input.metrics
    low_since, most_missing = _low_coverage(decision_input, history, recommendations)
    blindness = _blindness(metrics, recommendations)
    if blindness is not None:
        since = now_seconds if history.blind_since_seconds is None else history.blind_since_seconds
        missing_data = decision_input.parameters.missing_data
        held_too_long = now_seconds - since >= missing_data.hold_seconds
        return Sight(
            reason=blindness.reason,
            message=f"blind for {duration(now_seconds - since)}: {blindness.message}",
            is_blind=True,
            blind_since_seconds=since,
            consecutive_good_readings=0,
            is_in_fallback=missing_data.fallback is not None and (history.is_in_fallback or held_too_long),
            low_coverage_since_seconds=low_since,
            most_missing_replicas=most_missing,
        )
    good_readings = min(history.consecutive_good_readings + 1, GOOD_READINGS_TO_RECOVER)
    # Without a vote on the pool's own replicas nothing restarts that a single good answer might deceive: as in HPA.
    enough = GOOD_READINGS_TO_RECOVER if history.is_in_fallback or reads_replicas(recommendations) else 1
    is_recovering = history.blind_since_seconds is not None and good_readings < enough
    if is_recovering:
        reason, message = Reason.RECOVERING, f"{good_readings} of {GOOD_READINGS_TO_RECOVER} good readings in a row"
    elif low_since is not None and isinstance(metrics, MetricsObservation):
        reason, message = Reason.LOW_COVERAGE, _coverage_in_words(metrics)
    else:
        reason, message = Reason.NOT_LIMITED, ""
    return Sight(
        reason=reason,
        message=message,
        is_blind=False,
        blind_since_seconds=history.blind_since_seconds if is_recovering else None,
        consecutive_good_readings=good_readings,
        is_in_fallback=is_recovering and history.is_in_fallback,
        low_coverage_since_seconds=low_since,
        most_missing_replicas=most_missing,
    )


def reads_replicas(recommendations: tuple[ScalingRecommendation, ...]) -> bool:
    """Whether any vote rests on what the pool's own replicas show."""
    return any(recommendation.reads_replicas for recommendation in recommendations)


def _blindness(
    metrics: MetricsObservation | ObservationUnavailable, recommendations: tuple[ScalingRecommendation, ...]
) -> NoOpinion | None:
    """Why nothing may be concluded from what is measured; None where something may, or nothing need be measured."""
    measured = [vote for vote in recommendations if not (vote.is_exact or vote.is_forecast)]
    if not measured:
        return None
    if isinstance(metrics, ObservationUnavailable):
        return NoOpinion(Reason.METRICS_UNAVAILABLE, metrics.message)
    from_replicas = [recommendation for recommendation in measured if recommendation.reads_replicas]
    if from_replicas and metrics.coverage < LEAST_COVERAGE:
        return NoOpinion(Reason.LOW_COVERAGE, _coverage_in_words(metrics))
    # A vote whose signal the engine does not have tells nothing, so it cannot speak for those that could.
    telling = [each for each in from_replicas if each.reason is not Reason.SIGNAL_ABSENT] or measured
    if metrics.ready_replicas == 0:  # nothing to see yet is not blindness: a pool that starts needs no fallback
        telling = [recommendation for recommendation in measured if not recommendation.reads_replicas]
    unknown = [recommendation for recommendation in telling if recommendation.reason is Reason.SIGNAL_UNKNOWN]
    if unknown and all(recommendation.replicas is None for recommendation in telling):
        return NoOpinion(Reason.SIGNAL_UNKNOWN, unknown[0].message)
    return None


def _low_coverage(
    decision_input: DecisionInput, history: ScalingHistory, recommendations: tuple[ScalingRecommendation, ...]
) -> tuple[float | None, int]:
    """Since when no more replicas are missing than now, and the most since; None and 0 if all is seen."""
    metrics = decision_input.metrics
    if isinstance(metrics, ObservationUnavailable):
        return history.low_coverage_since_seconds, history.most_missing_replicas
    if not reads_replicas(recommendations) or metrics.coverage >= FULL_COVERAGE:
        return None, 0
    missing = metrics.ready_replicas - metrics.fresh_replicas
    since = history.low_coverage_since_seconds
    if since is None or missing > history.most_missing_replicas:
        return decision_input.now_seconds, missing
    return since, history.most_missing_replicas


def _coverage_in_words(metrics: MetricsObservation) -> str:
    seen = f"{metrics.fresh_replicas} of {metrics.ready_replicas} ready replicas have fresh samples"
    # Of a pool that shows nothing at all, the observer says what to look for.
    return f"{seen}: {metrics.warnings[-1]}" if metrics.fresh_replicas == 0 and metrics.warnings else seen
