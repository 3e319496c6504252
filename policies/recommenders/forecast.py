"""How many replicas does the load ask for that is expected until a replica ordered now could serve?"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field, model_validator

from forecasting.forecast import ForecastUnavailable
from policies.load.work_rate import tokens_per_second_of_a_replica
from policies.observation import MetricsObservation
from policies.parameter_model import CelRule, ParameterModel
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation, abstention, vote
from policies.wording import duration

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here

NAME = "forecast"

# The longer a start takes, the further it is above the median: a slow start needs more room than a quick one.
DEFAULT_QUANTILE_PERCENT = 70.0
# A forecast of less than this share of one replica is no reason to have one: what wakes the pool up will do so.
LEAST_SHARE_OF_A_REPLICA = 0.1
# A forecast is renewed at the end of every bin; one that has missed two of them says nothing of now.
STALE_AFTER_BINS = 3.0

_ONE_WORD_FOR_COSTS = "give quantilePercent or missIdleCostRatio, not both"


class ForecastMode(StrEnum):
    """What a forecast may do."""

    OFF = "Off"
    ADVISE = "Advise"
    ACTIVE = "Active"


class ForecastParameters(ParameterModel):
    """Whether and how the expected load takes part in the decision."""

    mode: ForecastMode = Field(
        default=ForecastMode.ADVISE,
        description=(
            "Off: nothing is forecast. Advise (default): the vote is recorded and changes nothing. Active: it votes "
            "like the others, while it beats the last value on the pool's own recent past."
        ),
    )
    quantile_percent: float | None = Field(
        default=None,
        ge=50,
        le=95,
        description=(
            "Which quantile of the largest expected load is provided for. Null (default): by missIdleCostRatio, else "
            "70. 50 costs a few percent less and is short in every second rise."
        ),
    )
    miss_idle_cost_ratio: float | None = Field(
        default=None,
        ge=1,
        le=19,
        description=(
            "Cost of load without capacity over the cost of as much capacity without load; the quantile is "
            "r / (r + 1): 9 gives 90 percent."
        ),
    )
    history_days: int = Field(
        default=14,
        ge=1,
        le=22,
        description="Days of history that are read from Prometheus at the start. Default 14; 21 tell weekdays apart.",
    )
    buffer_seconds: int = Field(
        default=60,
        ge=0,
        le=3600,
        description=(
            "Seconds by which capacity should be Ready before it is needed, beside the cold start. Default 60: a "
            "scrape, a tick and the write."
        ),
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("!has(self.quantilePercent) || !has(self.missIdleCostRatio)", _ONE_WORD_FOR_COSTS, ".quantilePercent"),
    )

    @model_validator(mode="after")
    def _check_costs(self) -> Self:
        if self.quantile_percent is not None and self.miss_idle_cost_ratio is not None:
            raise ValueError(_ONE_WORD_FOR_COSTS)
        return self

    @property
    def level(self) -> float:
        """The quantile level: as given, else by the costs (a newsvendor's miss / (miss + idle)), else 0.70."""
        if self.miss_idle_cost_ratio is not None:
            return self.miss_idle_cost_ratio / (self.miss_idle_cost_ratio + 1.0)
        return (self.quantile_percent or DEFAULT_QUANTILE_PERCENT) / 100.0


def recommend_forecast(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """Replicas = quantile of the largest load from now until L90 + bufferSeconds / load that one replica carries.

    Load is tokens that arrive, per second; a replica carries tokenRate.perReplicaPerSecond, or what its learned
    capacity can be given. Where the cold start is longer than the forecast reaches, the whole reach is looked at.

    No opinion without a forecast, while the pool's own gate is shut, and where nothing says what a replica carries;
    that blocks nothing: to have no forecast is normal.
    """
    parameters = decision_input.parameters.forecast
    if parameters is None or parameters.mode is ForecastMode.OFF:
        return ()
    is_advice = parameters.mode is ForecastMode.ADVISE
    found = _demand(decision_input, parameters)
    share = _share_of_a_replica(decision_input)
    why = next((each for each in (found, share) if isinstance(each, NoOpinion)), None)
    if why is not None or isinstance(found, NoOpinion) or isinstance(share, NoOpinion):
        assert why is not None
        return (abstention(NAME, why, reads_replicas=False, is_forecast=True, is_advice=is_advice),)
    demand, age_seconds, until_seconds = found
    ahead_seconds = until_seconds - age_seconds
    needed = demand if demand >= LEAST_SHARE_OF_A_REPLICA * share else 0.0
    return (
        vote(
            NAME,
            Reason.FORECAST,
            needed,
            share,
            "the forecast for the next {} ({} % quantile {} tokens a second at {} a replica) needs",
            {
                "tokensPerSecondExpected": demand,
                "tokensPerSecondPerReplica": share,
                "quantileLevel": parameters.level,
                "aheadSeconds": ahead_seconds,
                "untilSeconds": until_seconds,
            },
            terms=(duration(ahead_seconds), 100 * parameters.level, demand, share),
            reads_replicas=False,
            is_forecast=True,
            is_advice=is_advice,
        ),
    )


def _demand(decision_input: DecisionInput, parameters: ForecastParameters) -> tuple[float, float, float] | NoOpinion:
    """The expected load, the age of the forecast, and the seconds after its origin up to which it was looked at."""
    forecast = decision_input.forecast
    if forecast is None:
        return NoOpinion(Reason.FORECAST_UNAVAILABLE, "nothing is forecast yet")
    if isinstance(forecast, ForecastUnavailable):
        return NoOpinion(Reason.FORECAST_UNAVAILABLE, f"{forecast.reason.value}: {forecast.message}")
    age_seconds = max(0.0, decision_input.now_seconds - forecast.origin_seconds)
    if age_seconds > STALE_AFTER_BINS * forecast.bin_seconds:
        return NoOpinion(Reason.FORECAST_UNAVAILABLE, f"the newest forecast is {duration(age_seconds)} old")
    wanted_seconds = age_seconds + decision_input.cold_start.l90_seconds + parameters.buffer_seconds
    until_seconds = min(wanted_seconds, float(forecast.reach_seconds))
    refusal = forecast.why_not_acting(until_seconds)
    if refusal is not None:
        return NoOpinion(Reason.FORECAST_UNAVAILABLE, f"{refusal.reason.value}: {refusal.message}")
    quantile = forecast.window_quantile(until_seconds, parameters.level)
    assert not isinstance(quantile, ForecastUnavailable)  # it is within the reach
    return quantile, age_seconds, until_seconds


def _share_of_a_replica(decision_input: DecisionInput) -> float | NoOpinion:
    """Tokens per second that one replica carries: as stated, else as learned, for requests of the present shape."""
    token_rate = decision_input.parameters.signals.token_rate
    if token_rate is not None and token_rate.per_replica_per_second is not None:
        return token_rate.per_replica_per_second
    metrics, capacity = decision_input.metrics, decision_input.learned_capacity
    learned = None
    if capacity is not None and isinstance(metrics, MetricsObservation):
        learned = tokens_per_second_of_a_replica(metrics, capacity)
    if learned is not None:
        return learned
    return NoOpinion(
        Reason.FORECAST_UNAVAILABLE,
        "how many tokens a second a replica carries is not learned yet; signals.tokenRate can state it",
    )
