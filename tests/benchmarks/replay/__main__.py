"""Prints the figures of the replay, all in simulation: speed, sampling, and the default policy against the best plan.

Run by `make bench-replay`. TRACES names a folder of CSV files like those of tests/data/traces.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from autoscaler.replay.agent_sessions import AgentSessions
from autoscaler.replay.clairvoyant import planned_policy
from autoscaler.replay.comparison import Stage
from autoscaler.replay.policy_files import ReplayedPolicy, reconciled_policy
from autoscaler.replay.policy_only import PolicyOnlyStage
from autoscaler.replay.trace import BinnedTrace
from autoscaler.replay.trace_load import Trace, trace_load
from tests.benchmarks.replay.loads import AGENTS, COMMITTED, PREDICTABLE, SMOOTH, UNANNOUNCED, loads
from tests.benchmarks.replay.policy_rows import (
    COLD_STARTS,
    PROFILE,
    Row,
    RowOrder,
    a_fleet,
    measure_rows,
    the_default_policy,
)

# Attainment in percent, and accelerator-hours relative to the best plan's, by cold start.
GOALS = {
    SMOOTH: ((99.5, 1.15), (99.5, 1.20)),
    PREDICTABLE: ((99.5, 1.12), (99.3, 1.15)),
    UNANNOUNCED: ((96, 1.25), (91, 1.30)),
}
DAY_HOURS = 24.0


def main() -> None:
    """Prints the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.replay", description=__doc__)
    parser.add_argument("--traces", type=Path, default=COMMITTED, help="folder of CSV files")
    parser.add_argument("--only", nargs="*", help="speed, sampling, or names of loads")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--baselines", nargs="*", default=(), help="with their published parameters, beside ours")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    console, only = Console(width=150), set(arguments.only or ())
    if not only or "speed" in only:
        console.print(measure_speed())
    if not only or "sampling" in only:
        console.print(measure_sampling())
    seeds = tuple(range(1, 1 + arguments.seeds))
    orders = [
        RowOrder(arguments.traces, name, seeds, tuple(arguments.baselines))
        for name in loads(arguments.traces)
        if not only or name in only
    ]
    if orders:
        console.print(measure_policy(orders, arguments.processes, console))


def steady(per_second: float, minutes: int) -> BinnedTrace:
    """A constant load of 1010 tokens in and 250 out."""
    shape = np.full(minutes, per_second)
    return BinnedTrace(0.0, 60.0, shape, np.full(minutes, 1010.0), np.full(minutes, 250.0))


def measure_speed() -> Table:
    """Processor seconds of whole days, and what of memory they needed."""
    table = Table("speed", "measured", "goal", title="One core, in simulation", title_justify="left")
    day = steady(50.0, round(60 * DAY_HOURS))
    fixed, policy = planned_policy("speed", (20,)), reconciled_policy(the_default_policy(120.0, 64, minimum=20))
    agents = AgentSessions(sessions=10_000, hours=DAY_HOURS)
    for name, trace, chosen, goal in (
        ("24 h at 50 requests/s over 20 replicas, exact", day, fixed, "<= 45 s"),
        ("the same, steered by the default policy", day, policy, ""),
        (
            "24 h of 10,000 sessions of agents, sampled",
            agents,
            reconciled_policy(the_default_policy(120, 400)),
            "<= 120 s",
        ),
    ):
        seconds, requests = _seconds_of(trace, chosen)
        table.add_row(name, f"{seconds:.0f} s ({1e6 * seconds / requests:.1f} us a request)", goal)
    table.add_row("14 days policy-only, 10 to 50 requests/s, default policy", *_policy_only_cells())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row("largest resident memory", f"{memory:.0f} MiB", "<= 1 GB")
    return table


def _seconds_of(trace: Trace, policy: ReplayedPolicy) -> tuple[float, int]:
    stage = Stage(a_fleet(120.0), trace_load(trace, 1.0, None, None, 0))
    began = time.process_time()
    drawn = stage.load.draw(1)
    stage.run(policy, drawn, 1)
    return time.process_time() - began, len(drawn)


