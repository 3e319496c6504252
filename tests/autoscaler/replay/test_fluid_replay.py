from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from autoscaler.observers.metrics import PoolQuery
from autoscaler.replay.baselines.keda_hpa import keda_hpa
from autoscaler.replay.fluid_fleet import FluidFleet
from autoscaler.replay.fluid_pool import FluidPool
from autoscaler.replay.fluid_replay import LONGEST_STEP_SECONDS, fitting_step_seconds, fluid_replay
from autoscaler.replay.planned_counts import PlannedCounts
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.result import PoolResult
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.trace_load import LoadBins
from policies.history import LONGEST_GAP_SECONDS
from policies.observation import MetricsObservation, QueryValue
from policies.signals import Signal
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_scaler, a_setup
from tests.fakes.ports import FakeReporter


def a_load(rates: Sequence[float]) -> LoadBins:
    per_second = np.asarray(rates, dtype=np.float64)
    return LoadBins(60.0, per_second, np.full(len(rates), 1000.0), np.full(len(rates), 200.0))


def a_pool(rates: Sequence[float], replicas: int = 2, cold_start_seconds: float = 100.0) -> FluidPool:
    setup = a_setup(cold_start_seconds, initial_replicas=replicas)
    return FluidPool(setup, a_load(rates), np.random.default_rng(1), STARTED_AT)


def test_never_more_is_served_than_has_arrived_and_what_is_left_waits() -> None:
    pool = a_pool([5.0, 500.0, 0.0, 90.0, 3.0], replicas=1)
    for second in range(7, 300, 7):
        pool.advance(STARTED_AT + second)
        assert pool.served + pool.backlog == pytest.approx(pool.arrived)
        assert pool.served <= pool.arrived
    assert pool.short_seconds > 0


def test_a_new_replica_serves_after_its_cold_start_and_is_paid_for_before() -> None:
    pool = a_pool([1.0] * 10, replicas=1)
    pool.advance(STARTED_AT + 60)
    pool.scale(3)
    pool.advance(STARTED_AT + 159)
    assert (pool.replicas.ready, pool.replicas.starting) == (1, 2)
    pool.advance(STARTED_AT + 160)
    assert (pool.replicas.ready, pool.replicas.starting) == (3, 0)
    assert pool.replica_seconds == pytest.approx(60 + 100 * 3)
    assert [start.load_seconds for start in pool.seen_starts.starts] == pytest.approx([100.0, 100.0])


def test_a_replica_that_goes_is_paid_for_as_long_as_an_answer_takes() -> None:
    pool = a_pool([1.0] * 10)
    pool.advance(STARTED_AT + 60)
    pool.scale(1)
    assert (pool.replicas.ready, pool.replicas.terminating) == (1, 1)
    pool.advance(STARTED_AT + 120)
    assert pool.replicas.terminating == 0
    answer_seconds = pool.replica_seconds - 60 * 2 - 60
    assert 1.0 < answer_seconds < 10.0


@pytest.mark.parametrize(
    ("hours", "seconds"),
    [
        pytest.param(1.0, 15.0, id="an hour is decided as often as in a cluster"),
        pytest.param(42.0, 15.0, id="so are two days, nearly"),
        pytest.param(43.0, 30.0, id="a longer time every half minute"),
        pytest.param(336.0, 120.0, id="two weeks every two minutes"),
        pytest.param(5000.0, 120.0, id="longer times too: a longer silence is time that was not seen"),
    ],
)
def test_how_often_a_run_is_decided(hours: float, seconds: float) -> None:
    assert fitting_step_seconds(hours) == seconds


def test_no_step_is_longer_than_the_production_history_bears() -> None:
    assert LONGEST_STEP_SECONDS <= LONGEST_GAP_SECONDS


# What a day does, in ninety minutes: from a third to nearly all of what eight replicas may be given.
WAVE = [float(20.0 - 12.0 * np.cos(2 * np.pi * minute / 90.0)) for minute in range(90)]
RUN = ReplayRun(STARTED_AT, STARTED_AT + 60.0 * len(WAVE), dollars_per_accelerator_hour=2.0)


def fluid_result(step_seconds: float = 15.0, rates: Sequence[float] = WAVE, maximum: int = 20) -> PoolResult:
    scaler = a_scaler()
    scaler = replace(scaler, spec=scaler.spec.model_copy(update={"max_replicas": maximum}))
    return fluid_replay(ReconciledPolicy([scaler]), a_setup(), a_load(rates), RUN, step_seconds)


def the_same_by_requests() -> PoolResult:
    so_far = np.concatenate(([0.0], np.cumsum(np.asarray(WAVE) * 60.0)))
    seconds = np.interp(np.arange(1.0, so_far[-1]), so_far, 60.0 * np.arange(len(so_far)))
    requests = (Request(STARTED_AT + float(second), 1000, 200) for second in seconds)
    return replay(ReconciledPolicy([a_scaler()]), a_setup(), requests, RUN)


