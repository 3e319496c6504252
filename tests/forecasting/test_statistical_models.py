from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from forecasting.backtest import run_backtest
from forecasting.models import MODELS, MODELS_TO_RUN_APART
from forecasting.parameters import ForecastingParameters
from forecasting.statistical_models import run_apart
from forecasting.time_series import TimeSeries
from tests.forecasting.loads import diurnal

LEVELS = (0.5, 0.9, 0.95)


def test_a_day_that_comes_again_is_told_better_than_by_the_last_value() -> None:
    series = TimeSeries(0.0, 1800, diurnal(8, day_bins=48))
    backtest = run_apart(run_backtest, series, "autoreg", 2.0, LEVELS)
    ratios = [each.ratio_to_last_value for each in backtest.steps]
    assert ratios[3] is not None
    assert ratios[3] < 0.95, ratios


@pytest.mark.parametrize("model", sorted(MODELS_TO_RUN_APART))
@pytest.mark.parametrize(
    "loads",
    [
        pytest.param(np.full(110, np.nan), id="nothing was ever seen"),
        pytest.param(np.zeros(110), id="nothing ever came"),
        pytest.param(np.where(np.arange(110) % 3 == 0, np.nan, 50.0), id="every third bin is missing"),
    ],
)
def test_edge_inputs_give_numbers_or_nothing(model: str, loads: np.ndarray) -> None:
    forecaster = MODELS[model](1, ForecastingParameters(bin_seconds=1800))
    for load in loads:
        said = forecaster.advance(np.array([load])).quantiles
    assert np.isnan(said).all() if np.isnan(loads).all() else (np.isfinite(said) & (said >= 0) & (said < 100)).all()


def test_nothing_of_statsmodels_is_in_the_controllers_process() -> None:
    imports = "import sys, autoscaler.wiring, autoscaler.commands.forecast"
    code = f"{imports}; assert not {{'statsmodels', 'scipy'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=120)


def test_a_cross_check_is_of_one_pool() -> None:
    with pytest.raises(ValueError, match="one pool"):
        MODELS["autoreg"](2, ForecastingParameters())
