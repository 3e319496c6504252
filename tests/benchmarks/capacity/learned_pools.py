"""What does each pool learn of which nothing is said but its engine? Both tables begin with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.capacity.pools import BenchmarkPool, benchmark_pools
from tests.learning_pools import LearningRun, learning_run, true_requests_per_second


@dataclass(frozen=True)
class LearnedPool:
    """A pool and its first two hours, in which it learned."""

    pool: BenchmarkPool
    run: LearningRun


def learned_pools(part_of_name: str, seeds: int) -> Iterator[LearnedPool]:
    """Every pool of the tables, some ten seconds each."""
    for pool in benchmark_pools(part_of_name, seeds):
        truth = true_requests_per_second(pool.profile, pool.shape)
        yield LearnedPool(pool, learning_run(pool.profile, pool.shape, truth, seed=100 + pool.seed))
