"""A watching controller's log: 4 replicas stand, 10 waiting requests ask for one (the builders' ordinary pool)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from autoscaler.decision_record import DecisionRecord
from autoscaler.replay.shadow import Shadow, shadows
from tests.builders import NOW, a_history
from tests.pool_builders import a_decision_report, a_record, a_scaler

TICK = 15.0


def a_log(*waiting: float, standing: int = 4, gap_after: int | None = None, gap: float = 0.0) -> list[DecisionRecord]:
    """A record a tick; the cold start's prior is 60 s."""
    records, now, history = [], NOW, a_history()
    for place, each in enumerate(waiting):
        report = a_decision_report(scaler=a_scaler(), replicas=standing, waiting=each, history=history, now_seconds=now)
        history = report.decision.next_history
        records.append(a_record(report))
        now += TICK + (gap if place == gap_after else 0.0)
    return records


def the_shadow(records: list[DecisionRecord]) -> Shadow:
    (shadow,) = shadows(records)
    return shadow


def test_a_wish_for_fewer_replicas_is_counted_as_saved() -> None:
    shadow = the_shadow(a_log(*[20.0] * 61))
    assert shadow.covered_seconds == 60 * TICK
    assert shadow.actual_replica_hours == pytest.approx(4 * 900 / 3600)
    assert shadow.wished_replica_hours < shadow.actual_replica_hours
    assert shadow.wished_shortages == ()
    assert "it would have used" in shadow.sentence()
    assert "fewer replica-hours" in shadow.sentence()


def test_what_comes_to_as_many_hours_is_no_share_of_nothing() -> None:
    shadow = replace(the_shadow(a_log(*[20.0] * 61)), actual_replica_hours=1000.0, wished_replica_hours=999.0)
    assert "it would have used as many replica-hours (999.0 instead of 1,000.0)" in shadow.sentence()


def test_a_wish_for_more_is_short_until_a_cold_start_has_passed_and_what_stood_is_short_all_along() -> None:
    shadow = the_shadow(a_log(*[40.0] * 10, *[80.0] * 21))
    (wished,) = shadow.wished_shortages
    (actual,) = shadow.actual_shortages
    assert wished.begins_at_seconds == actual.begins_at_seconds == NOW + 10 * TICK
    assert wished.seconds == 60.0
    assert actual.seconds == 20 * TICK
    assert shadow.largest_need == 8
    assert "short for 60 s (Sun 2030-03-17 17:49 UTC for 60 s)" in shadow.sentence()


def test_what_is_not_recorded_is_left_out_and_said() -> None:
    shadow = the_shadow(a_log(*[40.0] * 20, gap_after=9, gap=3600.0))
    assert shadow.covered_seconds == 18 * TICK
    assert shadow.gap_seconds == 3600.0 + TICK
    assert "1.0 h are not recorded" in shadow.sentence()


def test_pools_are_told_apart_and_a_single_record_says_nothing() -> None:
    def others() -> Iterator[DecisionRecord]:
        for record in a_log(40.0, 40.0):
            yield record
            yield record.model_copy(update={"name": "other"})
        yield record.model_copy(update={"name": "seen once"})

    assert [shadow.name for shadow in shadows(others())] == ["llama", "other"]
