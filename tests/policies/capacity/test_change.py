"""Which windows show that replicas have changed, and which are no more than noise."""

from __future__ import annotations

import random

import pytest

from policies.capacity.change import MAXIMUM_SUSPECTS, Suspicion, contradict, slowdown, suspicion_after
from policies.capacity.fit import FittedLaw, fit, foretold
from policies.capacity.samples import LoadSample
from policies.capacity.solve import load_of
from tests.policies.capacity.laws import REQUEST, a_law, exactly, measured

TRUTH = a_law(speed=1.3)
LAWS = (exactly(TRUTH),)
NOISE = 0.025  # of one window, for a law that is exact


def off_by(deviations: float, decoding: float = 20.0) -> LoadSample:
    """A window whose foretold step is so many deviations too long."""
    return measured(TRUTH, decoding, weight=1.0).slower(1.0 / (1.0 + deviations * NOISE), 1.0)


def after(*windows: LoadSample, laws: tuple[FittedLaw, ...] = LAWS) -> Suspicion:
    """The suspicion that is left, or the first that is great."""
    suspicion = Suspicion()
    for window in windows:
        suspicion, _ = suspicion_after(suspicion, laws, window)
        if suspicion.is_great:
            break
    return suspicion


@pytest.mark.parametrize(
    ("deviations", "sum_of_them"),
    [
        pytest.param([1.4], 0.0, id="what is off as chance has it counts for nothing"),
        pytest.param([2.0], 0.5, id="what is more counts"),
        pytest.param([-2.0], -0.5, id="in either direction"),
        pytest.param([40.0], 2.5, id="no window says more than four deviations"),
        pytest.param([-20.0], -2.5, id="nor in the other direction"),
        pytest.param([3.0, 2.0], 2.0, id="what follows adds up"),
        pytest.param([3.0, 0.0, 0.0], 0.0, id="and is forgotten when nothing follows"),
        pytest.param([3.0, -4.0], -1.0, id="the sum changes its sign"),
    ],
)
def test_the_sum_of_deviations(deviations: list[float], sum_of_them: float) -> None:
    assert after(*map(off_by, deviations)).deviations == pytest.approx(sum_of_them)


@pytest.mark.parametrize(
    ("deviations", "is_great"),
    [
        pytest.param([40.0, 40.0], False, id="two windows are never enough"),
        pytest.param([4.0, 4.0, 4.0], True, id="three that are far off are"),
        pytest.param([-4.0, -4.0, -4.0], True, id="too short as well as too long"),
        pytest.param([2.5] * 5, False, id="five that are a little off are not"),
        pytest.param([2.5] * 6, True, id="six are"),
        pytest.param([1.4] * 200, False, id="a law that is always off a little is no change"),
        pytest.param([40.0, 0.0, 0.0] * 100, False, id="nor is one window in three"),
    ],
)
def test_when_the_suspicion_is_great(deviations: list[float], is_great: bool) -> None:
    assert after(*map(off_by, deviations)).is_great is is_great


def test_windows_wait_while_there_is_suspicion_and_are_clear_when_there_is_none() -> None:
    first, second, third = off_by(3.0), off_by(0.5), off_by(0.2)
    one, clear = suspicion_after(Suspicion(), LAWS, first)
    assert (one.windows, clear) == ((first,), ())
    two, clear = suspicion_after(one, LAWS, second)
    assert (two.windows, clear) == ((first, second), ())
    three, clear = suspicion_after(two, LAWS, third)
    assert (three, clear) == (Suspicion(), (first, second, third))


def test_where_the_sum_changes_its_sign_the_earlier_windows_are_clear() -> None:
    first, second = off_by(3.0), off_by(-4.0)
    one, _ = suspicion_after(Suspicion(), LAWS, first)
    two, clear = suspicion_after(one, LAWS, second)
    assert (two.windows, clear) == ((second,), (first,))


def test_no_more_windows_wait_than_a_dozen() -> None:
    suspicion, windows = Suspicion(), [off_by(2.0 if place == 0 else 1.6, 10.0 + place) for place in range(20)]
    taken: list[LoadSample] = []
    for window in windows:
        suspicion, clear = suspicion_after(suspicion, LAWS, window)
        taken += clear
    assert suspicion.windows == tuple(windows[-MAXIMUM_SUSPECTS:])
    assert taken == windows[:-MAXIMUM_SUSPECTS]


def test_a_surprise_where_the_laws_know_little_is_none() -> None:
    """What was measured at a tenth of the load says little of a step at this one."""
    little = fit([measured(TRUTH, decoding, weight=3.0) for decoding in (4.0, 5.0)])
    much = fit([measured(TRUTH, decoding, weight=3.0) for decoding in (4.0, 20.0, 40.0)])
    window = off_by(5.0, 50.0)
    assert foretold(little, window.load)[1] > 3 * foretold(much, window.load)[1]
    assert after(window, laws=little) == Suspicion()
    assert after(window, laws=much).deviations > 0.5


def test_a_steady_pool_is_not_taken_for_changed_in_a_week() -> None:
    """10,000 windows with noise of 3 %, a fifth more than is expected of them."""
    draw = random.Random(1)
    windows = (off_by(draw.gauss(0.0, 0.03 / NOISE), draw.uniform(5.0, 50.0)) for _ in range(10_000))
    assert not after(*windows).is_great


BEFORE = tuple(measured(TRUTH, decoding) for decoding in (10.0, 20.0, 30.0))


@pytest.mark.parametrize(
    ("windows", "is_change"),
    [
        pytest.param([measured(a_law(speed=1.6), 20.0, weight=1.0)] * 3, True, id="slower at a load that was seen"),
        pytest.param([measured(a_law(speed=1.0), 25.0, weight=1.0)] * 3, True, id="faster between two loads"),
        pytest.param([measured(TRUTH, 60.0, weight=1.0)] * 3, False, id="as it was, at twice the load"),
        pytest.param([measured(TRUTH, 2.0, weight=1.0, error=0.03)] * 3, False, id="a little off at a new load"),
    ],
)
def test_windows_that_no_law_brings_together_with_what_was_measured(windows: list[LoadSample], is_change: bool) -> None:
    assert contradict(fit(BEFORE), BEFORE, tuple(windows)) is is_change


def test_by_how_much_slower_replicas_are() -> None:
    seconds = foretold(LAWS, load_of(20.0, REQUEST))[0]
    window = measured(TRUTH, 20.0)
    found = slowdown(LAWS, (replace_step(window, 2.0 * seconds), replace_step(window, 0.5 * seconds), window))
    assert found == pytest.approx(1.0)
    assert slowdown(LAWS, (replace_step(window, 1.5 * seconds),)) == pytest.approx(1.5)


def replace_step(window: LoadSample, seconds: float) -> LoadSample:
    """The same load per step, in a step of that length."""
    return window.slower(seconds / window.step_seconds, window.weight)