def test_replica_hours_are_within_a_tenth_of_those_of_an_exact_run() -> None:
    exact = the_same_by_requests()
    for step_seconds in (15.0, 60.0, 120.0):
        of_rates = fluid_result(step_seconds)
        assert of_rates.replica_hours == pytest.approx(exact.replica_hours, rel=0.1)
        assert of_rates.max_replicas == pytest.approx(exact.max_replicas, abs=1)
        assert of_rates.requests == pytest.approx(exact.requests, abs=1)
        assert of_rates.scale_downs > 0


def test_the_production_reconciler_decides_once_a_step() -> None:
    reporter = FakeReporter()
    result = fluid_replay(ReconciledPolicy([a_scaler()], reporters=[reporter]), a_setup(), a_load(WAVE), RUN, 60.0)
    assert len(reporter.ticks) == len(WAVE) == len(result.points)
    assert result.changes[0].reason
    assert "token" in result.changes[0].message


def test_a_run_of_rates_says_how_long_it_was_short_and_nothing_of_requests() -> None:
    result = fluid_result(maximum=3)
    assert result.short_seconds is not None
    assert 600.0 < result.short_seconds < 60.0 * len(WAVE)
    # It is short where most arrives.
    assert result.short_requests is not None
    assert result.short_share is not None
    assert result.short_share < result.short_requests / result.requests < 1.0
    assert result.short_share == pytest.approx(result.short_seconds / (60.0 * len(WAVE)))
    assert result.attainment is None
    assert result.time_to_first_token.p50_seconds is None
    assert result.cost_dollars == pytest.approx(2.0 * result.accelerator_hours)
    free = fluid_result().short_seconds
    assert free is not None
    assert free < result.short_seconds / 2


def test_a_plan_is_followed_at_its_own_moments() -> None:
    result = fluid_replay(PlannedCounts("plan", (2, 4, 3), 1800.0), a_setup(), a_load(WAVE), RUN, 60.0)
    assert [change.to_replicas for change in result.changes] == [4, 3]
    assert [change.at_seconds - STARTED_AT for change in result.changes] == [1800.0, 3600.0]


def test_the_same_seed_gives_the_same_run() -> None:
    one, again = fluid_result(60.0), fluid_result(60.0)
    assert (one.changes, one.points, one.replica_hours) == (again.changes, again.points, again.replica_hours)


def test_a_run_that_is_stopped_tells_what_was_run() -> None:
    half = RUN.starts_at_seconds + 1800.0
    result = fluid_replay(
        ReconciledPolicy([a_scaler()]), a_setup(), a_load(WAVE), RUN, 60.0, lambda now_seconds: now_seconds < half
    )
    assert result.was_stopped
    assert result.hours <= 0.5


@pytest.mark.parametrize("step_seconds", [15.0, 120.0])
def test_keda_reads_the_pages_of_the_replicas(step_seconds: float) -> None:
    steady = [20.0] * len(WAVE)  # 24,000 tokens a second
    policy = keda_hpa(1, 20, threshold=5_000.0)
    result = fluid_replay(policy, a_setup(initial_replicas=4), a_load(steady), RUN, step_seconds)
    assert result.points[-1].wanted == 5


def test_a_users_own_query_is_answered_from_the_pages() -> None:
    pool = a_pool([20.0] * 10)
    query = PoolQuery(KEY, "vllm", "vllm-chat", pool.pods, {"own": "sum(rate(vllm:prompt_tokens_total[1m]))"})
    fleet = FluidFleet(pool)
    for seconds in (60.0, 120.0, 180.0):
        fleet.advance(STARTED_AT + seconds)
        observed = fleet.observe_metrics([query], STARTED_AT + seconds)[KEY]
    assert isinstance(observed, MetricsObservation)
    answer = observed.queries["own"]
    assert isinstance(answer, QueryValue)
    assert answer.value == pytest.approx(20_000.0, rel=0.01)
    assert observed.signals[Signal.PROMPT_TOKENS].total == pytest.approx(20_000.0)
    assert observed.coverage == 1.0


def test_without_a_ready_replica_nothing_is_known_but_what_waits_at_the_gateway() -> None:
    pool = a_pool([20.0] * 10, replicas=0)
    pool.advance(STARTED_AT + 60.0)
    query = PoolQuery(KEY, "vllm", "vllm-chat", pool.pods, {"pendingRequests": "sum(gateway_queue_length)"})
    observed = FluidFleet(pool).observe_metrics([query], STARTED_AT + 60.0)[KEY]
    assert isinstance(observed, MetricsObservation)
    assert observed.queries["pendingRequests"] == QueryValue(1200.0, age_seconds=0.0)
    assert observed.signals[Signal.RUNNING_REQUESTS].known_replicas == 0
