from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from autoscaler.foresight.fleet_foresight import FleetForesight
from autoscaler.foresight.foresight import SeenPool
from autoscaler.observers.metrics import PoolKey, PoolQuery
from forecasting.forecast import Forecast, ForecastUnavailable, UnavailableReason
from forecasting.parameters import ForecastingParameters
from policies.observation import ObservationUnavailable, ReplicaCounts
from policies.recommenders.forecast import ForecastParameters
from policies.signals import Signal
from tests.builders import a_blackout, an_even_signal, an_observation
from tests.fakes.work_history import FakeWorkHistory, PatientExecutor
from tests.forecasting.loads import diurnal

BIN = 1800  # seconds; half-hours are quicker to replay
BEGIN = 1_900_000_800.0  # a multiple of it
LLAMA, QWEN = ("inference", "llama"), ("inference", "qwen")
TICK = 60.0
DAYS = diurnal(5, day_bins=48)


def seen(key: PoolKey, tokens_per_second: float | None) -> SeenPool:
    signals = {
        Signal.PROMPT_TOKENS: an_even_signal(tokens_per_second or 0.0, 4),
        Signal.GENERATION_TOKENS: an_even_signal(0.0, 4),
    }
    metrics: ObservationUnavailable = a_blackout()
    return SeenPool(
        PoolQuery(key, "vllm", key[1], (), {}),
        ForecastParameters(),
        ReplicaCounts(4, 4, 4),
        metrics if tokens_per_second is None else an_observation(signals),
    )


class World:
    """A foresight whose ticks come every minute of made-up time."""

    def __init__(self, history: FakeWorkHistory | None = None, *, is_prompt: bool = True) -> None:
        self.history = history or FakeWorkHistory({LLAMA: DAYS, QWEN: 2 * DAYS})
        self.executor = PatientExecutor(is_prompt)
        self.foresight = FleetForesight(self.history, self.executor, ForecastingParameters(bin_seconds=BIN))
        self.now = BEGIN

    def run(
        self, seconds: float, loads: Mapping[PoolKey, float | None]
    ) -> Mapping[PoolKey, Forecast | ForecastUnavailable]:
        answers: Mapping[PoolKey, Forecast | ForecastUnavailable] = {}
        end = self.now + seconds
        while self.now < end:
            answers = self.foresight.foresee([seen(key, load) for key, load in loads.items()], self.now)
            self.now += TICK
        return answers


def reason_of(answer: Forecast | ForecastUnavailable) -> UnavailableReason | None:
    return answer.reason if isinstance(answer, ForecastUnavailable) else None


def test_the_recorded_past_is_replayed_before_the_first_forecast() -> None:
    world = World(is_prompt=False)
    assert reason_of(world.run(TICK, {LLAMA: 1.0})[LLAMA]) is UnavailableReason.READING_HISTORY
    world.executor.work()
    forecast = world.run(TICK, {LLAMA: 1.0})[LLAMA]
    assert isinstance(forecast, Forecast)
    assert (forecast.origin_seconds, forecast.latest) == (BEGIN, pytest.approx(DAYS[-1], rel=1e-4))
    assert forecast.why_not_acting(2.0 * BIN) is None


def test_a_bin_that_closes_is_taken_up_and_the_forecast_renewed() -> None:
    world = World()
    world.run(BIN, {LLAMA: 123.0})
    forecast = world.run(TICK, {LLAMA: 123.0})[LLAMA]
    assert isinstance(forecast, Forecast)
    assert (forecast.origin_seconds, forecast.latest) == (BEGIN + BIN, 123.0)


def test_what_closed_while_the_past_was_read_is_caught_up_with() -> None:
    world = World(is_prompt=False)
    world.run(3 * BIN, {LLAMA: 123.0})
    world.executor.work()
    forecast = world.run(TICK, {LLAMA: 123.0})[LLAMA]
    assert isinstance(forecast, Forecast)
    assert (forecast.origin_seconds, forecast.latest) == (BEGIN + 3 * BIN, 123.0)


def test_all_pools_are_read_at_once_and_none_is_read_again() -> None:
    world = World()
    world.run(4 * BIN, {LLAMA: 1.0, QWEN: 2.0})
    assert world.history.asked == [(LLAMA, QWEN)]


