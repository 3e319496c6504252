"""Does the load rise? By what arrived in the last five minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from policies.load.rise import LOOK_BACK_SECONDS, LoadRise, TimedArrivals, rise_of, watch_arrivals
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.signals import Signal
from tests.builders import NOW, a_blackout, a_signal, an_even_signal, an_observation

TICK = 15.0


def looks(per_second: Callable[[float], float], seconds: float = LOOK_BACK_SECONDS) -> list[TimedArrivals]:
    """What was seen at each tick; `per_second` of the seconds that are gone since the first look."""
    count = round(seconds / TICK)
    return [TimedArrivals(NOW - seconds + TICK * n, per_second(TICK * n)) for n in range(count + 1)]


def slower_in_the_last_minute(share: float) -> list[TimedArrivals]:
    """One more each minute for four, and this share of it in the fifth."""
    return looks(lambda s: 10.0 + min(s, 240.0) / 60.0 + max(0.0, s - 240.0) * share / 60.0)


@pytest.mark.parametrize(
    ("seen", "growth"),
    [
        pytest.param(looks(lambda s: 10.0 + s / 60.0), 2.0 / 15.0, id="one more each minute, for two minutes"),
        pytest.param(looks(lambda s: 10.0), None, id="a steady load"),
        pytest.param(looks(lambda s: 20.0 - s / 60.0), None, id="a load that falls"),
        pytest.param(looks(lambda s: 10.0 + s / 600.0), None, id="less than a tenth in five minutes"),
        pytest.param(looks(lambda s: 10.0 + (s % 30.0) / 3.0), None, id="noise, however large"),
        pytest.param(looks(lambda s: 10.0 + s / 60.0, 240.0), 2.0 / 14.0, id="four minutes seen are enough"),
        pytest.param(looks(lambda s: 10.0 + s / 60.0, 225.0), None, id="less than four minutes seen"),
        pytest.param(looks(lambda s: 10.0 + 5.0 * min(s, 240.0) / 240.0), None, id="a rise that ended a minute ago"),
        pytest.param(looks(lambda s: 10.0 if s < 150.0 else 15.0), None, id="a step of two and a half minutes ago"),
        pytest.param(
            looks(lambda s: 10.0 + max(0.0, s - 150.0) / 30.0),
            0.053968253968,
            id="a rise that began then is followed by a line behind it",
        ),
        pytest.param(slower_in_the_last_minute(0.6), 0.1467117358, id="more slowly, but still by half of the line"),
        pytest.param(slower_in_the_last_minute(0.4), None, id="by less than half of the line: it comes to an end"),
        pytest.param(looks(lambda s: 0.0), None, id="no load at all"),
        pytest.param([], None, id="nothing seen"),
        pytest.param([TimedArrivals(NOW - 300.0, 1.0), TimedArrivals(NOW, 9.0)], None, id="two looks say nothing"),
    ],
)
def test_how_much_more_arrives_two_minutes_from_now(seen: list[TimedArrivals], growth: float | None) -> None:
    rise = rise_of(seen)
    assert (None if rise is None else pytest.approx(rise.growth(120.0))) == growth


@pytest.mark.parametrize(
    ("share_now", "growth"),
    [
        pytest.param(1.0, 0.2, id="two tenths more, where the line ends at what arrives"),
        pytest.param(0.9, 0.1, id="it goes on from the line: what is above it may be noise"),
        pytest.param(0.7, 0.0, id="it never promises less than now"),
    ],
)
def test_what_a_rise_promises(share_now: float, growth: float) -> None:
    assert LoadRise(share_now, 0.1 / 60.0).growth(120.0) == pytest.approx(growth)


EIGHT_A_SECOND = an_observation({Signal.REQUESTS_ARRIVED: an_even_signal(8.0, 4)})
UNKNOWN = an_observation({Signal.REQUESTS_ARRIVED: a_signal(None, None)})


@pytest.mark.parametrize(
    ("metrics", "now_seconds", "ages"),
    [
        pytest.param(EIGHT_A_SECOND, NOW, [200.0, 15.0, 0.0], id="one more, and what is older goes"),
        pytest.param(UNKNOWN, NOW, [200.0, 15.0], id="unknown arrivals are no look"),
        pytest.param(a_blackout(), NOW, [200.0, 15.0], id="no answer is none"),
        pytest.param(EIGHT_A_SECOND, NOW - 100.0, [201.0, 100.0, 0.0], id="a clock set back takes the future with it"),
    ],
)
def test_what_is_remembered(
    metrics: MetricsObservation | ObservationUnavailable, now_seconds: float, ages: list[float]
) -> None:
    seen = [TimedArrivals(NOW - age, 5.0) for age in (301.0, 200.0, 15.0)]
    assert [now_seconds - look.at_seconds for look in watch_arrivals(seen, metrics, now_seconds)] == ages
