import numpy as np
import pytest

from forecasting.time_series import TimeSeries, mean_of_samples, rate_of_events


@pytest.mark.parametrize(
    ("at", "values", "expected"),
    [
        pytest.param([0, 60, 120, 180, 240], [1, 2, 3, 4, 5], [3.0], id="a full bin is the mean of its samples"),
        pytest.param([0, 60, 120], [1, 2, 3], [2.0], id="half of the samples are enough"),
        pytest.param([0, 60], [1, 2], [np.nan], id="less than half of the samples is a missing bin"),
        pytest.param([0, 60, 120], [1, np.nan, np.inf], [np.nan], id="missing and infinite samples do not count"),
        pytest.param(
            [600, 660, 720, 0, 60, 120], [9, 9, 9, 1, 1, 1], [1.0, np.nan, 9.0], id="a hole is missing, order is free"
        ),
        pytest.param([0, 60, 120], [0, 0, 0], [0.0], id="observed zeros are zero"),
        pytest.param([], [], [], id="no sample is no bin"),
    ],
)
def test_samples_become_means(at: list[float], values: list[float], expected: list[float]) -> None:
    series = mean_of_samples(np.array(at, float), np.array(values, float), 60, 300)
    np.testing.assert_allclose(series.values, expected)


@pytest.mark.parametrize(
    ("at", "amounts", "expected"),
    [
        pytest.param([0, 10, 310], [30, 30, 1], [0.2], id="amounts become a rate, the running bin is left out"),
        pytest.param([0, 910], [300, 1], [1.0, 0.0, 0.0], id="a recorded bin without requests is zero"),
        pytest.param([0, 5, 310], [30, np.nan, 1], [0.1], id="a request without a count adds nothing"),
        pytest.param([], [], [], id="no request is no bin"),
    ],
)
def test_requests_become_rates(at: list[float], amounts: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(rate_of_events(np.array(at, float), np.array(amounts, float), 300).values, expected)


def test_bins_are_aligned_to_the_clock() -> None:
    series = mean_of_samples(np.array([450.0, 510, 570]), np.ones(3), 60, 300)
    assert (series.start_seconds, series.end_seconds) == (300.0, 600.0)


def test_wider_bins_keep_the_load() -> None:
    series = TimeSeries(0.0, 300, np.array([1.0, 3.0, np.nan, 5.0, np.nan, np.nan]))
    np.testing.assert_allclose(series.resampled(600).values, [2.0, 5.0, np.nan])


def test_bins_that_do_not_nest_are_refused() -> None:
    with pytest.raises(ValueError, match="no multiple"):
        TimeSeries(0.0, 300, np.ones(3)).resampled(700)


def test_a_wrong_unit_of_time_is_refused_instead_of_filling_the_memory() -> None:
    with pytest.raises(ValueError, match="is the unit seconds"):
        rate_of_events(np.array([0.0, 1.7e18]), np.ones(2), 300)
