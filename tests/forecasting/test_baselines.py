import numpy as np
import pytest

from forecasting.models import DEFAULT_MODEL, MODELS
from forecasting.parameters import ForecastingParameters
from tests.forecasting.loads import diurnal

HOURS = ForecastingParameters(bin_seconds=3600, steps=2)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param("last-value", [47.0, 47.0], id="the last value repeats itself"),
        pytest.param("seasonal-naive", [24.0, 25.0], id="the naive season repeats yesterday's next hours"),
    ],
)
def test_point_of_a_rising_load(model: str, expected: list[float]) -> None:
    forecaster = MODELS[model](1, HOURS)
    said = [forecaster.advance(np.array([float(hour)])) for hour in range(48)][-1]
    np.testing.assert_allclose(said.point[0], expected)


@pytest.mark.parametrize("model", [name for name in MODELS if name != DEFAULT_MODEL])
def test_a_baseline_says_nothing_before_it_knows_something(model: str) -> None:
    said = MODELS[model](1, HOURS).advance(np.array([np.nan]))
    assert np.isnan(said.point).all()


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_covers_a_clean_day_as_it_should(model: str) -> None:
    parameters = ForecastingParameters(bin_seconds=1800)
    loads = diurnal(20, day_bins=48)
    forecaster = MODELS[model](1, parameters)
    said = [forecaster.advance(loads[t : t + 1]) for t in range(len(loads))]
    covered = [loads[t + 2] <= said[t].quantiles[0, 1, 1] for t in range(10 * 48, len(loads) - 2)]
    assert 0.84 <= np.mean(covered) <= 0.95


def test_a_missing_value_repeats_the_last_one() -> None:
    forecaster = MODELS["last-value"](1, HOURS)
    forecaster.advance(np.array([5.0]))
    np.testing.assert_allclose(forecaster.advance(np.array([np.nan])).point[0], 5.0)
