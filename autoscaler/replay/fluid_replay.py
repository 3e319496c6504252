"""What would a policy have decided over a long time? Its decisions are the real ones, the load is a flow of rates.

Weeks take seconds, because nothing is followed that a decision does not see. So nothing is told of single requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from autoscaler.cycle_collection import without_cycle_collection
from autoscaler.replay.fluid_fleet import FluidFleet
from autoscaler.replay.fluid_pool import FluidPool
from autoscaler.replay.outcomes import RequestLatencies
from autoscaler.replay.pool_policy import PoolPolicy
from autoscaler.replay.replay import ReplayRun
from autoscaler.replay.result import PoolResult, Quantiles
from autoscaler.replay.simulated_pool import PoolSetup
from autoscaler.replay.timeline import TimelineRecorder
from autoscaler.replay.trace_load import LoadBins
from autoscaler.replay.virtual_clock import Recurring, play
from policies.history import LONGEST_GAP_SECONDS

# The live controller's interval: no step is shorter.
TICK_SECONDS = 15.0
# The production history takes a longer silence for time that was not seen, and would never give replicas back.
LONGEST_STEP_SECONDS = LONGEST_GAP_SECONDS
# Round lengths of a step; the shortest is taken with which a run has at most so many.
STEPS_SECONDS = (TICK_SECONDS, 30.0, 60.0, LONGEST_STEP_SECONDS)
MOST_STEPS = 10_080  # two weeks in steps of two minutes


def fitting_step_seconds(hours: float) -> float:
    """How often a run of this length is decided; every two minutes where it lasts longer than two weeks, too."""
    return next((step for step in STEPS_SECONDS if hours * 3600.0 <= MOST_STEPS * step), LONGEST_STEP_SECONDS)


def fluid_replay(
    policy: PoolPolicy,
    setup: PoolSetup,
    load: LoadBins,
    run: ReplayRun,
    step_seconds: float,
    goes_on: Callable[[float], bool] = lambda now_seconds: True,
) -> PoolResult:
    """Runs one pool under one policy, deciding every `step_seconds` or as rarely as the policy itself does.

    Of the result's requests none is met or missed; `short_seconds` says how long the load was above what the ready
    replicas serve within the objectives. The run's faults and nodes are not looked at.
    """
    setup = replace(setup, sampled_one_in=1)
    pool = FluidPool(setup, load, np.random.default_rng([run.seed, 0]), run.starts_at_seconds)
    fleet, recorder = FluidFleet(pool), TimelineRecorder(pool, step_seconds)
    parts: Sequence[Recurring] = [*policy.controllers(fleet), recorder]
    parts = [_Rarer(part, max(part.interval_seconds, step_seconds)) for part in parts]
    with without_cycle_collection():
        ended_at = play(fleet, parts, run.ends_at_seconds, (), goes_on)
    replica_hours = pool.replica_seconds / 3600.0
    accelerator_hours = replica_hours * setup.profile.accelerators_per_replica
    return PoolResult(
        policy=policy.name,
        seed=run.seed,
        started_at_seconds=run.starts_at_seconds,
        ended_at_seconds=ended_at,
        requests=round(pool.arrived),
        met=0,
        rejected=0,
        dropped=0,
        unfinished=round(pool.backlog),
        time_to_first_token=Quantiles(None, None),
        inter_token_latency=Quantiles(None, None),
        replica_hours=replica_hours,
        accelerator_hours=accelerator_hours,
        cost_dollars=accelerator_hours * run.dollars_per_accelerator_hour,
        tokens=round(pool.served_tokens),
        preemptions=0,
        max_replicas=max((point.wanted for point in recorder.points), default=pool.spec_replicas),
        changes=tuple(pool.count_changes),
        points=tuple(recorder.points),
        latencies=RequestLatencies(run.starts_at_seconds),
        was_stopped=ended_at < run.ends_at_seconds,
        short_seconds=pool.short_seconds,
        short_requests=round(pool.short_requests),
    )


class _Rarer:
    """A part that is done at another interval than its own."""

    def __init__(self, part: Recurring, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self._part = part

    def tick(self, now_seconds: float) -> None:
        self._part.tick(now_seconds)
