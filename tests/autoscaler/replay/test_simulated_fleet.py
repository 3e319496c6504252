from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.reconcile import Reconciler
from autoscaler.observers.workload import Workload, WorkloadUnavailable
from autoscaler.replay.arrivals import arrivals
from autoscaler.replay.cold_start import WARM_NODE
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.trace import RequestTrace, scale_requests, shipped_trace
from policies.parameters import Mode
from policies.reasons import Reason
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_scaler, a_setup, steady_requests


def a_fleet(seed: int = 1) -> SimulatedFleet:
    trace = shipped_trace("azure_conversation_2023")
    assert isinstance(trace, RequestTrace)
    scaled = scale_requests(trace.part(0.0, 900.0), np.random.default_rng(seed), 4.0)
    setup = a_setup(cold_start=WARM_NODE)
    return SimulatedFleet([(setup, arrivals(scaled, STARTED_AT))], STARTED_AT, seed)


def run_the_real_loop(fleet: SimulatedFleet, seconds: float) -> list[tuple[float, int, int, int]]:
    reconciler = Reconciler(fleet, fleet, {Mode.SCALE: fleet}, HistoryStore(), [])
    seen = []
    for tick in range(int(seconds / 15)):
        now = STARTED_AT + 15.0 * tick
        fleet.advance(now)
        (report,) = reconciler.reconcile_all([a_scaler()], now)
        assert isinstance(report, Decided), report
        pool = fleet.pools[KEY]
        seen.append((now, report.decision.desired_replicas, pool.replicas.ready, pool.outcomes.finished))
    return seen


def test_the_controllers_own_loop_scales_the_fleet_with_its_load() -> None:
    fleet = a_fleet()
    seen = run_the_real_loop(fleet, 900)
    assert max(ready for _, _, ready, _ in seen) >= 4
    pool = fleet.pools[KEY]
    assert pool.outcomes.met / pool.outcomes.finished > 0.8


def test_the_same_seed_gives_the_same_run() -> None:
    assert run_the_real_loop(a_fleet(seed=5), 450) == run_the_real_loop(a_fleet(seed=5), 450)


def test_another_seed_gives_another_run() -> None:
    assert run_the_real_loop(a_fleet(seed=5), 450) != run_the_real_loop(a_fleet(seed=6), 450)


def observed_target(fleet: SimulatedFleet) -> Workload:
    workload = fleet.observe_workload(a_scaler(), fleet.now_seconds)
    assert isinstance(workload, Workload)
    return workload


class TestPorts:
    def fleet(self) -> SimulatedFleet:
        return SimulatedFleet([(a_setup(), steady_requests(2.0))], STARTED_AT, seed=1)

    def test_a_write_changes_the_count(self) -> None:
        fleet = self.fleet()
        result = fleet.scale(observed_target(fleet).target, 2, 4)
        assert isinstance(result, Actuated)
        assert result.reason is Reason.SUCCEEDED_RESCALE
        assert observed_target(fleet).replicas.spec == 4
        assert observed_target(fleet).replicas.starting == 2

    def test_a_write_on_an_outdated_observation_is_a_conflict(self) -> None:
        fleet = self.fleet()
        outdated = observed_target(fleet).target
        fleet.scale(outdated, 2, 4)
        result = fleet.scale(outdated, 2, 5)
        assert isinstance(result, ActuationFailed)
        assert result.reason is Reason.CONFLICT

    def test_a_target_that_is_not_simulated_is_not_found(self) -> None:
        fleet = self.fleet()
        for scaler in (a_scaler(target="other"), a_scaler(name="other")):
            seen = fleet.observe_workload(scaler, STARTED_AT)
            assert isinstance(seen, WorkloadUnavailable)
            assert seen.reason is Reason.TARGET_NOT_FOUND
        foreign = replace(observed_target(fleet).target, name="other")
        assert isinstance(fleet.scale(foreign, 2, 3), ActuationFailed)


def test_a_busy_fleet_finishes_what_it_gets() -> None:
    fleet = SimulatedFleet([(a_setup(initial_replicas=20), steady_requests(50.0))], STARTED_AT, seed=1)
    fleet.advance(STARTED_AT + 600)
    assert fleet.pools[KEY].outcomes.finished == pytest.approx(50 * 600, rel=0.02)
