"""What is remembered of a pool between two decisions? Every part is bounded by the windows of the rules that read it.

`decide` returns the next history. What the caller then wrote (or failed to write) is not known to it: the caller adds
a rescale that has happened by `with_rescale`, and nothing where the write failed, so a failed patch is never an event.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

# Longer silence than this between two decisions means that the time between them was not seen. Two missed 30 s ticks.
LONGEST_GAP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class TimedRecommendation:
    """A recommendation before stabilization, and when it was last made (unix seconds)."""

    at_seconds: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of the count that we have written: positive up, negative down. Changes by others are no events."""

    at_seconds: float
    change: int


@dataclass(frozen=True, slots=True)
class ScalingHistory:
    """What the next decision needs to know of the earlier ones. `None`: it has not happened, or does not hold now.

    `complete_since_seconds` is the time since which every recommendation is in `recommendations`; a restart without
    a saved history sets it to the start. `recommendations` has one entry for each distinct count, at the last time it
    was recommended (the stabilization windows ask for no more), the newest last.
    """

    complete_since_seconds: float
    recommendations: tuple[TimedRecommendation, ...] = ()
    scale_events: tuple[ScaleEvent, ...] = ()
    last_desired_replicas: int | None = None
    last_seen_replicas: int | None = None  # the target's own count when that was decided
    blind_since_seconds: float | None = None  # set until three good readings have followed
    consecutive_good_readings: int = 0
    is_in_fallback: bool = False
    low_coverage_since_seconds: float | None = None  # since when no more replicas have been missing than now
    most_missing_replicas: int = 0  # since then
    idle_since_seconds: float | None = None  # since when counters prove that there is no request
    is_scaled_to_zero: bool = False  # our own last rescale was to zero


def new_history(now_seconds: float, spec_replicas: int) -> ScalingHistory:
    """A history that begins now: the present count is its first recommendation, as in the HorizontalPodAutoscaler."""
    return ScalingHistory(
        complete_since_seconds=now_seconds,
        recommendations=(TimedRecommendation(now_seconds, spec_replicas),),
    )


def with_rescale(history: ScalingHistory, now_seconds: float, from_replicas: int, to_replicas: int) -> ScalingHistory:
    """The history after the caller has written `to_replicas` over `from_replicas`; call it for nothing else.

    It becomes an event of the rate policies, and a target at zero is known to be there by our doing.
    """
    event = ScaleEvent(now_seconds, to_replicas - from_replicas)
    return replace(
        history,
        scale_events=(*history.scale_events, event),
        is_scaled_to_zero=to_replicas == 0,
    )


def with_recommendation(
    history: ScalingHistory, now_seconds: float, replicas: int, kept_seconds: float
) -> ScalingHistory:
    """The history with one more recommendation, and without those that are older than `kept_seconds`."""
    younger = tuple(
        earlier
        for earlier in history.recommendations
        if earlier.replicas != replicas and now_seconds - earlier.at_seconds < kept_seconds
    )
    return replace(history, recommendations=(*younger, TimedRecommendation(now_seconds, replicas)))


def without_old_events(history: ScalingHistory, now_seconds: float, kept_seconds: float) -> ScalingHistory:
    """The history without scale events of `kept_seconds` or more."""
    if all(now_seconds - event.at_seconds < kept_seconds for event in history.scale_events):
        return history
    events = tuple(event for event in history.scale_events if now_seconds - event.at_seconds < kept_seconds)
    return replace(history, scale_events=events)


def after_any_gap(history: ScalingHistory, now_seconds: float) -> ScalingHistory:
    """The history as it may be relied on now: complete only since now where nothing was decided for two minutes."""
    if not history.recommendations or now_seconds - history.recommendations[-1].at_seconds <= LONGEST_GAP_SECONDS:
        return history
    return replace(history, complete_since_seconds=now_seconds, idle_since_seconds=None)


def held_replicas(history: ScalingHistory, spec_replicas: int) -> int:
    """The count to hold where nothing may be concluded from the signals.

    It is the last desired count or the present one, whichever is more: a wish that could not be written yet is kept
    up, and no lowering that was not carried out is carried out blind. A count that somebody else has set since is a
    fact, and held as it is.
    """
    if history.last_desired_replicas is None:
        return spec_replicas
    set_by_others = spec_replicas not in (history.last_seen_replicas, history.last_desired_replicas)
    return spec_replicas if set_by_others else max(spec_replicas, history.last_desired_replicas)
