from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from forecasting.forecast import Forecast, ForecastUnavailable, UnavailableReason
from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import ScalingDecision, decide
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.reasons import Reason
from policies.recommenders.forecast import recommend_forecast
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_history,
    a_policy,
    an_even_signal,
    an_observation,
    without,
)
from tests.forecast_builders import OPEN, RISING, SHUT, YOUNG, a_forecast

RATE = {"tokenRate": {"perReplicaPerSecond": 5000}}
MEDIAN = {"quantilePercent": 50}
UNAVAILABLE = Reason.FORECAST_UNAVAILABLE


def the_vote(forecast: Forecast | ForecastUnavailable | None, signals: Any = RATE, **parameters: Any) -> Any:
    policy = a_policy(signals=signals, forecast={"mode": "Active", **(parameters or MEDIAN)})
    votes = recommend_forecast(replace(a_decision_input(policy), forecast=forecast))
    assert len(votes) == 1
    return votes[0]


@pytest.mark.parametrize(
    ("forecast", "parameters", "replicas"),
    [
        pytest.param(RISING, {"mode": "Active"}, 45_000 / 5000, id="of nothing that is asked for, the 70 % quantile"),
        pytest.param(RISING, MEDIAN, 30_000 / 5000, id="a start of 300 s and 60 s of buffer reach into the second bin"),
        pytest.param(
            RISING, {"bufferSeconds": 0, **MEDIAN}, 20_000 / 5000, id="without the buffer they end with the first"
        ),
        pytest.param(
            replace(RISING, origin_seconds=NOW - 250), {}, 40_000 / 5000, id="a forecast 250 s old is looked at further"
        ),
        pytest.param(
            RISING, {"bufferSeconds": 3600, **MEDIAN}, 50_000 / 5000, id="beyond its reach the whole reach counts"
        ),
        pytest.param(RISING, {"quantilePercent": 90}, 60_000 / 5000, id="a quantile that is asked for"),
        pytest.param(RISING, {"missIdleCostRatio": 9}, 60_000 / 5000, id="the quantile that follows from the costs"),
        pytest.param(RISING, {"quantilePercent": 70}, 45_000 / 5000, id="between two quantiles it is interpolated"),
        pytest.param(a_forecast(10, 499, 0, 0), {}, 0.0, id="less than a tenth of a replica is no reason for one"),
    ],
)
def test_the_largest_expected_load_until_a_replica_could_serve(
    forecast: Forecast, parameters: Any, replicas: float
) -> None:
    assert the_vote(forecast, **parameters).replicas == pytest.approx(replicas)


@pytest.mark.parametrize(
    ("forecast", "signals", "message"),
    [
        pytest.param(None, RATE, "nothing is forecast yet", id="no forecaster has spoken"),
        pytest.param(
            ForecastUnavailable(UnavailableReason.NO_DATA, "no load has been observed yet"),
            RATE,
            "NoData: no load has been observed yet",
            id="the forecaster has no data",
        ),
        pytest.param(
            replace(RISING, origin_seconds=NOW - 901), RATE, "the newest forecast is 15.0 min old", id="it is stale"
        ),
        pytest.param(
            a_forecast(1, 1, 1, 1, skills=(OPEN, SHUT, OPEN, OPEN)),
            RATE,
            "NotBetterThanLastValue: loss is 1.10 of the last value's at step 2; acts below 0.95",
            id="the gate of its step is shut",
        ),
        pytest.param(
            a_forecast(1, 1, 1, 1, skills=(YOUNG,) * 4),
            RATE,
            "TooLittleHistory: 100 of 288 bins of own backtest at step 2",
            id="it has not been judged for long enough",
        ),
        pytest.param(
            RISING, {"kvCache": {}}, "is not learned yet", id="a replica's share is neither stated nor learned"
        ),
    ],
)
def test_without_a_forecast_it_says_why(forecast: Any, signals: Any, message: str) -> None:
    vote = the_vote(forecast, signals)
    assert (vote.recommender, vote.replicas, vote.reason) == ("forecast", None, UNAVAILABLE)
    assert (vote.is_forecast, vote.reads_replicas, vote.is_advice) == (True, False, False)
    assert message in vote.message


def test_that_there_is_none_is_advice_where_a_forecast_only_advises() -> None:
    vote = the_vote(None, mode="Advise")
    assert (vote.replicas, vote.is_advice, vote.is_forecast) == (None, True, True)


CAPACITY = LearnedCapacity(16_000.0, 750.0, 54_000.0, safe_utilization=0.7)


