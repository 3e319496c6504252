import numpy as np
import pytest
from numpy.typing import NDArray

from forecasting.forecast import Forecast, ForecastUnavailable, StepSkill, UnavailableReason, level_from_costs
from forecasting.parameters import ForecastingParameters
from forecasting.selection import GatedFleet
from tests.forecasting.loads import diurnal

PARAMETERS = ForecastingParameters(bin_seconds=1800)
UNTIL_SECONDS = 3600.0


def fed(loads: NDArray[np.float64]) -> GatedFleet:
    fleet = GatedFleet(1, PARAMETERS)
    for load in loads:
        fleet.advance(np.array([load]))
    return fleet


def walk(days: int) -> NDArray[np.float64]:
    steps = np.random.default_rng(5).normal(0, 0.01, days * 48)
    return np.asarray(100 * np.exp(np.cumsum(steps)))


@pytest.mark.parametrize(
    ("loads", "until_seconds", "reason"),
    [
        pytest.param(np.full(96, np.nan), UNTIL_SECONDS, UnavailableReason.NO_DATA, id="no load was ever seen"),
        pytest.param(
            diurnal(0.5, day_bins=48),
            UNTIL_SECONDS,
            UnavailableReason.TOO_LITTLE_HISTORY,
            id="half a day is too little",
        ),
        pytest.param(
            walk(14), UNTIL_SECONDS, UnavailableReason.NOT_BETTER_THAN_LAST_VALUE, id="a random walk has no pattern"
        ),
        pytest.param(
            diurnal(6, day_bins=48), 4 * 3600.0, UnavailableReason.HORIZON_TOO_LONG, id="a window beyond the last step"
        ),
        pytest.param(diurnal(6, day_bins=48), UNTIL_SECONDS, None, id="a clean day is forecast"),
    ],
)
def test_who_may_act(loads: NDArray[np.float64], until_seconds: float, reason: UnavailableReason | None) -> None:
    answer = fed(loads).acting_forecast(0, 1e6, until_seconds)
    if reason is None:
        assert isinstance(answer, Forecast)
    else:
        assert isinstance(answer, ForecastUnavailable)
        assert answer.reason is reason


def test_a_pattern_that_ends_shuts_the_gate() -> None:
    fleet = fed(diurnal(8, day_bins=48))
    assert fleet.gate.is_open[0, 1]
    for load in walk(16):
        fleet.advance(np.array([load]))
    assert not fleet.gate.is_open[0, 1]


def test_a_replayed_past_serves_like_a_lived_one() -> None:
    loads = diurnal(8, day_bins=48)
    lived, replayed = fed(loads), GatedFleet(1, PARAMETERS)
    replayed.replay(loads[:, None])
    both = [fleet.acting_forecast(0, 1e6, UNTIL_SECONDS) for fleet in (lived, replayed)]
    assert all(isinstance(each, Forecast) for each in both)
    quantiles = [np.array(each.quantiles) for each in both if isinstance(each, Forecast)]
    np.testing.assert_allclose(quantiles[0], quantiles[1], rtol=0.1)


def test_advice_is_there_while_the_gate_is_shut() -> None:
    assert isinstance(fed(walk(6)).advised_forecast(0, 1e6), Forecast)


FORECAST = Forecast(
    origin_seconds=0.0,
    bin_seconds=300,
    levels=(0.5, 0.9),
    point=(1.0, 2.0),
    quantiles=((1.0, 2.0), (2.0, 4.0)),
    window_quantiles=((1.0, 2.0), (3.0, 5.0)),
    latest=1.0,
    is_outage_hold=False,
    skills=(StepSkill(True, 0.8, 300, 288), StepSkill(False, 1.1, 300, 288)),
)


@pytest.mark.parametrize(
    ("until_seconds", "level", "expected"),
    [
        pytest.param(0.0, 0.9, 2.0, id="at once: the bin that has begun"),
        pytest.param(300.0, 0.9, 2.0, id="a window of one bin"),
        pytest.param(301.0, 0.9, 5.0, id="a part of a bin counts as one"),
        pytest.param(600.0, 0.7, 4.0, id="between two levels it is interpolated"),
        pytest.param(600.0, 0.99, 5.0, id="above the highest level the highest is taken"),
    ],
)
def test_window_quantile(until_seconds: float, level: float, expected: float) -> None:
    assert FORECAST.window_quantile(until_seconds, level) == pytest.approx(expected)


def test_a_window_too_long_is_refused() -> None:
    answer = FORECAST.window_quantile(601.0, 0.9)
    assert isinstance(answer, ForecastUnavailable)
    assert answer.reason is UnavailableReason.HORIZON_TOO_LONG


@pytest.mark.parametrize(
    ("until_seconds", "reason"),
    [
        pytest.param(300.0, None, id="a step that beats the last value acts"),
        pytest.param(
            301.0, UnavailableReason.NOT_BETTER_THAN_LAST_VALUE, id="a later step that does not, does not act"
        ),
        pytest.param(601.0, UnavailableReason.HORIZON_TOO_LONG, id="nothing acts beyond the last step"),
    ],
)
def test_each_step_has_a_gate_of_its_own(until_seconds: float, reason: UnavailableReason | None) -> None:
    refusal = FORECAST.why_not_acting(until_seconds)
    assert (refusal.reason if refusal else None) is reason


def test_the_level_follows_from_costs() -> None:
    assert level_from_costs(9.0, 1.0) == pytest.approx(0.9)
    with pytest.raises(ValueError, match="positive"):
        level_from_costs(0.0, 1.0)
