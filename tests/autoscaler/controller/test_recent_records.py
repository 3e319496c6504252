"""Which of a pool's last decisions are kept, and which of them was in force."""

from __future__ import annotations

import json
from collections.abc import Iterable

from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.recent_records import LONGEST_SILENCE_SECONDS, RecentRecords
from tests.builders import NOW, a_history
from tests.pool_builders import KEY, a_decision_report, a_record, a_scaler


def after(wanted: Iterable[tuple[float, int]], *, maximum_bytes: int = 10**9, name: str = "llama") -> RecentRecords:
    """What is kept of a pool of 4 that wanted so many replicas at so many seconds."""
    recent = RecentRecords(maximum_bytes)
    for seconds, replicas in wanted:
        report = a_decision_report(
            scaler=a_scaler(name), waiting=10.0 * replicas, now_seconds=NOW + seconds, history=a_history()
        )
        if recent.is_worth_keeping(report):
            recent.keep(report, a_record(report))
    return recent


def course(lines: Iterable[str]) -> list[tuple[float, int]]:
    documents = [json.loads(line) for line in lines]
    return [(each["input"]["nowSeconds"] - NOW, each["decision"]["desiredReplicas"]) for each in documents]


def test_only_what_differs_from_the_one_before_is_kept() -> None:
    recent = after([(0, 4), (15, 4), (30, 6), (45, 6), (60, 4)])
    assert course(recent.since(KEY, NOW)) == [(0, 4), (30, 6), (60, 4)]


def test_where_nothing_changes_one_is_kept_now_and_then() -> None:
    recent = after([(15.0 * tick, 4) for tick in range(200)])
    assert course(recent.since(KEY, NOW)) == [(LONGEST_SILENCE_SECONDS * n, 4) for n in range(4)]


def test_the_one_that_was_in_force_is_the_last_before() -> None:
    recent = after([(0, 4), (30, 6), (60, 4)])
    assert recent.at(KEY, NOW - 1) is None
    assert course([recent.at(KEY, NOW + 59.9) or ""]) == [(30, 6)]
    assert course([recent.at(KEY, NOW + 60) or ""]) == [(60, 4)]
    assert course(recent.since(KEY, NOW + 45)) == [(30, 6), (60, 4)]
    assert recent.at(("inference", "other"), NOW + 60) is None


def test_the_oldest_go_first_and_the_newest_stays() -> None:
    course_of_a_day = [(15.0 * tick, 4 + tick % 3) for tick in range(400)]
    recent = after(course_of_a_day, maximum_bytes=20_000)
    kept = course(recent.since(KEY, NOW))
    assert kept == course_of_a_day[-len(kept) :]
    assert 5 <= len(kept) <= 40
    assert course(after(course_of_a_day, maximum_bytes=1).since(KEY, NOW)) == course_of_a_day[-1:]


def test_after_a_pause_without_decisions_the_next_one_is_kept() -> None:
    recent = after([(0, 4)])
    report = a_decision_report(now_seconds=NOW + 15)
    assert not recent.is_worth_keeping(report)
    recent.retain(frozenset())
    assert recent.is_worth_keeping(report)


def test_the_newest_decision_ends_the_course_even_where_it_is_like_the_one_before() -> None:
    records = LatestRecords(None)
    for seconds in (0.0, 15.0, 30.0):
        records.report([a_decision_report(now_seconds=NOW + seconds, history=a_history())])
    assert course(records.back(*KEY, 600.0)) == [(0, 4), (30, 4)]
    assert course([records.at(*KEY, NOW + 29) or ""]) == [(0, 4)]
    assert course([records.at(*KEY, NOW + 31) or ""]) == [(30, 4)]
    records.report([])
    assert records.back(*KEY, 600.0) == []
    assert course([records.at(*KEY, NOW + 31) or ""]) == [(0, 4)]
