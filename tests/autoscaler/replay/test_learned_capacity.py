"""A pool of which nothing is said but its engine learns what its replicas can do, in simulation.

`make bench-capacity` prints the same for all replicas, over two hours.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from autoscaler.api.learned_capacity import learned_capacity_status
from autoscaler.replay.replica_profile import ReplicaProfile, built_in_profile
from tests.benchmarks.capacity.wrong_table import wrong_by
from tests.learning_pools import LearningRun, Shape, a_scaler, another_replica, learning_run, true_requests_per_second

GOAL = 0.15
HOUR = 3600.0


@cache
def a_replica(name: str, seed: int) -> ReplicaProfile:
    return another_replica(built_in_profile(name), np.random.default_rng(seed))


def a_run(
    profile: ReplicaProfile, shape: Shape, *, seed: int = 1, learned: LearningRun | None = None, by: float = 1.0
) -> LearningRun:
    truth = true_requests_per_second(profile, shape, 200.0, 2) if learned is None else learned.true_requests_per_second
    status = None
    if learned is not None:
        status = learned_capacity_status(wrong_by(learned.memory, by)).model_dump(mode="json", by_alias=True)
    return learning_run(
        profile, shape, truth, seed=seed, seconds=HOUR, mean_work=2.0, initial_replicas=4, scaler=a_scaler(status)
    )


DENSE = a_replica("llama-3.1-70b-bf16-8xa100-vllm", 3)
SPARSE = a_replica("deepseek-r1-fp8-8xh200-sglang", 4)
LARGE = a_replica("llama-3.1-70b-bf16-4xh100-vllm", 5)


@pytest.mark.parametrize(
    ("profile", "shape"),
    [
        pytest.param(DENSE, Shape(2000, 300), id="a dense model, ordinary requests"),
        pytest.param(DENSE, Shape(4300, 340, shared=1000), id="long prompts, a quarter of them cached"),
        pytest.param(LARGE, Shape(500, 800), id="long answers"),
        pytest.param(SPARSE, Shape(2000, 300), id="a mixture of experts"),
    ],
)
def test_within_the_hour_the_capacity_is_near_the_truth(profile: ReplicaProfile, shape: Shape) -> None:
    run = a_run(profile, shape)
    errors = [run.error_at(seconds) for seconds in (900.0, HOUR - 15.0)]
    print(errors, run.attainment_after(900.0), run.result.replica_hours)
    assert errors[0] is not None
    assert abs(errors[0]) < 2 * GOAL
    assert errors[1] is not None
    assert abs(errors[1]) < GOAL


@pytest.mark.parametrize("by", [pytest.param(1.25, id="a quarter too much"), pytest.param(0.75, id="too little")])
def test_a_wrong_capacity_is_found_and_mended_and_costs_little(by: float) -> None:
    shape = Shape(2000, 300)
    learned = a_run(DENSE, shape)
    right, wrong = (a_run(DENSE, shape, seed=2, learned=learned, by=factor) for factor in (1.0, by))
    before, after = wrong.error_at(15.0 * 22), wrong.error_at(HOUR - 15.0)
    print(before, after, right.result.attainment, wrong.result.attainment)
    assert after is not None
    assert abs(after) < GOAL
    assert (wrong.result.attainment or 0.0) >= (right.result.attainment or 0.0) - 0.02
