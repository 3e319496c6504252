"""What does a capacity cost that is wrong by a quarter, and how soon is it mended?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from rich.table import Table

from autoscaler.api.learned_capacity import learned_capacity_status
from policies.capacity.memory import CapacityMemory
from tests.benchmarks.capacity.learned_pools import LearnedPool
from tests.learning_pools import LearningRun, a_scaler, learning_run

FACTORS = (1.0, 1.25, 0.75)
MINUTES = (1.0, 15.0, 30.0, 60.0, 90.0)
GOAL = 0.15


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


def wrong_table(pools: Sequence[LearnedPool], hours: float) -> Table:
    """Three rows a pool: it begins with what it has learned, a quarter more, a quarter less; and sees another load."""
    last = 60.0 * hours
    minutes = [minute for minute in MINUTES if minute < last] + [last]
    table = Table(
        title=f"A capacity that is wrong by a quarter, in simulation, {hours:g} h "
        "(goal: within 15 % of the truth at the end, at most 2 points of attainment meanwhile)"
    )
    for heading in ("replica", "requests", "wrong by", *(f"{minute:g} min" for minute in minutes)):
        table.add_column(heading, justify="left" if heading in ("replica", "requests") else "right")
    for heading in ("u", "met", "points", "replica h / work h"):
        table.add_column(heading, justify="right")
    ends: dict[float, list[float]] = {factor: [] for factor in FACTORS}
    costs: dict[float, list[float]] = {factor: [] for factor in FACTORS}
    for learned in pools:
        runs = {factor: _run(learned, factor, hours) for factor in FACTORS}
        right = runs[1.0].result.attainment or 0.0
        for factor, run in runs.items():
            met = run.result.attainment or 0.0
            errors = [run.error_at(60.0 * minute - 15.0) for minute in minutes]
            ends[factor].append(1.0 if errors[-1] is None else errors[-1])
            costs[factor].append(100.0 * (right - met))
            table.add_row(
                learned.pool.name,
                str(learned.pool.shape),
                f"{factor - 1.0:+.0%}",
                *("-" if error is None else f"{error:+.0%}" for error in errors),
                f"{run.memory.capacity.safe_utilization:.2f}",
                f"{met:.2%}",
                f"{100 * (met - right):+.1f}",
                f"{run.result.replica_hours / (4.0 * run.result.hours):.2f}",
            )
    table.caption = "; ".join(
        f"{factor - 1.0:+.0%}: {sum(abs(error) <= GOAL for error in ends[factor])} of {len(pools)} within the goal at "
        f"the end ({min(ends[factor]):+.0%} to {max(ends[factor]):+.0%}), {max(costs[factor]):.1f} points at worst, "
        f"{np.mean(costs[factor]):.1f} on average"
        for factor in FACTORS
    )
    return table


def _run(learned: LearnedPool, factor: float, hours: float) -> LearningRun:
    pool, run = learned.pool, learned.run
    status = learned_capacity_status(wrong_by(run.memory, factor)).model_dump(mode="json", by_alias=True)
    return learning_run(
        pool.profile,
        pool.shape,
        run.true_requests_per_second,
        seed=200 + pool.seed,
        seconds=3600.0 * hours,
        initial_replicas=6,
        scaler=a_scaler(status),
    )
