"""How near to the truth does a pool come of which nothing is said but its engine, and how soon?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from tests.benchmarks.capacity.learned_pools import LearnedPool
from tests.learning_pools import LearningRun

MINUTES = (10, 15, 30, 60, 90, 120)
# What the pool's first minutes cost is that of its first size.
SETTLED_SECONDS = 1200.0
GOOD_SHARE = 0.995


def learning_table(pools: Sequence[LearnedPool]) -> Table:
    """A row a pool: error of the capacity after so many minutes, safe utilisation, what the requests got, the cost."""
    table = Table(title="Capacity learned in simulation, 2 h (goal: within 15 % of the truth at the end)")
    for heading in ("replica", "requests", "truth/s", *(f"{minute} min" for minute in MINUTES), "90th percentile"):
        table.add_column(heading, justify="left" if heading in ("replica", "requests") else "right")
    for heading in ("u", "met", "replica h / work h", "nearest"):
        table.add_column(heading, justify="left" if heading == "nearest" else "right")
    last, crude = [], []
    for learned in pools:
        pool, run = learned.pool, learned.run
        errors = [run.error_at(60.0 * minute - 15.0) for minute in MINUTES]
        last.append(abs(errors[-1] if errors[-1] is not None else 1.0))
        crude.append(abs(upper_decile_error(run)))
        capacity = run.memory.capacity
        table.add_row(
            pool.name,
            str(pool.shape),
            f"{run.true_requests_per_second:.2f}",
            *("-" if error is None else f"{error:+.0%}" for error in errors),
            f"{upper_decile_error(run):+.0%}",
            f"{run.memory.capacity.safe_utilization:.2f}",
            f"{run.attainment_after(SETTLED_SECONDS):.2%}",
            f"{run.result.replica_hours / (4.0 * run.result.hours):.2f}",
            capacity.law if capacity else "",
        )
    table.caption = (
        f"largest error at the end {max(last):.0%}, mean {np.mean(last):.0%}; by the upper decile of good minutes: "
        f"largest {max(crude):.0%}, mean {np.mean(crude):.0%}"
    )
    return table


def upper_decile_error(run: LearningRun) -> float:
    """The other way to learn: the upper decile of what a replica did in minutes with 99.5 % inside the objectives."""
    rates = []
    for decided in run.decided:
        metrics = decided.decision_input.metrics
        if metrics.kind != "observed" or not metrics.ready_replicas:
            continue
        outside = metrics.latency.outside_objectives_share
        finished = [signal for name, signal in metrics.signals.items() if name.value == "requestsFinishedTotal"]
        if outside is not None and outside <= 1.0 - GOOD_SHARE and finished:
            rates.append(finished[0].mean)
    return float(np.quantile(rates, 0.9)) / run.true_requests_per_second - 1.0 if rates else -1.0
