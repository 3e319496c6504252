"""Has the need lasted? Growth takes the lowest recommendation of its window, shrinking the highest of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from policies.constraints.behavior import UNHURRIED_BEHAVIOR
from policies.constraints.constraint import Limited
from policies.history import TimedRecommendation
from policies.reasons import Reason
from policies.wording import duration

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput
    from policies.situation import Situation


# Of a pool that states no behavior. Less would give up in a trough of ten minutes what the next wave needs.
KEPT_OF_NEED = 1.5


def stabilize(
    current: int,
    proposed: int,
    recommendations: Iterable[TimedRecommendation],
    now_seconds: float,
    scale_up_window_seconds: float,
    scale_down_window_seconds: float,
) -> int:
    """The proposal held within recent recommendations: the HorizontalPodAutoscaler's rule where `behavior` is set.

    A recommendation counts while it is younger than the window (strictly). The result starts at the present count, is
    raised to the lowest of the scale-up window where that is more, and lowered to the highest of the scale-down window
    where that is less; so a falling proposal never makes it grow, nor a rising one shrink.
    """
    lowest = highest = proposed
    for recommendation in recommendations:
        age_seconds = now_seconds - recommendation.at_seconds
        if age_seconds < scale_up_window_seconds:
            lowest = min(lowest, recommendation.replicas)
        if age_seconds < scale_down_window_seconds:
            highest = max(highest, recommendation.replicas)
    return min(max(current, lowest), highest)


def without_surplus(
    held: int, proposed: int, recommendations: Iterable[TimedRecommendation], now_seconds: float, window_seconds: float
) -> int:
    """Of what a scale-down window holds: what was needed within this shorter one, and half as much again as now.

    It is for what stands far above the need: a peak that has passed, or an order that was too large.
    """
    lately = (each.replicas for each in recommendations if now_seconds - each.at_seconds < window_seconds)
    return min(held, max(proposed, math.ceil(KEPT_OF_NEED * proposed), *lately))


def scale_down_window_seconds(decision_input: DecisionInput) -> float:
    """The scale-down window, or the cold start's L90 if that is longer: what is given up takes so long to get back.

    A policy in HPA terms alone gets its own window and no more, as an HPA would give it.
    """
    parameters = decision_input.parameters
    window_seconds = float(parameters.behavior.scale_down.stabilization_window_seconds)
    return window_seconds if parameters.is_in_hpa_terms else max(window_seconds, decision_input.cold_start.l90_seconds)


def longest_window_seconds(decision_input: DecisionInput) -> float:
    """How long recommendations must be remembered."""
    scale_up_window_seconds = decision_input.parameters.behavior.scale_up.stabilization_window_seconds
    return max(scale_down_window_seconds(decision_input), float(scale_up_window_seconds))


def limit_by_stabilization(situation: Situation, replicas: int) -> Limited:
    """The count that has been asked for long enough. No shrinking before a full scale-down window has been seen."""
    current = situation.current_replicas
    history, now_seconds = situation.history, situation.now_seconds
    up_window = float(situation.parameters.behavior.scale_up.stabilization_window_seconds)
    down_window = scale_down_window_seconds(situation.decision_input)
    after = stabilize(current, replicas, history.recommendations, now_seconds, up_window, down_window)
    if replicas < after and situation.parameters.behavior == UNHURRIED_BEHAVIOR:
        window = max(down_window / 2.0, situation.decision_input.cold_start.l90_seconds)
        after = without_surplus(after, replicas, history.recommendations, now_seconds, window)
    seen_seconds = now_seconds - history.complete_since_seconds
    if after < current and seen_seconds < down_window:
        message = (
            f"held at {current}: {duration(max(seen_seconds, 0.0))} seen of the {duration(down_window)} to look back"
        )
        return Limited(current, Reason.HISTORY_INCOMPLETE, message)
    if after > replicas:
        message = f"held at {after}: so many were needed within the last {duration(down_window)}"
        return Limited(after, Reason.SCALE_DOWN_STABILIZED, message)
    if after < replicas:
        message = f"held at {after}: no more were needed for all of the last {duration(up_window)}"
        return Limited(after, Reason.SCALE_UP_STABILIZED, message)
    return Limited(after, Reason.NOT_LIMITED, "no window holds it")
