"""What does a HorizontalPodAutoscaler remember? Lists in which one outdated entry is overwritten by each new one.

Events are kept the same way by us (`policies/history.py`). Recommendations we prune; which of them count is the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.history import TimedRecommendation


def is_outdated(at_seconds: float, now_seconds: float, kept_seconds: float) -> bool:
    """Whether an entry is older than it is kept for (strictly), so that a new one may take its place."""
    return now_seconds - at_seconds > kept_seconds


def store_recommendation(
    recommendations: Sequence[TimedRecommendation], replicas: int, now_seconds: float, kept_seconds: float
) -> tuple[TimedRecommendation, ...]:
    """The list with a new recommendation, in the place of the last outdated one or at the end."""
    outdated = [
        index for index, entry in enumerate(recommendations) if is_outdated(entry.at_seconds, now_seconds, kept_seconds)
    ]
    place = outdated[-1] if outdated else len(recommendations)
    return (*recommendations[:place], TimedRecommendation(now_seconds, replicas), *recommendations[place + 1 :])
