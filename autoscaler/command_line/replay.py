"""Which policies are to be replayed under which load?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.command_line.shared_options import (
    Baselines,
    FleetName,
    LoadEnd,
    LoadPrometheus,
    LoadStart,
    PolicyOnly,
    PolicyStep,
    PrometheusConfig,
    TraceScale,
    load_source,
    moment,
)
from autoscaler.command_line.terminal import console, refuse


def replay(
    policies: Annotated[
        list[Path] | None,
        typer.Argument(metavar="POLICY.yaml", help="InferenceScaler, HPA or ScaledObject manifests."),
    ] = None,
    trace: Annotated[
        str | None,
        typer.Option(help="CSV: timestamp_s,value,input_tokens,output_tokens; or agents:sessions=10000,hours=4."),
    ] = None,
    prometheus: LoadPrometheus = None,
    prometheus_config: PrometheusConfig = None,
    log: Annotated[
        Path | None, typer.Option(help="Instead of a trace: a controller's decision log, against what happened.")
    ] = None,
    trace_scale: TraceScale = 1.0,
    fleet: FleetName = None,
    baseline: Baselines = None,
    tune_baselines: Annotated[
        bool, typer.Option("--tune-baselines", help="Give each baseline its own best parameters on this load.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another drawing of arrivals and starts.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="So many seeds, from --seed on; means are shown.")] = 1,
    start: LoadStart = None,
    end: LoadEnd = None,
    policy_only: PolicyOnly = False,
    policy_step: PolicyStep = None,
    json: Annotated[Path | None, typer.Option("--json", help="File for the report as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for the report as one page, with pictures.")] = None,
    decisions: Annotated[Path | None, typer.Option(help="File for one JSON line a decision.")] = None,
) -> None:
    """Replay policies on a simulated fleet under a recorded load: what users would have got, and what it would cost.

    Example: tokenscaler replay policy.yaml --trace requests.csv --baseline static-peak --json report.json
    """
    from autoscaler.commands.replay import compare_log, replay_policies
    from autoscaler.replay.replay_request import ReplayRequest

    if log is not None:
        if policies or trace is not None or prometheus is not None:
            refuse("replay: --log goes alone: the decisions are in it, and so is what happened")
        raise typer.Exit(compare_log(log, console()))
    if not policies or (trace is None) == (prometheus is None):
        refuse("replay: give POLICY.yaml and either --trace or --prometheus, or --log FILE alone")
    settings, queries = load_source(prometheus, prometheus_config)
    request = ReplayRequest(
        policies=tuple(policies),
        trace=trace,
        trace_scale=trace_scale,
        fleet=fleet,
        baselines=tuple(baseline or ()),
        tunes_baselines=tune_baselines,
        seed=seed,
        seeds=seeds,
        start_seconds=moment("--start", start),
        end_seconds=moment("--end", end),
        prometheus=settings,
        queries=queries,
        json_path=json,
        html_path=html,
        decisions_path=decisions,
        is_policy_only=policy_only,
        policy_step_seconds=policy_step,
    )
    raise typer.Exit(replay_policies(request, console()))
