from __future__ import annotations

from dataclasses import replace

import pytest

from policies.constraints.behavior import PolicyType, ScalingBehavior, ScalingPolicy
from policies.decision import decide
from policies.history import (
    MoveMemory,
    ScaleEvent,
    ScalingHistory,
    TimedRecommendation,
    after_any_gap,
    held_replicas,
    longest_period_seconds,
    new_history,
    not_from_the_future,
    store_event,
    with_followed_rescale,
    with_owner_of_zero,
    with_recommendation,
    with_rescale,
)
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_observation


def test_a_rescale_that_was_written_is_an_event() -> None:
    history = with_rescale(a_history(), ScalingBehavior(), NOW, 8, 5)
    assert history.scale_events == (ScaleEvent(NOW, -3),)
    assert history.last_seen_replicas == 5
    assert not history.is_scaled_to_zero


@pytest.mark.parametrize(
    ("written", "is_scaled_to_zero"),
    [
        pytest.param([(1, 0)], True, id="our own last rescale was to zero"),
        pytest.param([(1, 0), (0, 3)], False, id="it was on from there again"),
    ],
)
def test_whether_it_was_us_who_went_to_zero(written: list[tuple[int, int]], is_scaled_to_zero: bool) -> None:
    history = a_history()
    for before, after in written:
        history = with_rescale(history, ScalingBehavior(), NOW, before, after)
    assert history.is_scaled_to_zero is is_scaled_to_zero


@pytest.mark.parametrize(
    ("before", "after", "events"),
    [
        pytest.param(4, 5, [(10, 1), (0, 1), (9, -1)], id="one more: after what was added"),
        pytest.param(4, 3, [(10, 1), (9, -1), (0, -1)], id="one fewer: after what was taken away"),
        pytest.param(4, 4, [(10, 1), (9, -1)], id="as many: no event"),
    ],
)
def test_growth_and_shrinking_are_kept_apart(before: int, after: int, events: list[tuple[float, int]]) -> None:
    history = a_history(rescaled={10: 1, 9: -1})
    history = with_rescale(history, ScalingBehavior(), NOW, before, after)
    assert history.scale_events == tuple(ScaleEvent(NOW - age, change) for age, change in events)


@pytest.mark.parametrize(
    ("ages", "kept"),
    [
        pytest.param([60.0], [60.0, 0.0], id="as old as the period is not outdated"),
        pytest.param([60.5], [0.0], id="an outdated one gives its place"),
        pytest.param([90.0, 61.0, 5.0], [90.0, 0.0, 5.0], id="the last outdated one gives its place, as in HPA"),
    ],
)
def test_an_event_takes_the_place_of_an_outdated_one(ages: list[float], kept: list[float]) -> None:
    rate = ScalingPolicy(type=PolicyType.PODS, value=1, period_seconds=60)
    events = store_event(tuple(ScaleEvent(NOW - age, 1) for age in ages), 1, NOW, (rate,))
    assert [NOW - event.at_seconds for event in events] == kept


def test_without_policies_no_event_need_be_kept() -> None:
    assert longest_period_seconds(()) == 0.0


@pytest.mark.parametrize(
    ("spec", "is_count_ours", "was_ours", "is_ours"),
    [
        pytest.param(0, True, False, True, id="the target says that the zero is ours"),
        pytest.param(0, False, True, False, id="the target says that it is somebody else's"),
        pytest.param(0, None, True, True, id="the target cannot tell: what is remembered holds"),
        pytest.param(3, False, True, True, id="it does not stand at zero"),
    ],
)
def test_the_target_knows_better_whose_zero_it_is(
    spec: int, is_count_ours: bool | None, was_ours: bool, is_ours: bool
) -> None:
    history = a_history(is_scaled_to_zero=was_ours)
    assert with_owner_of_zero(history, spec, is_count_ours).is_scaled_to_zero is is_ours


