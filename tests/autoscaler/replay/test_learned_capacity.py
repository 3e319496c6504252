"""A pool of which nothing is said but its engine learns what its replicas can do, in simulation.

`make bench-capacity` prints the same for all replicas, over two hours.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from autoscaler.api.learned_capacity import learned_capacity_status
from autoscaler.replay.replica_profile import ReplicaProfile, built_in_profile
from policies.capacity.learning import ORDINARY_ERROR
from tests.benchmarks.capacity.wrong_table import wrong_by
from tests.learning_pools import LearningRun, Shape, a_scaler, another_replica, learning_run, true_requests_per_second

GOAL = 0.15
HOUR = 3600.0


@cache
def a_replica(name: str, seed: int) -> ReplicaProfile:
    return another_replica(built_in_profile(name), np.random.default_rng(seed))


DENSE = "llama-3.1-70b-bf16-8xa100-vllm", 3
LARGE = "llama-3.1-70b-bf16-4xh100-vllm", 5
SPARSE = "deepseek-r1-fp8-8xh200-sglang", 4


@cache
def learned(replica: tuple[str, int], shape: Shape) -> LearningRun:
    """An hour from nothing."""
    profile = a_replica(*replica)
    truth = true_requests_per_second(profile, shape)
    return learning_run(profile, shape, truth, seed=1, seconds=HOUR, mean_work=2.0, initial_replicas=4)


@cache
def after_a_restart(replica: tuple[str, int], shape: Shape, by: float) -> LearningRun:
    """Another hour, by a controller that finds in the status what was learned in the first, `by` times as much."""
    before = learned(replica, shape)
    status = learned_capacity_status(wrong_by(before.memory, by)).model_dump(mode="json", by_alias=True)
    return learning_run(
        a_replica(*replica),
        shape,
        before.true_requests_per_second,
        seed=2,
        seconds=HOUR,
        mean_work=2.0,
        initial_replicas=4,
        scaler=a_scaler(status),
    )


def doubt_taken_off(run: LearningRun) -> float:
    """A mixture of experts is in doubt until it has been seen under more load than it has in its first hour."""
    capacity = run.memory.capacity
    assert capacity is not None
    return max(0.0, capacity.uncertainty - ORDINARY_ERROR)


@pytest.mark.parametrize(
    ("replica", "shape"),
    [
        pytest.param(DENSE, Shape(1000, 250), id="a dense model, ordinary requests"),
        pytest.param(DENSE, Shape(4300, 340, shared=1000), id="long prompts, a quarter of them cached"),
        pytest.param(LARGE, Shape(500, 800), id="long answers"),
        pytest.param(SPARSE, Shape(2000, 300), id="a mixture of experts"),
    ],
)
def test_within_the_hour_the_capacity_is_near_the_truth(replica: tuple[str, int], shape: Shape) -> None:
    run = learned(replica, shape)
    early, late = run.error_at(900.0), run.error_at(HOUR - 15.0)
    assert early is not None
    assert abs(early) < 2 * GOAL
    assert late is not None
    assert -GOAL - doubt_taken_off(run) < late < GOAL
    assert run.memory.begun_because == ""


@pytest.mark.parametrize("by", [pytest.param(1.25, id="a quarter too much"), pytest.param(0.75, id="too little")])
def test_a_wrong_capacity_is_found_and_mended_and_costs_little(by: float) -> None:
    right, wrong = (after_a_restart(DENSE, Shape(1000, 250), factor) for factor in (1.0, by))
    first, right_first = (run.decided[0].decision_input.learned_capacity for run in (wrong, right))
    assert first is not None
    assert right_first is not None
    assert first.decode_tokens_per_second / right_first.decode_tokens_per_second == pytest.approx(by, rel=0.001)
    for error in (wrong.error_at(HOUR / 2), wrong.error_at(HOUR - 15.0)):
        assert error is not None
        assert abs(error) < GOAL
    assert right.memory.begun_because == ""
    assert wrong.memory.begun_because == f"its replicas have become {'slower' if by > 1.0 else 'faster'}"
    assert (wrong.result.attainment or 0.0) >= (right.result.attainment or 0.0) - 0.02
