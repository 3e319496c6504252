"""What does a capacity cost that is wrong by a quarter, and how soon is it mended?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.table import Table

from autoscaler.api.learned_capacity import learned_capacity_status
from policies.capacity.memory import CapacityMemory
from tests.benchmarks.capacity.pools import benchmark_pools
from tests.learning_pools import a_scaler, learning_run, true_requests_per_second

FACTORS = (1.0, 1.25, 0.75)
MINUTES = (1, 15, 30, 60, 120)


def wrong_by(memory: CapacityMemory, factor: float) -> CapacityMemory:
    """The memory of a pool whose replicas have seemed to do `factor` times what they do."""
    samples = tuple(
        replace(
            sample,
            generated_tokens_per_second=sample.generated_tokens_per_second * factor,
            prompts_per_second=sample.prompts_per_second * factor,
        )
        for sample in memory.samples
    )
    known = memory.capacity
    capacity = known and replace(
        known,
        prefill_tokens_per_second=known.prefill_tokens_per_second * factor,
        decode_tokens_per_second=known.decode_tokens_per_second * factor,
        tokens_in_flight=known.tokens_in_flight * factor,
    )
    return replace(memory, samples=samples, capacity=capacity)


def measure_wrong(part_of_name: str, seeds: int) -> Table:
    """Three rows a pool: it begins with what it has learned, a quarter more, a quarter less; 2 h of another load."""
    table = Table(
        title="A capacity that is wrong by a quarter, in simulation, 2 h (goal: at most 2 points of attainment)"
    )
    for heading in ("replica", "requests", "wrong by", *(f"{minute} min" for minute in MINUTES)):
        table.add_column(heading, justify="left" if heading in ("replica", "requests") else "right")
    for heading in ("u", "met", "points", "replica h / work h"):
        table.add_column(heading, justify="right")
    worst = []
    for pool in benchmark_pools(part_of_name, seeds):
        truth = true_requests_per_second(pool.profile, pool.shape)
        learned = learning_run(pool.profile, pool.shape, truth, seed=100 + pool.seed).memory
        right = None
        for factor in FACTORS:
            status = learned_capacity_status(wrong_by(learned, factor)).model_dump(mode="json", by_alias=True)
            run = learning_run(
                pool.profile, pool.shape, truth, seed=200 + pool.seed, scaler=a_scaler(status), initial_replicas=6
            )
            met = run.result.attainment or 0.0
            right = met if right is None else right
            worst.append(right - met)
            errors = [run.error_at(60.0 * minute - 15.0) for minute in MINUTES]
            table.add_row(
                pool.name,
                str(pool.shape),
                f"{factor - 1.0:+.0%}",
                *("-" if error is None else f"{error:+.0%}" for error in errors),
                f"{run.memory.safe_utilization:.2f}",
                f"{met:.2%}",
                f"{100 * (met - right):+.1f}",
                f"{run.result.replica_hours / (4.0 * run.result.hours):.2f}",
            )
    table.caption = f"at worst {100 * max(worst):.1f} points of attainment, on average {100 * np.mean(worst):.1f}"
    return table