@pytest.mark.parametrize(
    ("seen", "wanted", "spec", "changes", "is_ours"),
    [
        pytest.param(None, 8, 8, [], True, id="it was not seen before"),
        pytest.param(4, None, 8, [], True, id="nothing was wanted before"),
        pytest.param(4, 8, 4, [], True, id="it has not been followed yet"),
        pytest.param(4, 8, 8, [4], False, id="it was followed"),
        pytest.param(4, 8, 6, [2], False, id="it was followed in part"),
        pytest.param(4, 8, 9, [], False, id="somebody went further"),
        pytest.param(4, 8, 3, [], False, id="somebody went the other way"),
        pytest.param(8, 4, 4, [-4], False, id="it was followed downwards"),
        pytest.param(8, 4, 3, [], False, id="somebody went further down"),
        pytest.param(8, 4, 9, [], False, id="somebody went up meanwhile"),
        pytest.param(4, 0, 0, [-4], True, id="it was followed to zero"),
        pytest.param(4, 4, 0, [], False, id="somebody switched it off"),
    ],
)
def test_what_an_hpa_made_of_our_count(
    seen: int | None, wanted: int | None, spec: int, changes: list[int], is_ours: bool
) -> None:
    history = a_history(last_seen_replicas=seen, last_desired_replicas=wanted, is_scaled_to_zero=True)
    history = with_followed_rescale(history, ScalingBehavior(), NOW, spec)
    assert history.scale_events == tuple(ScaleEvent(NOW, change) for change in changes)
    assert history.is_scaled_to_zero is is_ours


def test_a_new_history_begins_with_the_present_count() -> None:
    history = new_history(NOW, 7)
    assert (history.complete_since_seconds, history.recommendations) == (NOW, (TimedRecommendation(NOW, 7),))


def test_a_decision_alone_is_no_event() -> None:
    """A patch that fails, or a dry run, leaves the rate budget as it was: only `with_rescale` makes events."""
    decision = decide(a_decision_input(replicas=40))
    assert decision.desired_replicas != 40
    assert decision.next_history.scale_events == ()


def test_a_recommendation_is_kept_once_at_its_last_time() -> None:
    history = a_history(recommended={300: 4, 200: 5, 100: 4, 50: 6})
    kept = with_recommendation(history.recommendations, NOW, 5, kept_seconds=250)
    assert kept == (
        TimedRecommendation(NOW - 100, 4),
        TimedRecommendation(NOW - 50, 6),
        TimedRecommendation(NOW, 5),
    )


def test_a_recommendation_is_forgotten_at_the_end_of_its_window() -> None:
    """At its very end no window asks for it any more."""
    history = a_history(recommended={250: 4, 249.9: 5})
    kept = with_recommendation(history.recommendations, NOW, 6, kept_seconds=250)
    assert kept == (TimedRecommendation(NOW - 249.9, 5), TimedRecommendation(NOW, 6))


def test_what_is_remembered_does_not_grow_with_time() -> None:
    policy = a_policy(signals={"kvCache": {}})
    history = new_history(NOW, 4)
    for tick in range(1000):
        now = NOW + 15 * tick
        decision = decide(a_decision_input(policy, replicas=4, history=history, now_seconds=now))
        history = with_rescale(decision.next_history, policy.behavior, now, 4, 5 if tick % 2 else 3)
    assert len(history.recommendations) <= 2
    assert len(history.scale_events) <= 4  # two a direction: the longest default period is one tick


@pytest.mark.parametrize(
    ("recommended", "complete_since", "idle_since"),
    [
        pytest.param({300: 4, 120: 5}, NOW - 1000, NOW - 700, id="two minutes without a decision are no hole"),
        pytest.param({300: 4, 121: 5}, NOW, None, id="more are: nothing from before may be relied on"),
        pytest.param({}, NOW - 1000, NOW - 700, id="nothing was recommended yet"),
    ],
)
def test_a_history_with_a_hole_begins_anew(
    recommended: dict[float, int], complete_since: float, idle_since: float | None
) -> None:
    history = a_history(recommended=recommended, complete_for_seconds=1000, idle_since_seconds=NOW - 700)
    after = after_any_gap(history, NOW)
    assert (after.complete_since_seconds, after.idle_since_seconds) == (complete_since, idle_since)
    assert after.recommendations == history.recommendations


