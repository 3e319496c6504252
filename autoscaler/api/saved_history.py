"""How does a pool's memory fit into its status, whatever it went through? Shorter, and never more willing to shrink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from policies.history import ScaleEvent, ScalingHistory, TimedRecommendation

# Each is far more than a pool's windows hold in practice; together they stay below 16 KiB of JSON.
MAXIMUM_PEAKS = 64
MAXIMUM_DIPS = 64
MAXIMUM_EVENTS = 128

_HISTORY: TypeAdapter[ScalingHistory] = TypeAdapter(ScalingHistory)


def to_json(history: ScalingHistory) -> str:
    """The shortened history as JSON of at most 16 KiB."""
    return _HISTORY.dump_json(shortened(history)).decode()


def from_json(text: str) -> ScalingHistory | None:
    """The history; None where the text is none of this version's.

    Every history that was saved has a recommendation: one without would claim to have seen what it does not know.
    """
    try:
        history = _HISTORY.validate_json(text)
    except ValidationError:
        return None
    return history if history.recommendations else None


def shortened(history: ScalingHistory) -> ScalingHistory:
    """The history with no more entries than its bounds, and with the same effect.

    A stabilization window asks for the highest or the lowest recommendation since some moment until now, so one that a
    later one equals or exceeds in both directions is never the answer. Beyond the bounds, the oldest are merged into
    the next younger one, which holds a count for longer than it had to be held.
    """
    peaks = _bounded(_undominated(history.recommendations, lambda replicas: replicas), MAXIMUM_PEAKS)
    dips = _bounded(_undominated(history.recommendations, lambda replicas: -replicas), MAXIMUM_DIPS)
    together = sorted({*peaks, *dips}, key=lambda each: each.at_seconds)
    return replace(
        history, recommendations=tuple(together), scale_events=_merged_events(history.scale_events, MAXIMUM_EVENTS)
    )


def _undominated(
    recommendations: Sequence[TimedRecommendation], height: Callable[[int], int]
) -> list[TimedRecommendation]:
    """Those higher than everything after them, the oldest (and highest) first."""
    found: list[TimedRecommendation] = []
    for each in reversed(recommendations):
        if not found or height(each.replicas) > height(found[-1].replicas):
            found.append(each)
    return found[::-1]


def _bounded(extremes: Sequence[TimedRecommendation], maximum: int) -> list[TimedRecommendation]:
    kept = list(extremes)
    while len(kept) > maximum:
        extreme, younger = kept[0], kept[1]
        kept[:2] = [TimedRecommendation(younger.at_seconds, extreme.replicas)]
    return kept


def _merged_events(events: Sequence[ScaleEvent], maximum: int) -> tuple[ScaleEvent, ...]:
    """Only neighbours of one direction are merged, because ups and downs are counted apart; then the oldest go."""
    kept = list(events)
    index = 0
    while len(kept) > maximum and index + 1 < len(kept):
        older, younger = kept[index], kept[index + 1]
        if (older.change > 0) == (younger.change > 0):
            kept[index : index + 2] = [ScaleEvent(younger.at_seconds, older.change + younger.change)]
        else:
            index += 1
    return tuple(kept[-maximum:])
