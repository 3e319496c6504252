"""Replicas that do not do what they are there for, on a simulated fleet under the production controller."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from autoscaler.controller.pool_report import Decided
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.faults import Fault, OtherColdStart, WedgedReplicas
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.routers import RouterName
from autoscaler.replay.serving_replica import Request
from policies.bursts import LONGEST_STARTS
from policies.standing_for_bursts import standing_capacity
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_scaler, a_setup, steady_requests
from tests.fakes.ports import FakeReporter


def decided(
    seconds: float, *faults: Fault, requests: Sequence[Request] | None = None, replicas: int = 4, **setup: object
) -> dict[float, Decided]:
    """What was decided, by seconds since the start, of 20 requests a second (the work of 3 replicas)."""
    reporter = FakeReporter()
    replay(
        ReconciledPolicy([a_scaler()], reporters=[reporter]),
        a_setup(initial_replicas=replicas, **setup),
        iter(requests) if requests is not None else steady_requests(20.0),
        ReplayRun(STARTED_AT, STARTED_AT + seconds, faults=faults),
    )
    reports = [report for tick in reporter.ticks for report in tick if isinstance(report, Decided)]
    return {report.now_seconds - STARTED_AT: report for report in reports}


@pytest.mark.parametrize("router", [RouterName.LEAST_LOADED, RouterName.ROUND_ROBIN])
def test_a_wedged_replica_is_replaced_and_does_not_drive_the_pool(router: RouterName) -> None:
    healthy = decided(1800.0, router=router)[1785.0].decision.desired_replicas
    wedged = decided(1800.0, WedgedReplicas(at_seconds=300.0, replicas=1, lasts_seconds=3000.0), router=router)
    last = wedged[1785.0]
    assert last.workload.replicas.wedged == 1
    # What a router hands to the wedged one is never done, so that less than all of the work is left.
    assert healthy - 1 <= last.decision.desired_replicas - 1 <= healthy
    # Until its minute without a token is over, its queue looks like load.
    assert max(report.decision.desired_replicas for report in wedged.values()) <= 2 * healthy


def test_a_pool_that_falls_quiet_keeps_a_replica_that_works_beside_the_wedged_one() -> None:
    busy_then_quiet = [
        *(Request(STARTED_AT + number / 20.0, 1000, 200) for number in range(20 * 600)),
        *(Request(STARTED_AT + 600.0 + number * 5.0, 1000, 200) for number in range(400)),
    ]
    fault = WedgedReplicas(at_seconds=300.0, replicas=1, lasts_seconds=3000.0)
    decisions = decided(2400.0, fault, requests=busy_then_quiet, router=RouterName.ROUND_ROBIN)
    last = decisions[2385.0]
    assert (last.decision.desired_replicas, last.workload.replicas.wedged, last.workload.replicas.ready) == (2, 1, 1)
    assert min(report.decision.desired_replicas for report in decisions.values()) == 2


def test_the_controller_learns_how_long_starts_take_and_follows_when_they_take_longer() -> None:
    slower = ColdStart((ColdStartPhase("engine", 400.0, 0.0),))
    steps = [Request(STARTED_AT + number / 10.0, 1000, 200 + 200 * (number // 3000)) for number in range(10 * 2400)]
    decisions = decided(2400.0, OtherColdStart(at_seconds=600.0, cold_start=slower), requests=steps, replicas=2)
    cold_starts = [report.decision_input.cold_start for report in decisions.values()]
    assert not cold_starts[0].is_measured
    assert cold_starts[-1].is_measured
    assert cold_starts[-1].l90_seconds == pytest.approx(400.0, abs=2.0)


def test_spikes_that_are_over_before_a_replica_can_start_are_priced() -> None:
    """Every ten minutes the work of eight replicas for 45 seconds; a start takes 100."""
    spikes = [(600.0 * number, 600.0 * number + 45.0) for number in range(1, 5)]
    requests, at = [], 0.0
    while at < 3300.0:
        at += 1.0 / (50.0 if any(begins <= at < ends for begins, ends in spikes) else 8.0)
        requests.append(Request(STARTED_AT + at, 1000, 200))
    last = decided(3300.0, requests=requests, replicas=2)[3285.0]
    standing = standing_capacity(last.bursts, last.now_seconds)
    assert standing is not None
    assert standing.bursts >= 3
    assert standing.longest_seconds < LONGEST_STARTS * last.decision_input.cold_start.l50_seconds
    assert standing.replicas >= 5