@pytest.mark.parametrize(
    ("ahead", "clamped"),
    [
        pytest.param(
            a_history(recommended={-3600: 9, 60: 4}),
            a_history(recommended={0: 9, 60: 4}),
            id="a recommendation",
        ),
        pytest.param(a_history(rescaled={-3600: 4, 30: -1}), a_history(rescaled={0: 4, 30: -1}), id="a rescale"),
        pytest.param(
            a_history(complete_for_seconds=-3600), a_history(complete_for_seconds=0), id="since when it is complete"
        ),
        pytest.param(
            a_history(blind_since_seconds=NOW + 1), a_history(blind_since_seconds=NOW), id="since when it is blind"
        ),
        pytest.param(
            a_history(low_coverage_since_seconds=NOW + 1, idle_since_seconds=NOW - 5),
            a_history(low_coverage_since_seconds=NOW, idle_since_seconds=NOW - 5),
            id="since when more is unseen",
        ),
        pytest.param(a_history(idle_since_seconds=NOW + 1), a_history(idle_since_seconds=NOW), id="idle since"),
        pytest.param(
            a_history(node_move=MoveMemory(settled_since_seconds=NOW + 1)),
            a_history(node_move=MoveMemory(settled_since_seconds=NOW)),
            id="since when its nodes are settled",
        ),
        pytest.param(
            a_history(node_move=MoveMemory(begun_at_seconds=NOW + 1, moved_replicas=2)),
            a_history(node_move=MoveMemory(begun_at_seconds=NOW, moved_replicas=2)),
            id="when a move of nodes began",
        ),
        pytest.param(
            a_history(recommended={0: 4}, rescaled={0: 1}), a_history(recommended={0: 4}, rescaled={0: 1}), id="now"
        ),
    ],
)
def test_what_a_clock_ahead_has_written_has_happened_just_now(ahead: ScalingHistory, clamped: ScalingHistory) -> None:
    assert not_from_the_future(ahead, NOW) == clamped


@pytest.mark.parametrize(
    ("seconds_later", "count"),
    [
        pytest.param(0, 8, id="four have just come, as far as it can know: their rate holds"),
        pytest.param(15, 16, id="after the rate's 15 s, and not after the hour, there is room for more"),
    ],
)
def test_a_clock_that_goes_back_by_an_hour_does_not_stop_growth(seconds_later: float, count: int) -> None:
    policy = a_policy(signals={"custom": [{"name": "work", "query": "q", "perReplica": 1}]})
    metrics = an_observation(queries={"custom/work": 40.0}, ready=8)
    history = a_history(recommended={-3600: 8}, rescaled={-3600: 4}, last_seen_replicas=8, last_desired_replicas=8)
    first = decide(a_decision_input(policy, metrics, replicas=8, history=history))
    after = a_decision_input(policy, metrics, replicas=8, history=first.next_history, now_seconds=NOW + seconds_later)
    assert decide(after).desired_replicas == count


@pytest.mark.parametrize(
    ("spec", "last_desired", "last_seen", "held"),
    [
        pytest.param(4, None, None, 4, id="nothing was decided before"),
        pytest.param(8, 8, 4, 8, id="what we wanted has been written"),
        pytest.param(4, 8, 4, 8, id="it could not be written yet"),
        pytest.param(4, 2, 4, 4, id="a lowering that was not written is not held"),
        pytest.param(3, 8, 8, 3, id="somebody else lowered it"),
        pytest.param(12, 8, 8, 12, id="somebody else raised it"),
    ],
)
def test_which_count_is_held(spec: int, last_desired: int | None, last_seen: int | None, held: int) -> None:
    history = replace(a_history(), last_desired_replicas=last_desired, last_seen_replicas=last_seen)
    assert held_replicas(history, spec) == held


def test_a_count_that_somebody_has_set_back_after_our_write_is_no_wish_of_ours() -> None:
    history = with_rescale(a_history(last_desired_replicas=8, last_seen_replicas=4), ScalingBehavior(), NOW, 4, 8)
    assert held_replicas(history, 4) == 4


def test_a_clock_that_went_back_makes_nothing_shrink_sooner() -> None:
    history = a_history(recommended={-60: 9}, complete_for_seconds=-60)
    assert decide(a_decision_input(replicas=9, history=history)).desired_replicas == 9
