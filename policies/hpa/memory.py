"""What does a HorizontalPodAutoscaler remember? Lists in which one outdated entry is overwritten by each new one.

Our own history is pruned instead (`policies/history.py`); which entries count is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from policies.constraints.behavior import ScalingPolicy
from policies.history import ScaleEvent, TimedRecommendation


def is_outdated(at_seconds: float, now_seconds: float, kept_seconds: float) -> bool:
    """Whether an entry is older than it is kept for (strictly), so that a new one may take its place."""
    return now_seconds - at_seconds > kept_seconds


def store_recommendation(
    recommendations: Sequence[TimedRecommendation], replicas: int, now_seconds: float, kept_seconds: float
) -> tuple[TimedRecommendation, ...]:
    """The list with a new recommendation, in the place of the last outdated one or at the end."""
    stored = list(recommendations)
    place = _last_outdated([entry.at_seconds for entry in stored], now_seconds, kept_seconds)
    stored[place : place + 1] = [TimedRecommendation(now_seconds, replicas)]
    return tuple(stored)


def store_event(
    events: Sequence[ScaleEvent], change: int, now_seconds: float, policies: Sequence[ScalingPolicy] | None
) -> tuple[ScaleEvent, ...]:
    """One direction's list with a new event, in the place of the last outdated one or at the end.

    Without policies (no `behavior`) nothing is remembered.
    """
    if policies is None:
        return tuple(events)
    stored = list(events)
    place = _last_outdated([event.at_seconds for event in stored], now_seconds, longest_period_seconds(policies))
    stored[place : place + 1] = [ScaleEvent(now_seconds, change)]
    return tuple(stored)


def longest_period_seconds(policies: Iterable[ScalingPolicy]) -> float:
    """How long a direction's events are kept; 0 for no policies."""
    return float(max((policy.period_seconds for policy in policies), default=0))


def change_within(events: Iterable[ScaleEvent], now_seconds: float, period_seconds: float) -> int:
    """The sum of the changes that are younger than the period (strictly)."""
    return sum(event.change for event in events if now_seconds - event.at_seconds < period_seconds)


def _last_outdated(times_seconds: Sequence[float], now_seconds: float, kept_seconds: float) -> int:
    outdated = [
        index for index, at_seconds in enumerate(times_seconds) if is_outdated(at_seconds, now_seconds, kept_seconds)
    ]
    return outdated[-1] if outdated else len(times_seconds)
