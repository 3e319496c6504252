"""What would a policy have done under a recorded load? One pool on simulated time, the decisions are the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile

from autoscaler.cycle_collection import without_cycle_collection
from autoscaler.replay.faults import Fault
from autoscaler.replay.node_result import node_result
from autoscaler.replay.node_setup import NodesSetup
from autoscaler.replay.pool_policy import PoolPolicy
from autoscaler.replay.result import CostSoFar, PoolResult, pool_result
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.simulated_pool import PoolSetup, SimulatedPool
from autoscaler.replay.timeline import TimelineRecorder
from autoscaler.replay.virtual_clock import TimedEvent, play

# How long the requests in flight at the end may still take to finish, with the replicas that are there then.
TAIL_SECONDS = 600.0
READING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class ReplayRun:
    """When a run begins and ends (simulated unix time), by which seed, on which nodes, and what goes wrong in it.

    Without `nodes` every pod finds one at once, and replicas are paid for; with them whole nodes are, at their prices.
    `trace_began_at` is second 0 of their lists of losses; left out, the start of the run.
    """

    starts_at_seconds: float
    ends_at_seconds: float
    seed: int = 1
    faults: tuple[Fault, ...] = ()
    dollars_per_accelerator_hour: float = 0.0
    nodes: NodesSetup | None = None
    trace_began_at: float | None = None


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
    fleet = SimulatedFleet([(setup, in_time)], run.starts_at_seconds, run.seed, _nodes(run, setup.sampled_one_in))
    pool = fleet.pools[setup.key]
    recorder = TimelineRecorder(pool, READING_SECONDS, fleet.nodes)
    parts = (*policy.controllers(fleet), recorder)
    with without_cycle_collection():
        ended_at = play(fleet, parts, run.ends_at_seconds, _events(run, pool), goes_on)
        was_stopped = ended_at < run.ends_at_seconds
        nodes = None if fleet.nodes is None else node_result(fleet.nodes, ended_at)
        cost = CostSoFar(pool.replica_seconds, ended_at, nodes)
        if not was_stopped:
            _finish(fleet, pool, ended_at)
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
    since_start = dropwhile(lambda request: request.arrived_at < starts_at_seconds, requests)
    return takewhile(lambda request: request.arrived_at < ends_at_seconds, since_start)


def _events(run: ReplayRun, pool: SimulatedPool) -> Sequence[TimedEvent]:
    return [event for fault in run.faults for event in fault.events(pool, run.starts_at_seconds)]


def _nodes(run: ReplayRun, copies: int) -> SimulatedNodes | None:
    if run.nodes is None:
        return None
    began_at = run.starts_at_seconds if run.trace_began_at is None else run.trace_began_at
    return SimulatedNodes(run.nodes, run.seed, run.starts_at_seconds, began_at, copies)


def _finish(fleet: SimulatedFleet, pool: SimulatedPool, ended_at: float) -> None:
    until = ended_at + READING_SECONDS  # at least: what arrived last has not reached a replica yet
    fleet.advance(until)
    while pool.requests_in_flight and until < ended_at + TAIL_SECONDS:
        until += READING_SECONDS
        fleet.advance(until)
