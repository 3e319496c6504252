"""Which policy is to be tuned on which loads, and by what is it judged?"""

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


def tune(
    policy: Annotated[Path, typer.Argument(metavar="POLICY.yaml", help="A file with one InferenceScaler.")],
    trace: Annotated[
        list[str] | None,
        typer.Option(
            help="CSV: timestamp_s,value,input_tokens,output_tokens; or agents:sessions=10000,hours=4 (repeatable)."
        ),
    ] = None,
    prometheus: LoadPrometheus = None,
    prometheus_config: PrometheusConfig = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PARAM=RANGE",
            help="behavior.scaleDown.stabilizationWindowSeconds=60..900, forecast.mode=Off,Active (repeatable).",
        ),
    ] = None,
    objective: Annotated[
        str, typer.Option(help="attainment>=99.5: fewest hours there; or cost:miss=10,hour=1.")
    ] = "attainment>=99.5",
    budget: Annotated[int, typer.Option(min=1, max=10_000, help="So many policies are tried.")] = 64,
    hold_out: Annotated[
        float, typer.Option(min=5, max=80, help="The last percent of each trace, on which the choice is judged.")
    ] = 30.0,
    trace_scale: TraceScale = 1.0,
    fleet: FleetName = None,
    baseline: Baselines = None,
    tune_baselines: Annotated[
        bool, typer.Option("--tune-baselines", help="Search each baseline's own parameters as well, as long.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed is another search, and other arrivals.")] = 1,
    seeds: Annotated[int, typer.Option(min=1, max=20, help="Every policy is run by so many seeds.")] = 2,
    start: LoadStart = None,
    end: LoadEnd = None,
    policy_only: PolicyOnly = False,
    policy_step: PolicyStep = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=256, help="Processes; default: one a core.")] = None,
    out: Annotated[Path | None, typer.Option(help="File for the policy; default: POLICY.tuned.yaml.")] = None,
    html: Annotated[Path | None, typer.Option(help="File for the picture; default: beside --out.")] = None,
    study: Annotated[
        Path | None, typer.Option(help="File for the runs, to go on from after Ctrl-C; default: beside --out.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="File for everything as JSON.")] = None,
) -> None:
    """Search a policy's parameters on replays: fewest missed requests, fewest accelerator-hours, and what is between.

    The last part of each trace is held out, and the choice judged there; where it is no better, the policy is kept.

    Example: tokenscaler tune policy.yaml --trace requests.csv --search signals.tokenRate.perReplicaPerSecond=5k..20k
    """
    from autoscaler.commands.tune import tune_policy
    from autoscaler.replay.replay_request import ReplayRequest
    from autoscaler.tuning.run_pool import cores
    from autoscaler.tuning.tuning_input import TuneRequest

    if bool(trace) == (prometheus is not None):
        refuse("tune: give either --trace or --prometheus")
    settings, queries = load_source(prometheus, prometheus_config)
    loads = tuple(
        ReplayRequest(
            policies=(policy,),
            trace=each,
            trace_scale=trace_scale,
            fleet=fleet,
            baselines=tuple(baseline or ()),
            is_policy_only=policy_only,
            policy_step_seconds=policy_step,
            start_seconds=moment("--start", start),
            end_seconds=moment("--end", end),
            prometheus=settings,
            queries=queries,
        )
        for each in trace or (None,)
    )
    chosen = out or policy.with_name(f"{policy.stem}.tuned.yaml")
    request = TuneRequest(
        policy=policy,
        loads=loads,
        out=chosen,
        html_path=html or chosen.with_suffix(".html"),
        study=study or chosen.with_suffix(".study"),
        search=tuple(search or ()),
        objective=objective,
        budget=budget,
        hold_out_percent=hold_out,
        baselines=tuple(baseline or ()),
        tunes_baselines=tune_baselines,
        seed=seed,
        seeds=seeds,
        jobs=jobs or cores(),
        json_path=json,
    )
    raise typer.Exit(tune_policy(request, console()))
