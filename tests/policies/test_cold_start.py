"""The cold start that a pool's own starts teach."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.cold_start import KEPT_STARTS, ColdStart, ObservedStart, learn_cold_start

PRIOR = 300.0


def start(seconds: float) -> ObservedStart:
    return ObservedStart(0.0, 0.0, seconds)


@pytest.mark.parametrize(
    ("seconds", "l50", "l90", "l95"),
    [
        pytest.param([], 300, 300, 300, id="without any start the prior is all that is known"),
        pytest.param([60], 60, 300, 300, id="one short start does not outweigh the prior"),
        pytest.param([500], 500, 500, 500, id="one start that is longer than the prior is believed at once"),
        pytest.param([60] * 7, 60, 300, 300, id="seven short starts still leave one in ten to the prior"),
        pytest.param([60] * 8, 60, 60, 300, id="eight short starts bring L90 down"),
        pytest.param([60] * 15, 60, 60, 60, id="fifteen bring L95 down"),
        pytest.param([60] * 50 + [200] * 2, 60, 60, 200, id="two slow starts are the new L95"),
        pytest.param([60] * 50 + [200] * 3, 60, 200, 200, id="three slow starts are the new L90"),
        pytest.param([200] + [60] * 50, 60, 60, 60, id="what lies more than fifty starts back is forgotten"),
        pytest.param([100] * 25 + [60] * 25, 60, 100, 100, id="older starts weigh less"),
    ],
)
def test_quantiles(seconds: list[float], l50: float, l90: float, l95: float) -> None:
    cold_start = learn_cold_start([start(each) for each in seconds], PRIOR)
    assert (cold_start.l50_seconds, cold_start.l90_seconds, cold_start.l95_seconds) == (l50, l90, l95)
    assert cold_start.starts == min(len(seconds), KEPT_STARTS)
    assert cold_start.is_measured == bool(seconds)


def test_phases_are_medians_of_the_starts_that_show_them() -> None:
    starts = [ObservedStart(90.0, 20.0, 60.0), ObservedStart(0.0, 5.0, 62.0), ObservedStart(None, None, 70.0)]
    cold_start = learn_cold_start(starts, PRIOR)
    assert (cold_start.node_seconds, cold_start.image_seconds, cold_start.load_seconds) == (0.0, 5.0, 62.0)
    assert learn_cold_start([], PRIOR).load_seconds is None
    in_one_piece = learn_cold_start([ObservedStart(None, None, 70.0)], PRIOR)
    assert (in_one_piece.node_seconds, in_one_piece.image_seconds, in_one_piece.load_seconds) == (None, None, 70.0)


@pytest.mark.parametrize(
    ("start", "seconds"),
    [
        pytest.param(ObservedStart(90.0, 20.0, 60.0), 170.0, id="all three phases"),
        pytest.param(ObservedStart(90.0, None, None), 90.0, id="only the node is known"),
        pytest.param(ObservedStart(None, 20.0, None), 20.0, id="only the image is known"),
        pytest.param(ObservedStart(None, None, 60.0), 60.0, id="a start in one piece"),
    ],
)
def test_a_start_takes_what_its_phases_take(start: ObservedStart, seconds: float) -> None:
    assert start.seconds == seconds


@pytest.mark.parametrize(
    ("l95_seconds", "limit_seconds"),
    [
        pytest.param(60.0, 300.0, id="a pool that starts quickly gets five minutes"),
        pytest.param(400.0, 600.0, id="a slow one half as much again as nearly all of its starts took"),
    ],
)
def test_a_start_is_given_up_late(l95_seconds: float, limit_seconds: float) -> None:
    assert ColdStart(60.0, 60.0, l95_seconds).start_limit_seconds == limit_seconds


durations = st.floats(1.0, 3600.0)


@given(st.lists(durations, max_size=60), durations, st.floats(1.0, 3600.0))
def test_after_a_pool_has_got_slower_the_lead_follows_within_five_starts(
    before: list[float], prior_seconds: float, slow_seconds: float
) -> None:
    starts = [start(each) for each in [*before, *[slow_seconds] * 5]]
    assert learn_cold_start(starts, prior_seconds).l90_seconds >= slow_seconds


@given(st.lists(durations, max_size=60), durations)
def test_quantiles_are_ordered_and_are_durations_that_were_seen(seconds: list[float], prior_seconds: float) -> None:
    cold_start = learn_cold_start([start(each) for each in seconds], prior_seconds)
    assert cold_start.l50_seconds <= cold_start.l90_seconds <= cold_start.l95_seconds
    assert {cold_start.l50_seconds, cold_start.l95_seconds} <= {*seconds, prior_seconds}


@given(st.lists(durations, max_size=60), durations, durations)
def test_a_longer_start_never_makes_the_cold_start_shorter(
    seconds: list[float], prior_seconds: float, longer: float
) -> None:
    shorter = learn_cold_start([start(each) for each in [*seconds, 1.0]], prior_seconds)
    slower = learn_cold_start([start(each) for each in [*seconds, longer]], prior_seconds)
    assert slower.l90_seconds >= shorter.l90_seconds
