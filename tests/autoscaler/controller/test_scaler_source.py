"""All of a tick sees the same objects."""

from __future__ import annotations

from autoscaler.controller.scaler_source import ScalersOfTick
from tests.fakes.ports import FakeSource
from tests.pool_builders import a_scaler, an_invalid_scaler


def test_what_the_loop_was_given_stays_the_newest_until_it_asks_again() -> None:
    one, two = a_scaler("one"), an_invalid_scaler("two")
    source = FakeSource(one)
    of_tick = ScalersOfTick(source)
    assert of_tick.newest() == ()
    assert of_tick.scalers() == of_tick.newest() == (one,)
    source.given = (one, two)
    assert of_tick.newest() == (one,)
    assert of_tick.scalers() == of_tick.newest() == (one, two)
