"""Prints the figures of the replay, all in simulation: speed, sampling, and the default policy against the best plan.

Run by `make bench-replay`. TRACES names a folder of CSV files like those of tests/data/traces.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.replay.baselines.baseline import Occasion, make_baseline
from autoscaler.replay.clairvoyant import find_clairvoyant, planned_policy
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.comparison import Stage
from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.policy_files import reconciled_policy
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace import BinnedTrace
from autoscaler.replay.trace_load import trace_load
from tests.benchmarks.replay.loads import AGENTS, COMMITTED, PREDICTABLE, SMOOTH, UNANNOUNCED, BenchLoad, loads

PROFILE = "llama-3.3-70b-fp8-2xh100-vllm"
MAXIMUM = 64
COLD_STARTS = (120.0, 300.0)
GOALS = {
    SMOOTH: ("99.5 % @1.15", "99.5 % @1.20"),
    PREDICTABLE: ("99.5 % @1.12", "99.3 % @1.15"),
    UNANNOUNCED: ("96 % @1.25", "91 % @1.30"),
    AGENTS: ("99 %, below static-peak", "99 %, below static-peak"),
}
SPEED_MINUTES = 20


def main() -> None:
    """Prints the chosen tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.replay", description=__doc__)
    parser.add_argument("--traces", type=Path, default=COMMITTED, help="folder of CSV files")
    parser.add_argument("--only", nargs="*", help="speed, sampling, or names of loads")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    console, only = Console(width=150), set(arguments.only or ())
    if not only or "speed" in only:
        console.print(measure_speed())
    if not only or "sampling" in only:
        console.print(measure_sampling())
    chosen = [each for name, each in loads(arguments.traces).items() if not only or name in only]
    if chosen:
        console.print(measure_policy(chosen, tuple(range(1, 1 + arguments.seeds)), console))


def a_fleet(cold_start_seconds: float) -> Fleet:
    """The fleet of all tables; a start takes so long in the mean of its logarithm, deviation 0.25."""
    fleet = fleet_from(PROFILE)
    assert isinstance(fleet, Fleet)
    return replace(fleet, cold_start=ColdStart((ColdStartPhase("start", cold_start_seconds, 0.25),)))


def the_default_policy(cold_start_seconds: float) -> InferenceScaler:
    """An InferenceScaler that says nothing but what every one must, and how long a start usually takes."""
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"name": "default", "namespace": "inference"},
            "spec": {
                "mode": "Scale",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"},
                "engine": "vllm",
                "minReplicas": 1,
                "maxReplicas": MAXIMUM,
                "coldStart": {"priorSeconds": round(cold_start_seconds * 1.3)},
            },
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def steady(per_second: float, minutes: int) -> BinnedTrace:
    """A constant load of 1010 tokens in and 250 out."""
    shape = np.full(minutes, per_second)
    return BinnedTrace(0.0, 60.0, shape, np.full(minutes, 1010.0), np.full(minutes, 250.0))


def measure_speed() -> Table:
    """Processor seconds of a day at 50 requests a second over 20 replicas, from twenty minutes of it."""
    table = Table("speed", "measured", "goal", title="One core, in simulation", title_justify="left")
    load = trace_load(steady(50.0, SPEED_MINUTES), 1.0, None, None, 0)
    stage = Stage(a_fleet(120.0), load)
    drawn = load.draw(1)
    began = time.process_time()
    stage.run(planned_policy("speed", (20,)), drawn, 1)
    seconds = time.process_time() - began
    day = seconds * 1440 / SPEED_MINUTES
    table.add_row(f"24 h at 50 requests/s over 20 replicas (from {SPEED_MINUTES} min)", f"{day:.0f} s", "<= 45 s")
    table.add_row("one request", f"{1e6 * seconds / len(drawn):.1f} us")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table.add_row("resident memory", f"{memory:.0f} MiB", "<= 1 GB")
    return table