def test_what_a_replica_carries_may_be_learned() -> None:
    """Requests of 2000 x 0.8 computed and 300 generated tokens take 0.5 s of a replica: 0.7 x 2300 / 0.5 a second."""
    policy = a_policy(signals={"kvCache": {}}, forecast={"mode": "Active", **MEDIAN})
    decision_input = replace(a_decision_input(policy), forecast=RISING, learned_capacity=CAPACITY)
    (vote,) = recommend_forecast(decision_input)
    assert vote.replicas == pytest.approx(30_000 / 3220)


def decided(
    mode: str,
    forecast: Forecast | ForecastUnavailable | None = RISING,
    *,
    spec: int = 4,
    metrics: MetricsObservation | ObservationUnavailable | None = None,
    signals: Any = RATE,
) -> ScalingDecision:
    policy = a_policy(minReplicas=1, signals=signals, forecast={"mode": mode, **MEDIAN})
    counts = ReplicaCounts(spec, spec, spec)
    decision_input = a_decision_input(policy, metrics or an_observation(), replicas=counts, history=a_history())
    return decide(replace(decision_input, forecast=forecast))


def test_off_means_no_vote_at_all() -> None:
    assert [vote.recommender for vote in decided("Off").recommendations] == ["tokenRate"]


def test_advice_is_recorded_and_changes_nothing() -> None:
    off, advised = decided("Off"), decided("Advise")
    assert advised.recommendations[-1].replicas == pytest.approx(6.0)
    assert (advised.desired_replicas, advised.binding, advised.steps) == (off.desired_replicas, off.binding, off.steps)
    assert advised.next_history == off.next_history
    assert "forecast 6 (advice only)" in advised.message


def test_active_raises_like_any_other_vote() -> None:
    decision = decided("Active")
    assert (decision.desired_replicas, decision.binding, decision.reason) == (6, "forecast", Reason.FORECAST)
    assert decision.message == (
        "6: the forecast for the next 6 min (50 % quantile 30 000 tokens a second at 5 000 a replica) needs 6; "
        "tokenRate 3.68; without the forecast: 4"
    )


def test_active_holds_what_the_forecast_still_needs() -> None:
    """18 400 tokens a second need 3.68 of 10 replicas, the forecast 6: the larger one is what shrinking stops at."""
    assert decided("Active", spec=10).desired_replicas == 6
    assert decided("Off", spec=10).desired_replicas == 4


NO_RATES = without(an_observation(), Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)


def test_a_forecast_that_makes_no_difference_is_not_said_to_make_one() -> None:
    """At 3.68 replicas by the token rate and 3.9 by the forecast there are four either way."""
    decision = decided("Active", a_forecast(*[19_500] * 4))
    assert (decision.desired_replicas, decision.binding) == (4, "forecast")
    assert decision.message == (
        "4: the forecast for the next 6 min (50 % quantile 19 500 tokens a second at 5 000 a replica) needs 3.90; "
        "tokenRate 3.68"
    )


def test_a_forecast_alone_lowers_nothing() -> None:
    decision = decided("Active", spec=10, metrics=NO_RATES)
    assert (decision.desired_replicas, decision.reason) == (10, Reason.FORECAST)
    assert "a forecast alone lowers nothing" in decision.message


def test_a_forecast_acts_while_the_pool_cannot_be_seen_and_lowers_nothing_then() -> None:
    assert decided("Active", metrics=a_blackout()).desired_replicas == 6
    assert decided("Active", spec=10, metrics=a_blackout()).desired_replicas == 10


def test_that_there_is_no_forecast_blocks_nothing() -> None:
    unavailable = ForecastUnavailable(UnavailableReason.NO_DATA, "no load has been observed yet")
    assert decided("Active", unavailable, spec=10).desired_replicas == 4


def test_an_expected_load_does_not_disprove_that_a_pool_is_idle_now() -> None:
    signals = {
        name: an_even_signal(0.0, 4)
        for name in (
            Signal.RUNNING_REQUESTS,
            Signal.WAITING_REQUESTS,
            Signal.REQUESTS_FINISHED,
            Signal.PROMPT_TOKENS,
            Signal.GENERATION_TOKENS,
        )
    }
    assert decided("Active", metrics=an_observation(signals)).next_history.idle_since_seconds == NOW


def test_a_larger_forecast_never_asks_for_less() -> None:
    counts = [decided("Active", a_forecast(*[load] * 4)).desired_replicas for load in range(0, 400_000, 7_000)]
    assert counts == sorted(counts)
