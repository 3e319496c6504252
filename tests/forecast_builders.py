"""Forecasts of which a test shows only what its case is about."""

from __future__ import annotations

from forecasting.forecast import Forecast, StepSkill
from tests.builders import NOW

OPEN, SHUT = StepSkill(True, 0.7, 500, 288), StepSkill(False, 1.1, 500, 288)
YOUNG = StepSkill(False, 0.7, 100, 288)


def a_forecast(
    *largest: float, age_seconds: float = 0.0, skills: tuple[StepSkill, ...] = (OPEN, OPEN, OPEN, OPEN)
) -> Forecast:
    """Medians of the largest load of the first 1..4 bins of 5 min; the 0.9 quantile is twice as much, 0.95 thrice."""
    window = tuple((each, 2 * each, 3 * each) for each in largest)
    return Forecast(NOW - age_seconds, 300, (0.5, 0.9, 0.95), largest, window, window, largest[0], False, skills)


RISING = a_forecast(20_000, 30_000, 40_000, 50_000)
