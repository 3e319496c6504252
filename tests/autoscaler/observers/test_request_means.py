from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.observers.request_means import MINIMUM_REQUESTS, REMEMBERED_REQUESTS, RequestMean

WINDOW = 120.0


def mean_of(total: float, requests: float) -> RequestMean:
    mean = RequestMean()
    mean.update(total, requests, WINDOW, 0.0)
    return mean


@pytest.mark.parametrize(
    ("total", "requests", "at", "expected"),
    [
        pytest.param(6_000_000.0, 3000.0, 120.0, 1909.1, id="a busy pool's mean is that of its last window"),
        pytest.param(200_000.0, 100.0, 120.0, 1250.0, id="100 new ones beside the 300 that are remembered"),
        pytest.param(200_000.0, 100.0, 60.0, 1142.9, id="of a window of which half was seen before, half is new"),
        pytest.param(200_000.0, 100.0, 7200.0, 1250.0, id="after a long gap the window is new, and no more than that"),
        pytest.param(200_000.0, 100.0, 0.0, 1000.0, id="nothing is new at the same moment"),
        pytest.param(200_000.0, 100.0, -3600.0, 1000.0, id="nor by a clock that was set back"),
        pytest.param(0.0, 100.0, 120.0, 750.0, id="requests without tokens count"),
        pytest.param(200_000.0, 0.0, 120.0, 1000.0, id="no request"),
        pytest.param(None, 100.0, 120.0, 1000.0, id="no total"),
        pytest.param(200_000.0, None, 120.0, 1000.0, id="no number of requests"),
        pytest.param(math.nan, 100.0, 120.0, 1000.0, id="a total that is no number"),
        pytest.param(200_000.0, math.nan, 120.0, 1000.0, id="requests that are no number"),
        pytest.param(-5.0, 100.0, 120.0, 1000.0, id="a negative total"),
        pytest.param(200_000.0, -5.0, 120.0, 1000.0, id="negative requests"),
    ],
)
def test_a_mean_of_a_thousand_after_one_more_window(
    total: float | None, requests: float | None, at: float, expected: float
) -> None:
    mean = mean_of(1_000_000.0, 1000.0)
    mean.update(total, requests, WINDOW, at)
    assert mean.value == pytest.approx(expected, abs=0.1)


def test_it_goes_on_from_a_clock_that_was_set_back() -> None:
    mean = mean_of(1_000_000.0, 1000.0)
    mean.update(6_000_000.0, 3000.0, WINDOW, -3600.0)
    mean.update(6_000_000.0, 3000.0, WINDOW, -3480.0)
    assert mean.value == pytest.approx(1909.1, abs=0.1)


@given(
    windows=st.lists(
        st.tuples(st.floats(1.0, 1e5), st.floats(0.0, 1e5), st.floats(0.0, 600.0)), min_size=1, max_size=20
    )
)
def test_it_stays_between_the_least_and_the_largest_of_what_was_seen(windows: list[tuple[float, float, float]]) -> None:
    mean, at, requests_in_all = RequestMean(), 0.0, 0.0
    for length, requests, seconds in windows:
        at += seconds
        mean.update(length * requests, requests, WINDOW, at)
        requests_in_all += requests
    seen = [length for length, requests, _ in windows if requests > 0]
    if requests_in_all < MINIMUM_REQUESTS:
        assert mean.value is None
    if mean.value is not None:
        assert min(seen) * (1 - 1e-9) <= mean.value <= max(seen) * (1 + 1e-9)


def test_a_change_is_taken_up_within_as_many_requests_as_are_remembered() -> None:
    mean = mean_of(1_000_000.0, 1000.0)
    for minute in range(1, 31):
        mean.update(200.0 * 20.0, 20.0, WINDOW, 60.0 * minute)
    assert mean.value is not None
    assert mean.value == pytest.approx(200.0 + 800.0 * (1.0 + 10.0 / REMEMBERED_REQUESTS) ** -30, rel=1e-6)
