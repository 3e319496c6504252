from __future__ import annotations

from collections.abc import Mapping

import pytest

from policies.cold_start import ColdStart
from policies.constraints.behavior import UNHURRIED_BEHAVIOR, ScaleDownRules, ScalingBehavior
from policies.constraints.stabilization import stabilize, without_surplus
from policies.decision import decide
from policies.history import TimedRecommendation
from policies.reasons import Reason
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_observation


@pytest.mark.parametrize(
    ("current", "proposed", "recommended", "windows", "replicas"),
    [
        pytest.param(10, 5, {100: 10}, (0, 300), 10, id="a recent peak holds the count"),
        pytest.param(10, 5, {299.9: 10}, (0, 300), 10, id="a peak just inside the window still holds it"),
        pytest.param(10, 5, {300: 10}, (0, 300), 5, id="a peak just outside the window is forgotten"),
        pytest.param(10, 5, {400: 10, 200: 8, 100: 6}, (0, 300), 8, id="as far down as the highest of the window"),
        pytest.param(10, 12, {100: 20}, (0, 300), 12, id="a past peak makes nothing grow"),
        pytest.param(10, 8, {100: 20}, (0, 300), 10, id="nor does it while the proposal falls"),
        pytest.param(3, 8, {30: 3}, (60, 300), 3, id="growth waits until it has been asked for all the window long"),
        pytest.param(3, 8, {60: 3, 45: 7}, (60, 300), 7, id="growth goes as far as the lowest of the window"),
        pytest.param(3, 8, {30: 1}, (60, 300), 3, id="a past low makes nothing shrink"),
        pytest.param(3, 8, {}, (60, 300), 8, id="nothing to look back on"),
    ],
)
def test_a_count_is_held_within_recent_recommendations(
    current: int, proposed: int, recommended: Mapping[float, int], windows: tuple[float, float], replicas: int
) -> None:
    recommendations = [TimedRecommendation(NOW - age, count) for age, count in recommended.items()]
    assert stabilize(current, proposed, recommendations, NOW, *windows) == replicas


@pytest.mark.parametrize(
    ("window_seconds", "cold_start_seconds", "complete_for_seconds", "recommended", "replicas", "reason"),
    [
        pytest.param(300, 60, 300, {}, 2, Reason.KV_CACHE, id="a full window has been seen"),
        pytest.param(300, 60, 299, {}, 4, Reason.HISTORY_INCOMPLETE, id="after a restart not yet"),
        pytest.param(60, 300, 299, {}, 4, Reason.HISTORY_INCOMPLETE, id="a cold start longer than the window counts"),
        pytest.param(60, 300, 999, {250: 4, 1: 2}, 4, Reason.SCALE_DOWN_STABILIZED, id="for looking back as well"),
        pytest.param(0, 1, 999, {2: 4, 1: 2}, 2, Reason.KV_CACHE, id="no window"),
        pytest.param(
            300, 60, 999, {130: 2}, 4, Reason.HISTORY_INCOMPLETE, id="what two minutes of silence hid is not known"
        ),
        pytest.param(300, 60, 999, {120: 2}, 2, Reason.KV_CACHE, id="a shorter silence is ordinary"),
    ],
)
def test_nothing_shrinks_before_its_window_has_been_seen(
    window_seconds: int,
    cold_start_seconds: int,
    complete_for_seconds: float,
    recommended: Mapping[float, int],
    replicas: int,
    reason: Reason,
) -> None:
    policy = a_policy(
        signals={"kvCache": {}},
        behavior={"scaleDown": {"stabilizationWindowSeconds": window_seconds}},
        coldStart={"priorSeconds": cold_start_seconds},
    )
    history = a_history(recommended=recommended, complete_for_seconds=complete_for_seconds)
    decision = decide(a_decision_input(policy, an_observation(), history=history))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("l90_seconds", "desired"),
    [
        pytest.param(60.0, 2, id="a measured cold start below the window leaves the window"),
        pytest.param(390.0, 2, id="a peak just outside the measured cold start is forgotten"),
        pytest.param(410.0, 4, id="a peak within the measured cold start holds the count, whatever the prior says"),
    ],
)
def test_the_window_is_the_measured_cold_start_if_that_is_longer(l90_seconds: float, desired: int) -> None:
    policy = a_policy(signals={"kvCache": {}}, coldStart={"priorSeconds": 900})
    measured = ColdStart(30.0, l90_seconds, l90_seconds, starts=50)
    history = a_history(recommended={400: 4, 15: 2})
    decision = decide(a_decision_input(policy, an_observation(), history=history, cold_start=measured))
    assert decision.desired_replicas == desired


@pytest.mark.parametrize(
    ("held", "proposed", "recommended", "replicas"),
    [
        pytest.param(40, 10, {400: 40}, 15, id="what was needed earlier: half as much again as now is kept"),
        pytest.param(40, 10, {400: 40, 299: 30}, 30, id="what was needed lately is kept whole"),
        pytest.param(40, 10, {300: 30}, 15, id="just outside the shorter window it is earlier"),
        pytest.param(12, 10, {400: 12}, 12, id="what is near the need waits for the whole window"),
        pytest.param(40, 0, {400: 40}, 0, id="of no need nothing is kept"),
    ],
)
def test_a_surplus_goes_after_half_the_window(
    held: int, proposed: int, recommended: Mapping[float, int], replicas: int
) -> None:
    recommendations = [TimedRecommendation(NOW - age, count) for age, count in recommended.items()]
    assert without_surplus(held, proposed, recommendations, NOW, 300.0) == replicas


@pytest.mark.parametrize(
    ("behavior", "desired"),
    [
        pytest.param(UNHURRIED_BEHAVIOR, 6, id="the default lets go of it, in steps of a fifth"),
        pytest.param(
            ScalingBehavior(scale_down=ScaleDownRules(stabilization_window_seconds=600)),
            8,
            id="who states a window gets what is stated",
        ),
    ],
)
def test_a_surplus_is_held_where_behavior_is_stated(behavior: ScalingBehavior, desired: int) -> None:
    policy = a_policy(signals={"kvCache": {}}, coldStart={"priorSeconds": 60}, behavior=behavior.model_dump())
    history = a_history(recommended={400: 8, 15: 2}, complete_for_seconds=700.0)
    given = a_decision_input(policy, an_observation(), history=history, replicas=8)
    assert decide(given).desired_replicas == desired
