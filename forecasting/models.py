"""Which models are there? The table of choices, and those that only a process of their own may run."""

from __future__ import annotations

from collections.abc import Callable

from forecasting.fleet_model import FleetModel
from forecasting.forecast import FleetForecaster
from forecasting.last_value import LastValue
from forecasting.parameters import ForecastingParameters
from forecasting.profile import Profile
from forecasting.seasonal_naive import SeasonalNaive
from forecasting.statistical_models import FourierAutoRegression, StructuralModel

DEFAULT_MODEL = "ridge"

MODELS: dict[str, Callable[[int, ForecastingParameters], FleetForecaster]] = {
    "ridge": FleetModel,
    "last-value": LastValue,
    "seasonal-naive": SeasonalNaive,
    "profile": Profile,
    "autoreg": FourierAutoRegression,
    "structural": StructuralModel,
}

# They import statsmodels when they are first fitted.
MODELS_TO_RUN_APART = frozenset({"autoreg", "structural"})
