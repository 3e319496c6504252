"""Prints the figures of a large fleet and of the reaction time, each as a table with its goal.

Run by `make bench`; the goals are goals, not assertions. A figure is taken on a real control plane and Prometheus.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.benchmarks import (
    decision_cost,
    large_fleet,
    metrics_api_delay,
    metrics_api_load,
    node_plans,
    past_of_many_pools,
    reaction_time,
)
from tests.benchmarks.figure import Figure, Step
from tests.cluster.harness.binaries import missing_programs
from tests.servers.prometheus_server import prometheus_unavailable_reason


def _print(console: Console, title: str, figures: Sequence[Figure]) -> None:
    table = Table(title=title, title_justify="left")
    for heading in ("figure", "measured", "goal"):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for figure in figures:
        table.add_row(figure.name, figure.measured, figure.goal)
    console.print(table)


def _print_steps(console: Console, steps: Sequence[Step]) -> None:
    table = Table(title="Where a tick spends its time", title_justify="left")
    for heading in ("step", "share", "a tick"):
        table.add_column(heading, justify="left" if heading == "step" else "right")
    for step in steps:
        table.add_row(step.name, f"{step.share:.0%}", f"{step.seconds * 1000:.0f} ms")
    console.print(table)


def _print_history(console: Console, arguments: argparse.Namespace) -> int:
    if reason := prometheus_unavailable_reason():
        print(f"benchmarks: {reason}", file=sys.stderr)
        return 1
    fleet = past_of_many_pools.PastFleet(arguments.pools, arguments.pods_per_pool, arguments.sample_seconds)
    title = f"The past of {fleet.pools} pools of {fleet.pods_per_pool} pods, a sample every {fleet.sample_seconds} s"
    _print(console, title, past_of_many_pools.measure(fleet, console))
    return 0


def main() -> int:
    """Runs the chosen benchmarks; 1 where this machine cannot."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    names = ["decision", "nodes", "reaction", "fleet", "metrics-api", "history"]
    parser.add_argument("--only", choices=names, help="one of the benchmarks")
    parser.add_argument("--pools", type=int, default=1000, help="InferenceScalers of the large fleet")
    parser.add_argument("--pods-per-pool", type=int, default=10)
    parser.add_argument("--sample-seconds", type=int, default=300, help="between two samples of a pod's past")
    parser.add_argument("--requests", type=int, default=1_000_000, help="requests to the metrics API")
    parser.add_argument("--ticks", type=int, default=6, help="ticks that are measured")
    arguments = parser.parse_args()
    console = Console(width=100)
    if arguments.only in (None, "decision"):
        _print(console, "One decision with all votes and a full history", decision_cost.measure())
    if arguments.only in (None, "nodes"):
        _print(console, "Nodes of 100 pools, 50 AcceleratorPools, 5,000 nodes", node_plans.measure())
    if arguments.only in ("decision", "nodes"):
        return 0
    if arguments.only == "history":
        return _print_history(console, arguments)
    reason = prometheus_unavailable_reason() or (missing_programs() and "the programs are not built: make programs")
    if reason:
        print(f"benchmarks: {reason}", file=sys.stderr)
        return 1
    if arguments.only in (None, "metrics-api"):
        _print(console, "The metrics API on one core, 1,000 pools", metrics_api_load.measure(arguments.requests))
        _print(console, "From a decision to the metrics API, the tick included", metrics_api_delay.measure())
    if arguments.only in (None, "reaction"):
        _print(console, "From a metric's change to the patch", reaction_time.measure())
    if arguments.only is None:
        _print_history(console, arguments)
    if arguments.only in (None, "fleet"):
        title = f"{arguments.pools} InferenceScalers, {arguments.pools * arguments.pods_per_pool} pods"
        figures, steps = large_fleet.measure(arguments.pools, arguments.pods_per_pool, arguments.ticks, console)
        _print(console, title, figures)
        _print_steps(console, steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
