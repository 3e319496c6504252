from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.faults import (
    Fault,
    LateMetrics,
    LostReplicas,
    NodeShortage,
    OtherColdStart,
    Rollout,
    UnscrapedReplicas,
    WedgedReplicas,
)
from autoscaler.replay.scraped_pages import ScrapeSettings
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_pool import SimulatedPool
from autoscaler.replay.virtual_clock import play
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_setup, steady_requests


class Watch:
    """Keeps what it is told to look at, once a second."""

    interval_seconds = 1.0

    def __init__(self, pool: SimulatedPool) -> None:
        self.pool = pool
        self.seen: dict[int, tuple[int, int, int]] = {}  # (ready, not ready, draining) by second
        self.ages: dict[int, list[float | None]] = {}  # of the newest page of each ready pod

    def tick(self, now_seconds: float) -> None:
        second, pods = round(now_seconds - STARTED_AT), self.pool.pods
        ready = [pod for pod in pods if pod.is_ready]
        self.seen[second] = (len(ready), len(pods) - len(ready), self.pool.replicas.terminating)
        pages = [self.pool.pages.newest(pod.name, now_seconds) for pod in ready]
        self.ages[second] = [None if page is None else now_seconds - page.at_seconds for page in pages]


def watched(
    fault: Fault, seconds: float = 300.0, requests: Iterator[Request] | None = None, replicas: int = 4
) -> tuple[SimulatedPool, Watch]:
    setup = a_setup(initial_replicas=replicas, scrape=ScrapeSettings(5.0, 1.0), drain_grace_seconds=60.0)
    fleet = SimulatedFleet([(setup, requests or steady_requests(8.0))], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    watch = Watch(pool)
    play(fleet, [watch], STARTED_AT + seconds, fault.events(pool, STARTED_AT))
    return pool, watch


def test_late_metrics_are_as_old_as_their_delay_and_then_as_before() -> None:
    _, watch = watched(LateMetrics(at_seconds=60.0, delay_seconds=40.0, lasts_seconds=60.0))
    assert all(age is not None and 40.0 <= age <= 45.3 for age in watch.ages[110])
    assert all(age is not None and 1.0 <= age <= 6.3 for age in watch.ages[50] + watch.ages[200])


@pytest.mark.parametrize(
    ("share", "fewest", "most"),
    [
        pytest.param(1.0, 20, 20, id="with all scrapes failing no page gets newer"),
        pytest.param(0.4, 3, 13, id="with some of them failing the pages of those replicas stay old"),
        pytest.param(0.0, 0, 0, id="with none of them failing all are new"),
    ],
)
def test_scrapes_that_fail_leave_the_old_pages(share: float, fewest: int, most: int) -> None:
    _, watch = watched(UnscrapedReplicas(at_seconds=60.0, share=share, lasts_seconds=100.0), replicas=20)
    old = [age for age in watch.ages[150] if age is None or age > 30.0]
    assert fewest <= len(old) <= most
    assert all(age is not None and age <= 6.3 for age in watch.ages[200])


def test_a_wedged_replica_takes_requests_and_answers_none_until_it_goes_on() -> None:
    requests = steady_requests(8.0)
    pool, watch = watched(WedgedReplicas(at_seconds=30.0, replicas=1, lasts_seconds=200.0), 229.0, requests)
    assert watch.seen[200][0] == 4  # it stays Ready
    wedged = pool.pods[0].name
    before, after = (pool.pages.newest(wedged, STARTED_AT + at) for at in (60.0, 220.0))
    assert before is not None
    assert after is not None
    assert before.page.finished_requests == after.page.finished_requests > 0
    assert after.page.running_requests + after.page.waiting_requests > 0
    stuck = pool.requests_in_flight
    pool.unwedge()
    pool.advance(STARTED_AT + 260.0)
    assert pool.requests_in_flight <= stuck
    newest = pool.pages.newest(wedged, STARTED_AT + 260.0)
    assert newest is not None
    assert newest.page.finished_requests > after.page.finished_requests


def test_without_nodes_a_lost_replica_is_stuck_until_there_are_some() -> None:
    setup = a_setup(cold_start_seconds=50.0, initial_replicas=3)
    fleet = SimulatedFleet([(setup, steady_requests(2.0))], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    watch = Watch(pool)
    faults: list[Fault] = [NodeShortage(at_seconds=10.0, lasts_seconds=200.0), LostReplicas(at_seconds=20.0)]
    events = [event for fault in faults for event in fault.events(pool, STARTED_AT)]
    play(fleet, [watch], STARTED_AT + 200.0, events)
    assert (pool.replicas.ready, pool.replicas.starting, pool.replicas.stuck) == (2, 0, 1)
    play(fleet, [watch], STARTED_AT + 205.0)
    pool.set_nodes(True)
    assert (pool.replicas.starting, pool.replicas.stuck) == (1, 0)
    pool.advance(STARTED_AT + 256.0)
    assert pool.replicas.ready == 3


@pytest.mark.parametrize(
    ("notice_seconds", "are_dropped"),
    [
        pytest.param(0.0, True, id="a node that dies takes its requests with it"),
        pytest.param(120.0, False, id="a spot replica finishes what it has within its notice"),
    ],
)
def test_lost_replicas_are_replaced(notice_seconds: float, are_dropped: bool) -> None:
    pool, watch = watched(LostReplicas(at_seconds=60.0, replicas=2, notice_seconds=notice_seconds))
    assert watch.seen[100][:2] == (2, 2)
    assert watch.seen[165][:2] == (4, 0)
    assert (pool.outcomes.dropped > 0) == are_dropped
    assert pool.spec_replicas == 4
    assert not pool.count_changes


def test_a_rollout_replaces_every_pod_and_never_has_fewer_than_wanted() -> None:
    setup = a_setup(cold_start_seconds=30.0, initial_replicas=4)
    fleet = SimulatedFleet([(setup, steady_requests(8.0))], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    before = {pod.name for pod in pool.pods}
    watch = Watch(pool)
    play(fleet, [watch], STARTED_AT + 40.0, Rollout(at_seconds=20.0).events(pool, STARTED_AT))
    assert pool.is_rolling_out
    assert pool.replicas.status == 5
    play(fleet, [watch], STARTED_AT + 300.0)
    assert not pool.is_rolling_out
    assert not before & {pod.name for pod in pool.pods}
    assert min(ready for ready, _, _ in watch.seen.values()) == 4
    assert max(ready + starting for ready, starting, _ in watch.seen.values()) == 5
    assert pool.outcomes.dropped == 0


def test_a_rollout_of_a_pool_that_shrinks_ends_with_the_new_count_of_new_pods() -> None:
    setup = a_setup(cold_start_seconds=30.0, initial_replicas=8)
    fleet = SimulatedFleet([(setup, steady_requests(8.0))], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    before = {pod.name for pod in pool.pods}
    pool.begin_rollout()
    pool.advance(STARTED_AT + 20.0)
    pool.scale(3)
    pool.advance(STARTED_AT + 300.0)
    assert len(pool.pods) == 3
    assert not before & {pod.name for pod in pool.pods}


def test_pods_that_are_made_during_a_slow_spell_take_longer() -> None:
    slow = ColdStart((ColdStartPhase("weights", 400.0, 0.0),))
    setup = a_setup(cold_start_seconds=50.0, initial_replicas=1)
    fleet = SimulatedFleet([(setup, steady_requests(1.0))], STARTED_AT, seed=1)
    pool = fleet.pools[KEY]
    watch = Watch(pool)
    events = OtherColdStart(at_seconds=60.0, cold_start=slow, lasts_seconds=60.0).events(pool, STARTED_AT)
    play(fleet, [watch], STARTED_AT + 100.0, events)
    pool.scale(2)
    play(fleet, [watch], STARTED_AT + 450.0, [])
    assert pool.replicas.ready == 1
    pool.advance(STARTED_AT + 501.0)
    assert pool.replicas.ready == 2
