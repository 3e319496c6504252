"""What happens when, where no real time passes? Ticks at their intervals and single events, in order of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from typing import Protocol


class Plant(Protocol):
    """What moves on simulated time."""

    now_seconds: float

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds`."""
        ...


class Recurring(Protocol):
    """Something that is done at equal intervals: a controller's tick, a reading for the record."""

    @property
    def interval_seconds(self) -> float:
        """Simulated seconds from one tick to the next."""
        ...

    def tick(self, now_seconds: float) -> None:
        """Does it; the fleet has been advanced to `now_seconds`."""
        ...


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """Something that is done once, at a moment of simulated unix time, before the ticks of that moment."""

    at_seconds: float
    act: Callable[[], None]


def play(
    fleet: Plant,
    recurring: Sequence[Recurring],
    until_seconds: float,
    events: Iterable[TimedEvent] = (),
    goes_on: Callable[[float], bool] = lambda now_seconds: True,
) -> float:
    """Runs the fleet from where it is until `until_seconds` (exclusive); returns the time at which it ended.

    Every recurring part ticks first at the fleet's present moment; parts that are due together tick in the given
    order. `goes_on` is asked before each moment, and ends the run early by False.
    """
    waiting = sorted(events, key=lambda event: event.at_seconds)
    due = [(fleet.now_seconds, place) for place in range(len(recurring))]
    heapify(due)
    while due and due[0][0] < until_seconds:
        now_seconds, place = due[0]
        if not goes_on(now_seconds):
            return fleet.now_seconds
        while waiting and waiting[0].at_seconds <= now_seconds:
            event = waiting.pop(0)
            fleet.advance(max(event.at_seconds, fleet.now_seconds))
            event.act()
        fleet.advance(now_seconds)
        part = recurring[place]
        part.tick(now_seconds)
        heapreplace(due, (now_seconds + part.interval_seconds, place))
    fleet.advance(until_seconds)
    return until_seconds