def test_a_pool_that_joins_is_read_by_itself_and_one_that_leaves_is_forgotten() -> None:
    world = World()
    world.run(2 * BIN, {LLAMA: 1.0})
    answers = world.run(2 * BIN, {LLAMA: 1.0, QWEN: 2.0})
    assert all(isinstance(answer, Forecast) for answer in answers.values())
    assert world.history.asked == [(LLAMA,), (QWEN,)]
    world.run(2 * BIN, {QWEN: 2.0})
    world.run(2 * BIN, {LLAMA: 1.0, QWEN: 2.0})
    assert world.history.asked == [(LLAMA,), (QWEN,), (LLAMA,)]


def test_many_small_groups_become_one() -> None:
    keys = [("inference", f"pool-{number}") for number in range(9)]
    world = World(FakeWorkHistory({key: DAYS for key in keys}))
    for count in range(1, 10):
        world.run(TICK, {key: 1.0 for key in keys[:count]})
    answers = world.run(3 * TICK, dict.fromkeys(keys, 1.0))
    assert max(map(len, world.history.asked)) > 6
    assert all(isinstance(answer, Forecast) for answer in answers.values())


def test_without_a_recorded_past_it_learns_from_now_on_and_asks_again() -> None:
    world = World()
    world.history.problem = "Prometheus does not answer"
    assert reason_of(world.run(2 * TICK, {LLAMA: 50.0})[LLAMA]) is UnavailableReason.NO_DATA
    forecast = world.run(BIN + TICK, {LLAMA: 50.0})[LLAMA]
    assert isinstance(forecast, Forecast)
    refusal = forecast.why_not_acting(2.0 * BIN)
    assert refusal is not None
    assert refusal.reason is UnavailableReason.TOO_LITTLE_HISTORY
    world.history.problem = None
    forecast = world.run(3 * BIN, {LLAMA: 50.0})[LLAMA]
    assert isinstance(forecast, Forecast)
    assert forecast.why_not_acting(2.0 * BIN) is None
    assert 3 <= len(world.history.asked) <= 6  # after 1, 2, 4, 8 and 15 minutes


def test_a_past_that_cannot_be_read_takes_nothing_from_pools_that_have_one() -> None:
    world = World()
    world.run(2 * BIN, {LLAMA: 50.0})
    world.history.problem = "Prometheus does not answer"
    answers = world.run(3 * BIN, {LLAMA: 50.0, QWEN: 1.0})
    assert isinstance(answers[LLAMA], Forecast)
    assert answers[LLAMA].why_not_acting(2.0 * BIN) is None
    assert isinstance(answers[QWEN], Forecast)
    assert answers[QWEN].why_not_acting(2.0 * BIN) is not None


def test_after_a_long_silence_the_past_is_read_anew() -> None:
    """As on a standby that led before and leads again: what came meanwhile is in Prometheus."""
    world = World()
    world.run(2 * BIN, {LLAMA: 50.0})
    world.now += 24 * 3600.0
    world.run(2 * BIN + TICK, {LLAMA: 50.0})
    assert world.history.asked == [(LLAMA,), (LLAMA,)]
    answer = world.run(TICK, {LLAMA: 50.0})[LLAMA]
    assert isinstance(answer, Forecast)
    assert world.now - answer.origin_seconds < BIN + 2 * TICK


def test_a_decision_gets_what_it_looks_at_of_the_newest_forecast() -> None:
    world = World()
    world.run(BIN, {LLAMA: 50.0})
    answer, newest = world.run(TICK, {LLAMA: 50.0})[LLAMA], world.foresight.newest(LLAMA)
    assert newest is not None
    assert newest.point
    assert newest.quantiles
    assert answer == newest.for_a_decision()


def test_a_bin_in_which_nothing_was_seen_is_missing_and_not_zero() -> None:
    world = World()
    world.run(BIN, {LLAMA: None})
    world.run(TICK, {LLAMA: None})
    forecast = world.foresight.newest(LLAMA)
    assert forecast is not None
    assert forecast.latest is None
    assert forecast.point[0] > 0.3 * np.median(DAYS)