def measure_sampling() -> Table:
    """One request and replica in ten against all of them: 80 replicas at 200 requests a second, ten minutes."""
    table = Table("quantile", "full", "1 in 10", "difference", "goal", title="Sampling", title_justify="left")
    full, sampled = (_sampled_run(one_in) for one_in in (1, 10))
    pairs = (
        ("TTFT p50", full.time_to_first_token.p50_seconds, sampled.time_to_first_token.p50_seconds, "3 %"),
        ("TTFT p99", full.time_to_first_token.p99_seconds, sampled.time_to_first_token.p99_seconds, "8 %"),
    )
    for name, of_full, of_sampled, goal in pairs:
        assert of_full is not None
        assert of_sampled is not None
        off = of_sampled / of_full - 1
        table.add_row(name, f"{1000 * of_full:.0f} ms", f"{1000 * of_sampled:.0f} ms", f"{100 * off:+.1f} %", goal)
    return table


def _sampled_run(one_in: int) -> PoolResult:
    load = trace_load(steady(200.0, 10), 1.0, None, None, 0, one_in)
    return Stage(a_fleet(120.0), load).run(planned_policy("sampling", (80,)), load.draw(1), 1)


def measure_policy(chosen: Sequence[BenchLoad], seeds: tuple[int, ...], console: Console) -> Table:
    """The default policy, nothing tuned for a load: attainment at accelerator-hours by those of the best plan."""
    table = Table(title=f"Default policy on {PROFILE}, in simulation: met @ x clairvoyant", title_justify="left")
    for heading in ("load", "kind", "cold start", "default policy", "goal", "static-peak", "reversals/h", "best plan"):
        table.add_column(heading)
    for load in chosen:
        fixed: PoolResult | None = None  # no replica starts in it, so one is enough for all cold starts
        for place, cold_start in enumerate(COLD_STARTS):
            fixed = fixed or _static_peak(load, cold_start)
            ours, *others = _cells(load, cold_start, seeds, fixed)
            table.add_row(load.name, load.kind, f"{cold_start:.0f} s", ours, GOALS[load.kind][place], *others)
            console.print(f"{load.name} at {cold_start:.0f} s: {ours}, {', '.join(others)}", style="dim")
    return table


def _static_peak(load: BenchLoad, cold_start: float) -> PoolResult:
    fleet = a_fleet(cold_start)
    stage = Stage(fleet, load.on(fleet))
    drawn = stage.load.draw(1)
    peak = make_baseline("static-peak", Occasion(stage, drawn, 1, None, 1, MAXIMUM))
    assert peak is not None
    return stage.run(peak, drawn, 1)


def _cells(load: BenchLoad, cold_start: float, seeds: tuple[int, ...], fixed: PoolResult) -> tuple[str, str, str, str]:
    """The default policy, static-peak, reversals an hour, and the best plan."""
    fleet = a_fleet(cold_start)
    stage = Stage(fleet, load.on(fleet), seeds)
    drawn = stage.load.draw(1)
    best = find_clairvoyant(stage, drawn, 1)
    assert best is not None
    policy = reconciled_policy(the_default_policy(cold_start))
    ours = [stage.run(policy, stage.load.draw(seed), seed) for seed in seeds]
    return (
        _at(ours, best.accelerator_hours),
        _at([fixed], best.accelerator_hours),
        f"{sum(each.reversals for each in ours) / sum(each.hours for each in ours):.1f}",
        f"{100 * best.attainment:.2f} %, {best.accelerator_hours:.1f} h",
    )


def _at(results: Sequence[PoolResult], best_hours: float) -> str:
    met = sum(each.attainment or 0.0 for each in results) / len(results)
    hours = sum(each.accelerator_hours for each in results) / len(results)
    return f"{100 * met:.2f} % @{hours / best_hours:.2f}"


if __name__ == "__main__":
    main()
