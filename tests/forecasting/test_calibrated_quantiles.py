import numpy as np
import pytest

from forecasting.calibrated_quantiles import CalibratedQuantiles, CalibrationParameters

PARAMETERS = CalibrationParameters(
    levels=(0.5, 0.9), ring_bins=200, adaptation=0.0, evaluation_bins=1, prior_weight=12.0, largest_error=30.0
)


def fill(errors: list[float], parameters: CalibrationParameters = PARAMETERS) -> CalibratedQuantiles:
    quantiles = CalibratedQuantiles(1, 1, parameters)
    for now, error in enumerate(errors):
        quantiles.learn(now, np.array([[error]]), np.ones((1, 1, 2)))
    return quantiles


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        pytest.param([], [0.0, 1.55], id="without errors the prior curve speaks"),
        pytest.param([9.0] * 7, [0.0, 1.55], id="seven errors do not count yet"),
        pytest.param([4.0] * 12, [2.0, 2.775], id="twelve errors count as much as the prior"),
        pytest.param([float("nan")] * 50, [0.0, 1.55], id="missing errors are none"),
        pytest.param([1e9] * 188, [30 * 0.94, 30 * 0.94 + 0.06 * 1.55], id="an error beyond 30 scales counts as 30"),
    ],
)
def test_multiples(errors: list[float], expected: list[float]) -> None:
    np.testing.assert_allclose(fill(errors).multiples[0, 0], expected)


def test_old_errors_leave_the_ring() -> None:
    quantiles = fill([25.0] * 200 + [1.0] * 200)
    assert quantiles.multiples[0, 0, 1] < 1.1


@pytest.mark.parametrize(
    ("is_covered", "is_wider"),
    [
        pytest.param(0.0, True, id="a load above every quantile widens them"),
        pytest.param(1.0, False, id="a load always covered narrows them"),
    ],
)
def test_the_level_follows_the_coverage(is_covered: float, is_wider: bool) -> None:
    adaptive = CalibrationParameters((0.5, 0.9), 200, 0.002, 1, 12.0, 30.0)
    random = np.random.default_rng(1)
    errors = random.normal(size=200)
    fixed = fill(list(errors)).multiples[0, 0, 1]
    quantiles = CalibratedQuantiles(1, 1, adaptive)
    for now, error in enumerate(errors):
        quantiles.learn(now, np.array([[error]]), np.full((1, 1, 2), is_covered))
    assert (quantiles.multiples[0, 0, 1] > fixed) == is_wider
