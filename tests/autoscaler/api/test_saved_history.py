from __future__ import annotations

import random

import pytest

from autoscaler.api.saved_history import from_json, shortened, to_json
from autoscaler.api.status import InferenceScalerStatus, restore_history, save_history, status_document
from policies.history import ScaleEvent, ScalingHistory, TimedRecommendation

NOW_SECONDS = 1_790_000_000.25


def history(*replicas: int, events: tuple[int, ...] = ()) -> ScalingHistory:
    """One recommendation, and one event, each second; the last of them now."""
    begin = NOW_SECONDS - len(replicas)
    return ScalingHistory(
        complete_since_seconds=begin,
        recommendations=tuple(TimedRecommendation(begin + index, each) for index, each in enumerate(replicas, 1)),
        scale_events=tuple(ScaleEvent(begin + index, change) for index, change in enumerate(events, 1)),
        last_desired_replicas=replicas[-1] if replicas else None,
        is_scaled_to_zero=False,
    )


def windows(of: ScalingHistory, window_seconds: float) -> tuple[int, int]:
    """What the two stabilization windows ask for."""
    counts = [each.replicas for each in of.recommendations if NOW_SECONDS - each.at_seconds < window_seconds]
    return (max(counts), min(counts))


@pytest.mark.parametrize(
    ("replicas", "kept"),
    [
        pytest.param((5,), (5,), id="one recommendation"),
        pytest.param((3, 5, 4), (3, 5, 4), id="a peak and a dip"),
        pytest.param((4, 3, 5), (3, 5), id="what was exceeded both ways since is never the answer"),
        pytest.param((5, 4, 3), (5, 4, 3), id="each of a fall is the highest of some window"),
        pytest.param((4, 4, 4), (4,), id="of equal ones the last"),
        pytest.param((), (), id="none"),
    ],
)
def test_what_is_kept(replicas: tuple[int, ...], kept: tuple[int, ...]) -> None:
    assert tuple(each.replicas for each in shortened(history(*replicas)).recommendations) == kept


def test_every_window_finds_what_it_would_have_found() -> None:
    chance = random.Random(7)
    for _ in range(200):
        full = history(*(chance.randint(1, 20) for _ in range(chance.randint(1, 60))))
        short = shortened(full)
        for window_seconds in (1, 2, 5, 17, 60, 3600):
            assert windows(short, window_seconds) == windows(full, window_seconds)


def test_a_history_beyond_its_bounds_holds_longer_and_never_shorter() -> None:
    full = history(*range(1000, 0, -1), *range(1, 400), events=tuple(range(1, 500)))
    short = shortened(full)
    assert len(short.recommendations) <= 128
    assert len(short.scale_events) == 128
    assert sum(event.change for event in short.scale_events) == sum(range(1, 500))
    for window_seconds in (1, 60, 500, 1500):
        assert windows(short, window_seconds)[0] >= windows(full, window_seconds)[0]
        assert windows(short, window_seconds)[1] <= windows(full, window_seconds)[1]
    assert len(to_json(full)) <= 16 * 1024


def test_ups_and_downs_are_not_merged() -> None:
    full = history(1, events=(2, -1) * 100)
    assert shortened(full).scale_events == full.scale_events[-128:]


def test_there_and_back() -> None:
    full = history(3, 5, 4, events=(2, -1))
    assert from_json(to_json(full)) == full


def test_through_the_status_of_an_object() -> None:
    full = history(3, 5, 4, events=(2, -1))
    status = InferenceScalerStatus(desired_replicas=4, history=save_history(full))
    assert restore_history(status_document(status)["status"]) == full


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({}, id="no status yet"),
        pytest.param({"history": None}, id="no history yet"),
        pytest.param({"history": "{"}, id="no JSON"),
        pytest.param({"history": '{"recommendations": []}'}, id="of another version"),
        pytest.param(
            {"history": '{"complete_since_seconds": 1.0}'}, id="of a version with another word for what it saw"
        ),
        pytest.param({"desiredReplicas": "four"}, id="a status that is none of ours"),
    ],
)
def test_what_cannot_be_read_is_unknown(status: dict[str, object]) -> None:
    assert restore_history(status) is None


def test_what_is_not_known_is_removed_from_the_status() -> None:
    document = status_document(InferenceScalerStatus(desired_replicas=4))["status"]
    assert document["desiredReplicas"] == 4
    assert document["readyReplicas"] is None