def _policy_only_cells() -> tuple[str, str]:
    """What two weeks of days cost without single requests, and the goal."""
    seconds_of_day = 300.0 * np.arange(14 * 288)
    rates = 30.0 + 20.0 * np.sin(2 * np.pi * seconds_of_day / 86_400.0 - 2.0)
    trace = BinnedTrace(0.0, 300.0, rates, np.full(len(rates), 1010.0), np.full(len(rates), 250.0))
    stage = PolicyOnlyStage(Stage(a_fleet(120.0), trace_load(trace, 1.0, None, None, 0)))
    policy = reconciled_policy(the_default_policy(120.0, 64, minimum=2))
    began = time.process_time()
    (outcome,) = stage.compare([policy], lambda name, seed: ())
    seconds = time.process_time() - began
    decisions = len(outcome.results[0].points)
    return f"{seconds:.1f} s ({1e6 * seconds / decisions:.0f} us a decision)", "<= 5 s"


def measure_sampling() -> Table:
    """One request and replica in ten against all of them: 80 replicas at 200 requests a second, means of three runs."""
    table = Table("quantile", "full", "1 in 10", "difference", "goal", title="Sampling", title_justify="left")
    full, sampled = (_first_tokens(one_in) for one_in in (1, 10))
    for name, of_full, of_sampled, goal in zip(("TTFT p50", "TTFT p99"), full, sampled, ("3 %", "8 %"), strict=True):
        off = of_sampled / of_full - 1
        table.add_row(name, f"{1000 * of_full:.0f} ms", f"{1000 * of_sampled:.0f} ms", f"{100 * off:+.1f} %", goal)
    return table


def _first_tokens(one_in: int) -> tuple[float, float]:
    """Median and 99th percentile of the time to the first token, in seconds."""
    load = trace_load(steady(200.0, 10), 1.0, None, None, 0, one_in)
    stage, policy = Stage(a_fleet(120.0), load), planned_policy("sampling", (80,))
    found = [stage.run(policy, load.draw(seed), seed).time_to_first_token for seed in (1, 2, 3)]
    return fmean(each.p50_seconds or 0.0 for each in found), fmean(each.p99_seconds or 0.0 for each in found)


def measure_policy(orders: Sequence[RowOrder], processes: int, console: Console) -> Table:
    """The default policy, nothing tuned for a load: attainment at accelerator-hours by those of the best plan."""
    found: list[Row] = []
    with ProcessPoolExecutor(processes) as pool:
        under_way = [pool.submit(measure_rows, order) for order in orders]
        for finished in as_completed(under_way):
            for row in finished.result():
                found.append(row)
                console.print("  ".join(_cells(row)), style="dim")
    table = Table(title=f"Default policy on {PROFILE}, in simulation: met @ x best plan", title_justify="left")
    headings = (
        "load",
        "kind",
        "cold start",
        "default policy",
        "goal",
        "reached",
        "static-peak",
        "reversals/h",
        "best plan",
    )
    for heading in (*headings, *orders[0].baselines):
        table.add_column(heading)
    names = [order.load for order in orders]
    for row in sorted(found, key=lambda each: (names.index(each.load), each.policy, each.cold_start_seconds)):
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> tuple[str, ...]:
    goal, is_reached = _goal(row)
    return (
        ", ".join(filter(None, (row.load, row.policy))),
        row.kind,
        f"{row.cold_start_seconds:.0f} s",
        row.cell(row.ours),
        goal,
        "yes" if is_reached else "no",
        row.cell(row.fixed),
        f"{row.reversals_per_hour:.1f}",
        f"{100 * row.best.attainment:.2f} %, {row.best.accelerator_hours:.1f} h",
        *(row.cell(cost) for _, cost in row.others),
    )


def _goal(row: Row) -> tuple[str, bool]:
    """In words, and whether it is reached: never dearer than the fixed fleet either, one reversal an hour at most."""
    ours, fixed = row.ours, row.fixed
    is_cheap = ours.accelerator_hours <= fixed.accelerator_hours and row.reversals_per_hour <= 1.0
    if row.kind == AGENTS:
        return "99 %, below static-peak", is_cheap and ours.attainment >= 0.99
    percent, ratio = GOALS[row.kind][COLD_STARTS.index(row.cold_start_seconds)]
    is_reached = 100 * ours.attainment >= percent and ours.accelerator_hours <= ratio * row.best.accelerator_hours
    return f"{percent} % @{ratio:.2f}", is_cheap and is_reached


if __name__ == "__main__":
    main()
