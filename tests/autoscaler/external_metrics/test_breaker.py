"""When somebody who does not answer is left alone."""

from __future__ import annotations

from autoscaler.clock import ManualClock
from autoscaler.external_metrics.breaker import (
    FAILURES_UNTIL_OPEN,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    Breaker,
)


def opened(clock: ManualClock) -> Breaker:
    breaker = Breaker(clock)
    for _ in range(FAILURES_UNTIL_OPEN):
        assert breaker.may_ask()
        breaker.failed()
    return breaker


def test_a_few_failures_are_borne_and_an_answer_forgets_them() -> None:
    breaker = Breaker(ManualClock(0.0))
    for _ in range(3):
        for _ in range(FAILURES_UNTIL_OPEN - 1):
            breaker.failed()
        assert breaker.may_ask()
        breaker.answered()


def test_after_enough_failures_nobody_asks_for_a_while() -> None:
    clock = ManualClock(0.0)
    breaker = opened(clock)

    assert not breaker.may_ask()
    clock.advance(FIRST_PAUSE_SECONDS - 0.1)
    assert not breaker.may_ask()


def test_after_the_pause_one_may_try_and_no_other_meanwhile() -> None:
    clock = ManualClock(0.0)
    breaker = opened(clock)
    clock.advance(FIRST_PAUSE_SECONDS)

    assert [breaker.may_ask() for _ in range(3)] == [True, False, False]


def test_an_answer_closes_it() -> None:
    clock = ManualClock(0.0)
    breaker = opened(clock)
    clock.advance(FIRST_PAUSE_SECONDS)
    assert breaker.may_ask()

    breaker.answered()

    assert [breaker.may_ask() for _ in range(3)] == [True, True, True]


def test_every_failed_trial_doubles_the_pause_up_to_the_longest() -> None:
    clock = ManualClock(0.0)
    breaker = opened(clock)
    pauses = []
    for _ in range(6):
        waited = 0.0
        while not breaker.may_ask():
            clock.advance(1.0)
            waited += 1.0
        pauses.append(waited)
        breaker.failed()

    assert pauses == [5.0, 10.0, 20.0, 40.0, LONGEST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS]


def test_a_trial_that_never_ends_does_not_keep_it_open_for_ever() -> None:
    clock = ManualClock(0.0)
    breaker = opened(clock)
    clock.advance(FIRST_PAUSE_SECONDS)
    assert breaker.may_ask()

    clock.advance(FIRST_PAUSE_SECONDS)

    assert breaker.may_ask()
