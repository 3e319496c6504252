from __future__ import annotations

from autoscaler.observers.slow_queries import SlowQueries
from autoscaler.prometheus.query_plan import Purpose

FIVE = (
    Purpose.CACHE_CONFIG,
    Purpose.REQUEST_SIZES,
    Purpose.PREFIX_CACHE,
    Purpose.TIME_TO_FIRST_TOKEN,
    Purpose.INTER_TOKEN_LATENCY,
)


def test_the_first_round_is_spread_over_the_ticks_in_order_of_importance() -> None:
    slow = SlowQueries(60.0)
    assert slow.due(FIVE, (), 3, 0.0) == list(FIVE[:3])
    assert slow.due(FIVE, (), 3, 5.0) == list(FIVE[3:])
    assert slow.due(FIVE, (), 3, 10.0) == []


def test_each_comes_again_after_a_minute_the_longest_waiting_first() -> None:
    slow = SlowQueries(60.0)
    slow.due(FIVE, (), 3, 0.0)
    slow.due(FIVE, (), 3, 5.0)
    assert slow.due(FIVE, (), 5, 59.0) == []
    assert slow.due(FIVE, (), 2, 65.0) == list(FIVE[:2])
    assert slow.due(FIVE, (), 3, 70.0) == list(FIVE[2:])


def test_what_is_urgent_comes_after_15_seconds() -> None:
    slow = SlowQueries(60.0)
    slow.due(FIVE, (), 5, 0.0)
    assert slow.due(FIVE, {Purpose.CACHE_CONFIG}, 5, 14.0) == []
    assert slow.due(FIVE, {Purpose.CACHE_CONFIG}, 5, 15.0) == [Purpose.CACHE_CONFIG]


def test_what_failed_is_tried_again_after_15_seconds_and_not_at_every_tick() -> None:
    slow = SlowQueries(60.0)
    slow.due(FIVE, (), 5, 0.0)
    slow.failed(Purpose.PREFIX_CACHE, 0.0)
    assert slow.due(FIVE, (), 5, 10.0) == []
    assert slow.due(FIVE, (), 5, 15.0) == [Purpose.PREFIX_CACHE]


def test_a_clock_that_is_set_back_silences_nothing() -> None:
    slow = SlowQueries(60.0)
    slow.due(FIVE, (), 5, 10_000.0)
    assert slow.due(FIVE, (), 5, 0.0) == list(FIVE)
