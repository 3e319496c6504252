"""What does a report say of the load to come? The same for the status, the metrics and the page."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.api.conditions import rfc3339
from autoscaler.api.forecast_status import ForecastStatus
from autoscaler.controller.pool_report import Decided
from forecasting.forecast import Forecast
from policies.recommendation import ScalingRecommendation
from policies.recommenders.forecast import NAME as FORECAST
from policies.recommenders.forecast import ForecastMode, ForecastParameters
from policies.wording import joined, number


@dataclass(frozen=True, slots=True)
class ReportedForecast:
    """The forecast of a pool whose policy wants one, its vote, and whether the vote takes part in the decision."""

    parameters: ForecastParameters
    vote: ScalingRecommendation
    forecast: Forecast | None

    @property
    def acts(self) -> bool:
        """Whether it takes part in the decision."""
        return not self.vote.is_advice and self.vote.replicas is not None

    @property
    def loss_ratio(self) -> float | None:
        """How good it is at the step that the vote looks at; without a vote, at the last one."""
        if self.forecast is None:
            return None
        ahead = self.vote.values.get("untilSeconds", float(self.forecast.reach_seconds))
        return self.forecast.skills[self.forecast.step_for(ahead) - 1].loss_ratio


def reported_forecast(report: Decided) -> ReportedForecast | None:
    """None where nothing is forecast by the policy's will."""
    parameters = report.scaler.spec.parameters.forecast
    vote = next((each for each in report.decision.recommendations if each.recommender == FORECAST), None)
    if parameters is None or vote is None:
        return None
    forecast = report.decision_input.forecast
    return ReportedForecast(parameters, vote, forecast if isinstance(forecast, Forecast) else None)


def forecast_status(report: Decided) -> ForecastStatus | None:
    """What `.status.forecast` shows; None where nothing is forecast by the policy's will."""
    told = reported_forecast(report)
    if told is None:
        return None
    forecast, vote = told.forecast, told.vote
    peak = None if forecast is None else forecast.peak(told.parameters.level)
    return ForecastStatus(
        mode=told.parameters.mode.value,
        acts=told.acts,
        message=joined((vote.message, _peak_in_words(peak), _verdict(told)))[:1024],
        current_tokens_per_second=None if forecast is None else forecast.latest,
        expected_tokens_per_second=_rounded(vote.values.get("tokensPerSecondExpected")),
        expected_replicas=_rounded(vote.replicas),
        peak_tokens_per_second=_rounded(peak[0]) if peak else None,
        peak_time=rfc3339(peak[1]) if peak else None,
        loss_ratio=told.loss_ratio,
    )


def _peak_in_words(peak: tuple[float, float] | None) -> str:
    return "" if peak is None else f"the peak ahead is {number(peak[0])} at {rfc3339(peak[1])[11:16]} UTC"


def _verdict(told: ReportedForecast) -> str:
    ratio = told.loss_ratio
    skill = "" if ratio is None else f"its loss is {number(ratio)} of the last value's"
    if told.vote.replicas is None:
        return joined((skill, "it does not act"))
    is_advice = told.parameters.mode is ForecastMode.ADVISE
    return joined((skill, "it would act: the mode is Advise" if is_advice else "it acts"))


def _rounded(value: float | None) -> float | None:
    """Numbers that move in their last digits at every tick are no news."""
    return None if value is None else float(f"{value:.3g}")
