from __future__ import annotations

from dataclasses import replace
from itertools import chain, count

import pytest

from autoscaler.replay.faults import PrometheusOutage
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.result import PoolResult
from autoscaler.replay.serving_replica import Request
from policies.observation import ObservationUnavailable
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_scaler, a_setup, steady_requests
from tests.fakes.ports import FakeReporter


def a_run(seconds: float = 900.0, **more: object) -> ReplayRun:
    return replace(ReplayRun(STARTED_AT, STARTED_AT + seconds, dollars_per_accelerator_hour=2.0), **more)  # type: ignore[arg-type]


def a_result(
    run: ReplayRun | None = None, per_second: float = 20.0, reporter: FakeReporter | None = None
) -> PoolResult:
    policy = ReconciledPolicy([a_scaler()], reporters=[reporter] if reporter else [])
    return replay(policy, a_setup(), steady_requests(per_second), run or a_run())


def test_the_reconciler_grows_the_pool_and_the_result_tells_what_came_of_it() -> None:
    result = a_result()
    assert result.scale_ups > 0
    assert result.max_replicas > 2
    assert result.requests == pytest.approx(20 * 900, abs=1)
    assert result.met + result.dropped + result.rejected <= result.requests
    assert result.unfinished == 0
    assert result.attainment == result.met / result.requests
    assert result.cost_dollars == pytest.approx(2.0 * result.accelerator_hours)
    assert 2 * 900 / 3600 < result.replica_hours < 20 * 900 / 3600
    assert result.points[-1].at_seconds == STARTED_AT + 885.0
    assert result.points[-1].ready > 2


def test_every_change_has_the_decisions_own_words() -> None:
    change = a_result().changes[0]
    assert change.from_replicas == 2
    assert change.to_replicas > 2
    assert change.reason
    assert "token" in change.message


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    one, again, other = a_result(a_run(seed=3)), a_result(a_run(seed=3)), a_result(a_run(seed=4))
    assert (one.changes, one.points, one.time_to_first_token) == (
        again.changes,
        again.points,
        again.time_to_first_token,
    )
    assert one.points != other.points or one.changes != other.changes


def test_requests_in_flight_at_the_end_may_finish_but_cost_nothing_more() -> None:
    slow = (Request(STARTED_AT + 100.0, 1000, 3000) for _ in count())
    few = chain([next(slow) for _ in range(3)])
    result = replay(ReconciledPolicy([a_scaler()]), a_setup(), few, a_run(120.0))
    assert (result.requests, result.unfinished) == (3, 0)
    assert result.replica_hours == pytest.approx(2 * 120 / 3600, rel=0.02)


def test_a_run_that_is_stopped_tells_what_has_been_so_far() -> None:
    policy = ReconciledPolicy([a_scaler()])
    result = replay(policy, a_setup(), steady_requests(5.0), a_run(), goes_on=lambda now: now < STARTED_AT + 300.0)
    assert result.was_stopped
    assert result.hours == pytest.approx(285 / 3600)
    assert 0 < result.requests <= 5 * 300


def test_in_an_outage_of_prometheus_the_production_code_sees_nothing_and_never_shrinks() -> None:
    reporter = FakeReporter()
    a_result(a_run(faults=(PrometheusOutage(at_seconds=300.0, lasts_seconds=300.0),)), reporter=reporter)
    blind = [
        report
        for tick in reporter.ticks
        for report in tick
        if isinstance(report.decision_input.metrics, ObservationUnavailable)  # type: ignore[union-attr]
    ]
    assert [report.now_seconds - STARTED_AT for report in blind] == [300.0 + 15.0 * tick for tick in range(20)]
    assert all(report.decision.desired_replicas >= report.workload.replicas.spec for report in blind)  # type: ignore[union-attr]
