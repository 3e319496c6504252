"""What a forecast is worth, on a simulated pool whose replicas take five minutes to start."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.foresight.fleet_foresight import FleetForesight
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace import BinnedTrace
from autoscaler.replay.trace_history import TraceWorkHistory
from autoscaler.replay.trace_load import TraceLoad
from tests.autoscaler.replay.simulated_pools import a_scaler, a_setup
from tests.fakes.work_history import PatientExecutor

DAYS, MINUTES_OF_DAY = 9, 1440
SHARE = 6000.0  # tokens a second of a replica
REQUEST = (1500.0, 300.0)
MINUTES = np.arange(DAYS * MINUTES_OF_DAY)


def office_days() -> NDArray[np.float64]:
    """Requests a second by minute: a quarter of an hour around eight brings most of the users, each day a bit other."""
    generator = np.random.default_rng(3)
    hour = MINUTES / 60 % 24
    there = 1 / (1 + np.exp(-(hour - 8.0) * 17.0)) / (1 + np.exp((hour - 18.0) * 10.0))
    of_day = np.exp(generator.normal(0.0, 0.05, DAYS))[MINUTES // MINUTES_OF_DAY]
    return np.asarray(36.0 * (0.15 + 0.85 * there) * of_day)


def no_pattern() -> NDArray[np.float64]:
    """A random walk that moves by a tenth in five minutes."""
    steps = np.random.default_rng(5).normal(0.0, 0.045, len(MINUTES))
    walk = np.cumsum(steps)
    return np.asarray(10.0 * np.exp(np.sin(walk)))


def a_load(requests_per_second: NDArray[np.float64], from_hour: float, to_hour: float) -> TraceLoad:
    """Hours of the last day of a trace."""
    sizes = [np.full(len(MINUTES), tokens) for tokens in REQUEST]
    midnight = (DAYS - 1) * 86_400.0
    trace = BinnedTrace(0.0, 60.0, requests_per_second, *sizes)
    return TraceLoad(trace, 1.0, midnight + from_hour * 3600, midnight + to_hour * 3600)


def a_policy(mode: str) -> InferenceScaler:
    spec = a_scaler().spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    spec |= {
        "maxReplicas": 40,
        "signals": {"tokenRate": {"perReplicaPerSecond": SHARE}, "tokensInFlight": {}},
        "forecast": {"mode": mode},
    }
    return replace(a_scaler(), spec=type(a_scaler().spec).model_validate(spec))


def run(load: TraceLoad, mode: str) -> PoolResult:
    foresight = FleetForesight(TraceWorkHistory(load, seed=1), PatientExecutor())
    begin = round(load.start_seconds / 60)
    first = load.trace.requests_per_second[begin] if isinstance(load.trace, BinnedTrace) else 1.0
    setup = a_setup(
        cold_start_seconds=300.0,
        initial_replicas=math.ceil(first * sum(REQUEST) / SHARE) + 1,
        objectives=LatencyObjectives(2.0, 0.05),
    )
    return replay(
        ReconciledPolicy([a_policy(mode)], foresight=foresight),
        setup,
        load.requests(load.draw(1)),
        ReplayRun(load.starts_at_seconds, load.ends_at_seconds),
    )


def missed(result: PoolResult) -> int:
    return result.requests - result.met


def test_a_forecast_saves_the_morning_at_next_to_no_cost() -> None:
    load = a_load(office_days(), 7.25, 9.0)
    off, active = run(load, "Off"), run(load, "Active")
    assert missed(active) * 5 <= missed(off)
    # The other hours of the day cost the same; without a forecast they need at least this.
    of_day = np.ceil(office_days()[-MINUTES_OF_DAY:] * sum(REQUEST) / SHARE).sum() / 60
    assert active.replica_hours - off.replica_hours <= 0.03 * of_day


def test_a_pool_without_a_pattern_is_left_to_what_is_seen() -> None:
    load = a_load(no_pattern(), 7.0, 7.5)
    off, active = run(load, "Off"), run(load, "Active")
    assert [(each.at_seconds, each.to_replicas) for each in active.changes] == [
        (each.at_seconds, each.to_replicas) for each in off.changes
    ]
    assert active.replica_hours == pytest.approx(off.replica_hours)
