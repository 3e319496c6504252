"""One of k requests and replicas stands for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from autoscaler.replay.clairvoyant import planned_policy
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.policy_files import reconciled_policy
from autoscaler.replay.result import PoolResult, Quantiles
from autoscaler.replay.simulated_metrics import SimulatedMetrics
from autoscaler.replay.trace import BinnedTrace, RequestTrace, shipped_trace
from autoscaler.replay.trace_load import trace_load
from policies.signals import Signal
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_pool, a_query, a_scaler, a_setup, steady_requests


def run(sampled_one_in: int) -> PoolResult:
    fleet, trace = fleet_from("llama-3.1-8b-bf16-1xa100-vllm"), shipped_trace("azure_conversation_2023")
    assert isinstance(fleet, Fleet)
    assert isinstance(trace, RequestTrace)
    load = trace_load(trace, 40.0, 0.0, 600.0, 0, sampled_one_in)
    stage = Stage(fleet, load)
    return stage.run(reconciled_policy(a_scaler()), load.draw(1), 1)


def test_a_sampled_run_comes_to_nearly_the_same() -> None:
    full, sampled = run(1), run(4)
    assert sampled.requests == pytest.approx(full.requests, rel=0.03)
    assert sampled.attainment == pytest.approx(full.attainment, abs=0.03)
    assert sampled.replica_hours == pytest.approx(full.replica_hours, rel=0.1)
    assert sampled.time_to_first_token.p50_seconds == pytest.approx(full.time_to_first_token.p50_seconds, rel=0.1)


def test_requests_wait_as_long_in_a_sampled_fleet_as_in_the_whole_one() -> None:
    fleet, bins = fleet_from("llama-3.3-70b-fp8-2xh100-vllm"), np.full(3, 200.0)
    assert isinstance(fleet, Fleet)
    trace = BinnedTrace(0.0, 60.0, bins, np.full(3, 1010.0), np.full(3, 250.0))

    def first_tokens(sampled_one_in: int) -> Quantiles:
        load = trace_load(trace, 1.0, None, None, 0, sampled_one_in)
        return Stage(fleet, load).run(planned_policy("fixed", (80,)), load.draw(1), 1).time_to_first_token

    full, sampled = first_tokens(1), first_tokens(10)
    assert sampled.p50_seconds == pytest.approx(full.p50_seconds, rel=0.03)
    assert sampled.p99_seconds == pytest.approx(full.p99_seconds, rel=0.15)


def test_every_simulated_replica_is_seen_as_many() -> None:
    pool = a_pool(a_setup(initial_replicas=12, sampled_one_in=4), steady_requests(6.0))
    pool.advance(STARTED_AT + 120.0)
    assert (pool.replicas.spec, pool.replicas.ready, len(pool.pods)) == (12, 12, 12)
    observed = SimulatedMetrics("vllm", 1, pool.pages).observe(a_query(pool), 0, pool.now_seconds)
    rate = observed.signals[Signal.REQUESTS_FINISHED].total
    assert rate == pytest.approx(24.0, rel=0.2)


def test_a_count_between_two_steps_has_the_pods_of_the_next_one() -> None:
    pool = a_pool(a_setup(initial_replicas=8, sampled_one_in=4), steady_requests(6.0))
    pool.scale(9)
    assert (pool.spec_replicas, pool.replicas.spec) == (9, 9)
    assert len(pool.pods) == 12
