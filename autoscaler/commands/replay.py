"""`tokenscaler replay POLICY.yaml... --trace FILE`: what would these policies have done under this load?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from autoscaler.controller.pool_report import Reporter
from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.interrupt import on_interrupt
from autoscaler.replay.baselines.baseline import PUBLISHED, Occasion, make_baseline
from autoscaler.replay.clairvoyant import Clairvoyant, find_clairvoyant
from autoscaler.replay.comparison import PolicyOutcome, Stage, compare
from autoscaler.replay.decision_file import DecisionFile
from autoscaler.replay.output_files import naming, write_file
from autoscaler.replay.policy_files import ReplayedPolicy
from autoscaler.replay.policy_only import NO_REQUESTS, PolicyOnlyStage
from autoscaler.replay.replay_input import PreparedReplay, ReplayRefused, prepare_replay
from autoscaler.replay.replay_request import ReplayRequest
from autoscaler.replay.report_html import report_page
from autoscaler.replay.report_json import Report, report_document
from autoscaler.replay.report_text import report_table
from autoscaler.replay.shadow import shadows
from autoscaler.replay.trace import RequestTrace
from autoscaler.tuning.baseline_search import best_parameters
from autoscaler.tuning.optimiser import missing_optimiser
from autoscaler.tuning.scenes import Scene


def replay_policies(request: ReplayRequest, console: Console) -> int:
    """Prints the table and writes what was asked for; 2 for wrong input, with every problem on a line of its own.

    Ctrl-C ends the run that is under way; what has been run so far is reported.
    """
    prepared = prepare_replay(request)
    problems = prepared.problems if isinstance(prepared, ReplayRefused) else ()
    if request.tunes_baselines and (missing := missing_optimiser()):
        problems = (*problems, f"--tune-baselines {missing}")
    for problem in problems:
        typer.echo(f"tokenscaler: {problem}", err=True)
    if problems or isinstance(prepared, ReplayRefused):
        return WRONG_USAGE
    for assumption in prepared.assumptions:
        console.print(f"assumed: {assumption}", soft_wrap=True, style="dim")
    try:
        with _decisions(request.decisions_path) as decisions:
            report = _run(request, prepared, decisions, console)
            console.print(report_table(report), soft_wrap=True)
            if request.json_path is not None:
                document = orjson.dumps(report_document(report), option=orjson.OPT_INDENT_2)
                write_file(request.json_path, document + b"\n")
            if request.html_path is not None:
                write_file(request.html_path, report_page(report).encode())
    except OSError as error:
        typer.echo(f"tokenscaler: cannot write {error.filename}: {error.strerror}", err=True)
        return WRONG_USAGE
    return FINE


def compare_log(path: Path, console: Console) -> int:
    """Prints what the decisions of a log would have come to, a sentence a pool; 1 for a log without two records."""
    unreadable = 0

    def records() -> Iterator[DecisionRecord]:
        nonlocal unreadable
        for entry in read_log(path):
            if isinstance(entry, DecisionRecord):
                yield entry
            else:
                unreadable += 1

    try:
        found = list(shadows(records()))
    except OSError as error:
        typer.echo(f"tokenscaler: {path}: cannot be read: {error.strerror}", err=True)
        return WRONG_USAGE
    for shadow in found:
        console.print(shadow.sentence(), soft_wrap=True)
    if unreadable:
        console.print(f"{unreadable} lines are no decision records and were left out.", soft_wrap=True)
    if not found:
        typer.echo(f"tokenscaler: {path}: no pool has two records in it, so there is nothing to compare", err=True)
        return NOT_RIGHT
    return FINE


def _run(request: ReplayRequest, prepared: PreparedReplay, decisions: DecisionFile | None, console: Console) -> Report:
    seeds = tuple(range(request.seed, request.seed + request.seeds))
    clairvoyant = None
    with _progress(console) as tells:
        stage = Stage(prepared.fleet, prepared.load, seeds, tells)
        outcomes: list[PolicyOutcome] = []

        def reporters(name: str, seed: int) -> Sequence[Reporter]:
            return () if decisions is None else (decisions.reporter(name, seed),)

        if prepared.drawn is None:
            rates = PolicyOnlyStage(stage, request.policy_step_seconds)
            baselines = _baselines(request, prepared, stage, None, NO_REQUESTS)
            outcomes += rates.compare((*prepared.policies, *baselines), reporters)
        else:
            outcomes += compare(stage, prepared.policies, reporters)
            clairvoyant = None if _was_stopped(outcomes) else find_clairvoyant(stage, prepared.drawn, request.seed)
            if not _was_stopped(outcomes):
                baselines = _baselines(request, prepared, stage, clairvoyant, prepared.drawn)
                outcomes += compare(stage, baselines, reporters)
    return Report(
        fleet=prepared.fleet,
        load=prepared.load,
        trace_name=request.trace_name,
        seeds=seeds,
        outcomes=tuple(outcomes),
        clairvoyant=clairvoyant,
        assumptions=prepared.assumptions,
        was_stopped=_was_stopped(outcomes),
    )


def _was_stopped(outcomes: Sequence[PolicyOutcome]) -> bool:
    return any(result.was_stopped for outcome in outcomes for result in outcome.results)


def _baselines(
    request: ReplayRequest, prepared: PreparedReplay, stage: Stage, clairvoyant: Clairvoyant | None, drawn: RequestTrace
) -> list[ReplayedPolicy]:
    minimum = min(policy.minimum for policy in prepared.policies)
    maximum = max(policy.maximum for policy in prepared.policies)
    occasion = Occasion(stage, drawn, request.seed, clairvoyant, max(1, minimum), maximum)
    made = (
        _tuned_baseline(name, occasion) if request.tunes_baselines else make_baseline(name, occasion)
        for name in request.baselines
    )
    return [policy for policy in made if policy is not None]


def _tuned_baseline(name: str, occasion: Occasion) -> ReplayedPolicy | None:
    stage, bounds = occasion.stage, (occasion.minimum, occasion.maximum)
    scene = Scene(name, stage.fleet, stage.load, stage.load)
    found = best_parameters(name, scene, bounds, stage.seeds, lambda what, share: stage.tells(what, 0, share))
    policy = make_baseline(name, occasion, found or PUBLISHED)
    return policy if policy is None or found is None else replace(policy, name=f"{name} (tuned)")


@contextmanager
def _decisions(path: Path | None) -> Iterator[DecisionFile | None]:
    if path is None:
        yield None
        return
    with naming(path), path.open("w", encoding="utf-8") as lines:
        decisions = DecisionFile(lines)
        yield decisions
        if decisions.problem is not None:
            raise decisions.problem


@contextmanager
def _progress(console: Console) -> Iterator[Callable[[str, int, float], bool]]:
    """Shows how far each run is, on a terminal only; the function that is given tells it, and is False after Ctrl-C."""
    stopped = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with on_interrupt(stop), Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        last = ("", 0)

        def tells(name: str, seed: int, share: float) -> bool:
            nonlocal last
            if (name, seed) != last:
                last = (name, seed)
                bar.reset(task, description=f"{name} (seed {seed})", total=1.0)
            bar.update(task, completed=share)
            return not stopped

        yield tells
