from __future__ import annotations

from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.virtual_clock import TimedEvent, play
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_setup, steady_requests


def a_fleet() -> SimulatedFleet:
    return SimulatedFleet([(a_setup(), steady_requests(1.0))], STARTED_AT, seed=1)


class Noted:
    def __init__(
        self, name: str, interval_seconds: float, diary: list[tuple[str, float]], fleet: SimulatedFleet
    ) -> None:
        self.name = name
        self.interval_seconds = interval_seconds
        self.diary = diary
        self.fleet = fleet

    def tick(self, now_seconds: float) -> None:
        assert self.fleet.now_seconds == now_seconds
        self.diary.append((self.name, now_seconds - STARTED_AT))


def test_parts_tick_at_their_intervals_and_those_due_together_in_their_order() -> None:
    fleet, diary = a_fleet(), []
    parts = [Noted("slow", 30.0, diary, fleet), Noted("fast", 15.0, diary, fleet)]
    assert play(fleet, parts, STARTED_AT + 45.0) == STARTED_AT + 45.0
    assert diary == [("slow", 0.0), ("fast", 0.0), ("fast", 15.0), ("slow", 30.0), ("fast", 30.0)]
    assert fleet.now_seconds == STARTED_AT + 45.0


def test_an_event_happens_once_at_its_own_moment_before_the_ticks_of_that_moment() -> None:
    fleet, diary = a_fleet(), []
    events = [
        TimedEvent(STARTED_AT + at, lambda at=at: diary.append(("event", fleet.now_seconds - STARTED_AT)))
        for at in (20.0, 15.0)
    ]
    play(fleet, [Noted("tick", 15.0, diary, fleet)], STARTED_AT + 31.0, events)
    assert diary == [("tick", 0.0), ("event", 15.0), ("tick", 15.0), ("event", 20.0), ("tick", 30.0)]


def test_a_run_that_is_stopped_ends_at_the_last_moment_it_reached() -> None:
    fleet, diary = a_fleet(), []
    parts = [Noted("tick", 15.0, diary, fleet)]
    ended_at = play(fleet, parts, STARTED_AT + 600.0, goes_on=lambda now: now <= STARTED_AT + 30.0)
    assert ended_at == STARTED_AT + 30.0
    assert [at for _, at in diary] == [0.0, 15.0, 30.0]
