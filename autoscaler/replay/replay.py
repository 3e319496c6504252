"""What would a policy have done under a recorded load? One pool on simulated time, the decisions are the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from autoscaler.replay.faults import Fault
from autoscaler.replay.pool_policy import PoolPolicy
from autoscaler.replay.result import CostSoFar, PoolResult, pool_result
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_pool import PoolSetup, SimulatedPool
from autoscaler.replay.timeline import TimelineRecorder
from autoscaler.replay.virtual_clock import TimedEvent, play

# How long the requests in flight at the end may still take to finish, with the replicas that are there then.
TAIL_SECONDS = 600.0
READING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """When a run begins and ends (simulated unix time), by which seed, and what goes wrong in it."""

    starts_at_seconds: float
    ends_at_seconds: float
    seed: int = 1
    faults: tuple[Fault, ...] = ()
    dollars_per_accelerator_hour: float = 0.0


def replay(
    policy: PoolPolicy,
    setup: PoolSetup,
    requests: Iterator[Request],
    run: ReplayRun,
    goes_on: Callable[[float], bool] = lambda now_seconds: True,
) -> PoolResult:
    """Runs one pool under one policy and tells what came of it. The same arguments give the same result.

    `requests` come in order of arrival, in simulated unix time; those after the end of the run are left out. `goes_on`
    is asked before each moment and ends the run early by False; the result is then of what has been run.
    """
    in_time = _between(requests, run.starts_at_seconds, run.ends_at_seconds)
    setup = replace(setup, keeps_latencies=True)
    fleet = SimulatedFleet([(setup, in_time)], run.starts_at_seconds, run.seed)
    pool = fleet.pools[setup.key]
    recorder = TimelineRecorder(pool, READING_SECONDS)
    parts = (*policy.controllers(fleet), recorder)
    ended_at = play(fleet, parts, run.ends_at_seconds, _events(run, pool), goes_on)
    was_stopped = ended_at < run.ends_at_seconds
    cost = CostSoFar(pool.replica_seconds, ended_at)
    if not was_stopped:
        _finish(pool, ended_at)
    return pool_result(
        pool,
        policy.name,
        run.seed,
        run.starts_at_seconds,
        cost,
        tuple(recorder.points),
        run.dollars_per_accelerator_hour,
        was_stopped,
    )


def _between(requests: Iterator[Request], starts_at_seconds: float, ends_at_seconds: float) -> Iterator[Request]:
    for request in requests:
        arrived_at = request.arrived_at
        if arrived_at >= ends_at_seconds:
            return
        if arrived_at >= starts_at_seconds:
            yield request


def _events(run: ReplayRun, pool: SimulatedPool) -> Sequence[TimedEvent]:
    return [event for fault in run.faults for event in fault.events(pool, run.starts_at_seconds)]


def _finish(pool: SimulatedPool, ended_at: float) -> None:
    until = ended_at + READING_SECONDS  # at least: what arrived last has not reached a replica yet
    pool.advance(until)
    while pool.requests_in_flight and until < ended_at + TAIL_SECONDS:
        until += READING_SECONDS
        pool.advance(until)
