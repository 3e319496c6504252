"""Which pools are the tables about?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from autoscaler.replay.replica_profile import ReplicaProfile, built_in_profiles
from tests.learning_pools import Shape, another_replica

SHAPES = (Shape(1000, 250), Shape(2000, 300), Shape(500, 800), Shape(4300, 340), Shape(2000, 300, shared=800))


@dataclass(frozen=True)
class BenchmarkPool:
    """A replica, the requests that it gets, and the seed of both."""

    name: str
    profile: ReplicaProfile
    shape: Shape
    seed: int


def benchmark_pools(part_of_name: str, seeds: int) -> Iterator[BenchmarkPool]:
    """Every profile with one shape for each seed, the shapes in turn."""
    names = [name for name in sorted(built_in_profiles()) if part_of_name in name]
    for place, name in enumerate(names):
        for seed in range(seeds):
            replica = another_replica(built_in_profiles()[name], np.random.default_rng([place, seed]))
            yield BenchmarkPool(name, replica, SHAPES[(place + seed) % len(SHAPES)], seed)
