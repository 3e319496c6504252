from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.conditions import Condition, ConditionType, rfc3339
from autoscaler.api.forecast_status import ForecastStatus
from autoscaler.controller.forecast_report import forecast_status
from autoscaler.controller.pool_conditions import judged_conditions
from autoscaler.controller.pool_report import Decided
from autoscaler.foresight.forecast_metrics import ForecastMetrics
from forecasting.forecast import Forecast, ForecastUnavailable, UnavailableReason
from policies.cold_start import ObservedStart, learn_cold_start
from tests.builders import NOW
from tests.forecast_builders import RISING, SHUT, a_forecast
from tests.pool_builders import a_decision_report, a_scaler

RATE = {"tokenRate": {"perReplicaPerSecond": 5000}}
NO_DATA = ForecastUnavailable(UnavailableReason.NO_DATA, "no load has been observed yet")
PEAK = rfc3339(NOW + 900)


def reported(forecast: Forecast | ForecastUnavailable | None = RISING, mode: str = "Active", **more: Any) -> Decided:
    scaler = a_scaler(signals=RATE, coldStart={"priorSeconds": 300}, forecast={"mode": mode, "quantilePercent": 50})
    return a_decision_report(scaler=scaler, forecast=forecast, **more)


@pytest.mark.parametrize(
    ("report", "status"),
    [
        pytest.param(
            reported(),
            ForecastStatus(
                mode="Active",
                acts=True,
                message=(
                    "the forecast for the next 6 min (50 % quantile 30 000 tokens a second at 5 000 a replica) needs "
                    f"6; the peak ahead is 50 000 at {PEAK[11:16]} UTC; its loss is 0.700 of the last value's; it acts"
                ),
                current_tokens_per_second=20_000,
                expected_tokens_per_second=30_000,
                expected_replicas=6.0,
                peak_tokens_per_second=50_000,
                peak_time=PEAK,
                loss_ratio=0.7,
            ),
            id="a forecast that acts",
        ),
        pytest.param(
            reported(a_forecast(20_000, 20_000, 20_000, 20_000, skills=(SHUT,) * 4)),
            ForecastStatus(
                mode="Active",
                acts=False,
                message=(
                    "NotBetterThanLastValue: loss is 1.10 of the last value's at step 2; acts below 0.95; the "
                    f"peak ahead is 20 000 at {rfc3339(NOW)[11:16]} UTC; its loss is 1.10 of the last value's; it "
                    "does not act"
                ),
                current_tokens_per_second=20_000,
                peak_tokens_per_second=20_000,
                peak_time=rfc3339(NOW),
                loss_ratio=1.1,
            ),
            id="a forecast whose gate is shut",
        ),
        pytest.param(
            reported(NO_DATA),
            ForecastStatus(mode="Active", acts=False, message="NoData: no load has been observed yet; it does not act"),
            id="no forecast",
        ),
        pytest.param(a_decision_report(scaler=a_scaler(signals=RATE)), None, id="a policy without forecast"),
        pytest.param(reported(mode="Off"), None, id="a forecast that is off"),
    ],
)
def test_what_the_status_says(report: Decided, status: ForecastStatus | None) -> None:
    assert forecast_status(report) == status


def test_advice_says_what_it_would_do() -> None:
    status = forecast_status(reported(mode="Advise"))
    assert status is not None
    assert not status.acts
    assert status.message.endswith("it would act: the mode is Advise")


@pytest.mark.parametrize(
    ("start_seconds", "expected"),
    [
        pytest.param(400.0, ("True", "HorizonLongEnough"), id="starts that the forecast sees coming"),
        pytest.param(1500.0, ("False", "HorizonTooShort"), id="starts that take longer than it reaches"),
    ],
)
def test_a_condition_warns_of_starts_that_are_longer_than_the_forecast_reaches(
    start_seconds: float, expected: tuple[str, str]
) -> None:
    def judged(seconds: float, before: tuple[Condition, ...] = ()) -> tuple[Condition, ...]:
        cold_start = learn_cold_start([ObservedStart(0.0, 0.0, seconds)] * 30, 300)
        return judged_conditions(before, reported(cold_start=cold_start))

    # That it reaches far enough is only said where it did not.
    conditions = {each.type: each for each in judged(start_seconds, before=judged(1500.0))}
    found = conditions[ConditionType.FORECAST_REACHES]
    assert (found.status.value, found.reason) == expected


def samples(*reports: Decided) -> dict[str, float]:
    metrics = ForecastMetrics()
    metrics.report(reports)
    return {sample.name: sample.value for family in metrics.collect() for sample in family.samples}


def test_metrics_tell_the_load_that_came_and_the_load_to_come() -> None:
    assert samples(reported()) == {
        "tokenscaler_arriving_tokens_per_second": 20_000.0,
        "tokenscaler_forecast_tokens_per_second": 30_000.0,
        "tokenscaler_forecast_loss_ratio": 0.7,
        "tokenscaler_forecast_acts": 1.0,
    }


def test_what_is_not_known_has_no_series() -> None:
    assert samples(reported(NO_DATA), a_decision_report()) == {"tokenscaler_forecast_acts": 0.0}
