"""`tokenscaler tune POLICY.yaml --trace FILE`: which parameters would suit this policy better, in simulation?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import orjson
import typer
from rich.console import Console

from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.replay.baselines.baseline import PUBLISHED
from autoscaler.replay.output_files import write_file
from autoscaler.tuning.baseline_search import search_baseline
from autoscaler.tuning.contender import BaselineRun, Contender, Variant
from autoscaler.tuning.dimension import Values
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.policy_text import changed_text
from autoscaler.tuning.policy_variant import effective_value, parse_variant
from autoscaler.tuning.report_html import tuning_page
from autoscaler.tuning.report_json import tuning_document
from autoscaler.tuning.report_text import tuning_text
from autoscaler.tuning.run_pool import RunPool, WorkersLostError
from autoscaler.tuning.scenes import Part
from autoscaler.tuning.search import Laboratory, SearchOutcome, SearchTask, search
from autoscaler.tuning.search_progress import SearchProgress
from autoscaler.tuning.study_file import Study, StudyRefused, open_study
from autoscaler.tuning.tuning_input import InputRefused, TuneRequest, TuningInput, read_input
from autoscaler.tuning.tuning_report import TuningReport
from autoscaler.tuning.verdict import Judged, changes, judge, shown_figures


def tune_policy(request: TuneRequest, console: Console) -> int:
    """Prints the front and the verdict, writes the policy and the page; 2 for wrong input, 1 where it was stopped.

    Ctrl-C ends it at once and prints the front so far; the same command then goes on from the study.
    """
    checked = read_input(request)
    if isinstance(checked, InputRefused):
        return _refuse(*checked.problems)
    try:
        study = open_study(request.study, checked.subject(request))
    except OSError as error:
        return _refuse(f"--study {request.study}: cannot be written: {error.strerror}")
    if isinstance(study, StudyRefused):
        return _refuse(study.problem)
    with study:
        for assumption in checked.assumptions:
            console.print(f"assumed: {assumption}", soft_wrap=True, style="dim")
        if not request.search:
            searched = ", ".join(dimension.shown() for dimension in checked.dimensions)
            console.print(f"searched, as no --search is given: {searched}", soft_wrap=True)
        if study.runs:
            console.print(f"{request.study}: {len(study.runs)} runs are done already", soft_wrap=True)
        try:
            report = _Tuning(request, checked, study, console).report()
        except WorkersLostError as error:
            typer.echo(f"tokenscaler: {error}", err=True)
            return NOT_RIGHT
    if report is None:
        console.print("Stopped before the given policy was run once. The same command goes on from there.")
        return NOT_RIGHT
    console.print(tuning_text(report), soft_wrap=True)
    return NOT_RIGHT if report.verdict is None else _write(request, checked, report, console)


class _Tuning:
    """One search: the given policy and the baselines beside it, then all of them on the held-out part."""

    def __init__(self, request: TuneRequest, checked: TuningInput, study: Study, console: Console) -> None:
        self._request = request
        self._checked = checked
        self._study = study
        self._console = console

    def report(self) -> TuningReport | None:
        """Everything; None where it was stopped before the given policy had been run."""
        request, checked = self._request, self._checked
        with SearchProgress(self._console, self._expected_runs()) as progress, self._pool() as pool:
            laboratory = Laboratory(
                checked.scenes,
                pool,
                self._study,
                request.search_seeds,
                request.held_out_seeds,
                progress.was_stopped,
                progress.tells,
            )
            progress.says(checked.policy.scaler.name)
            outcome = search(self._task(), laboratory)
            if outcome is None:
                return None
            best = outcome.best(checked.objective)
            baselines = tuple(self._baselines(laboratory, progress))
            progress.says("held-out part")
            contenders = [outcome.given.contender, best.contender, *(contender for contender, _ in baselines)]
            held_out = laboratory.run(contenders, Part.HELD_OUT)
            was_stopped = progress.was_stopped()
        return self._told(outcome, baselines, held_out, was_stopped)

    def _told(
        self,
        outcome: SearchOutcome,
        baselines: tuple[tuple[BaselineRun, Judged], ...],
        held_out: tuple[Figures | None, ...],
        was_stopped: bool,
    ) -> TuningReport:
        request, checked = self._request, self._checked
        best = outcome.best(checked.objective)
        given = Judged("given policy", outcome.given.values, outcome.given.figures, held_out[0])
        found = Judged("found", best.values, best.figures, held_out[1])
        verdict = None if was_stopped else judge(given, found, checked.objective)
        is_changed = verdict is not None and not verdict.keeps_given
        policy = checked.policy
        return TuningReport(
            policy=policy.scaler.name,
            traces=tuple(scene.name for scene in checked.scenes),
            trace_scale=checked.scenes[0].search.scale,  # all share it
            fleet=checked.fleet,
            objective=checked.objective,
            dimensions=checked.dimensions,
            seeds=request.search_seeds,
            held_out_seeds=request.held_out_seeds,
            hold_out_percent=request.hold_out_percent,
            outcome=outcome,
            given=given,
            found=found,
            changes=tuple(changes(policy.scaler, policy.content, found.values)) if is_changed else (),
            baselines=tuple(
                replace(judged, held_out=figures)
                for (_, judged), figures in zip(baselines, held_out[2:], strict=True)
                if figures is not None or verdict is None
            ),
            verdict=verdict,
            assumptions=checked.assumptions,
            is_policy_only=request.is_policy_only,
        )

    def _pool(self) -> RunPool:
        return RunPool(self._checked.scenes, self._request.jobs)

    def _expected_runs(self) -> int:
        request = self._request
        searches = 1 + len(request.baselines) * request.tunes_baselines
        a_try = len(request.loads) * request.seeds
        published = 0 if request.tunes_baselines else len(request.baselines)
        return a_try * ((request.budget + 1) * searches + published + 2 + len(request.baselines))

    def _task(self) -> SearchTask:
        policy, dimensions = self._checked.policy, self._checked.dimensions
        pools = policy.replayed.accelerator_pools

        def make(values: Values) -> Contender | None:
            is_valid = not isinstance(parse_variant(policy.content, values), tuple)
            return Variant(policy.content, values, pools) if is_valid else None

        given_values = {each.path: effective_value(policy.scaler, each.path) for each in dimensions}
        given = Variant(policy.content, {}, pools)
        return SearchTask(given, given_values, dimensions, make, self._request.budget, self._request.seed)

    def _baselines(self, laboratory: Laboratory, progress: SearchProgress) -> Iterator[tuple[BaselineRun, Judged]]:
        policy, request = self._checked.policy.replayed, self._request
        for name in request.baselines:
            published = BaselineRun(name, PUBLISHED, max(1, policy.minimum), policy.maximum)
            progress.says(name)
            budget = request.budget if request.tunes_baselines else 0
            outcome = search_baseline(published, laboratory, budget, request.seed)
            if outcome is None:
                if not laboratory.was_stopped():
                    self._console.print(f"{name}: cannot be made for this load, so it is left out", soft_wrap=True)
                continue
            best = outcome.best(self._checked.objective)
            is_tuned = bool(best.values)
            assert isinstance(best.contender, BaselineRun)
            front = tuple(trial.figures for trial in outcome.front()) if budget else ()
            judged = Judged(f"{name} (tuned)" if is_tuned else name, best.values, best.figures, front=front)
            yield best.contender, judged


def _write(request: TuneRequest, checked: TuningInput, report: TuningReport, console: Console) -> int:
    document = orjson.dumps(tuning_document(report), option=orjson.OPT_INDENT_2) + b"\n"
    try:
        write_file(request.out, _policy_text(checked, report).encode())
        write_file(request.html_path, tuning_page(report).encode())
        if request.json_path is not None:
            write_file(request.json_path, document)
    except OSError as error:
        return _refuse(f"cannot write {error.filename}: {error.strerror}; the runs are kept in {request.study}")
    console.print(f"Written: {request.out}, {request.html_path}", soft_wrap=True)
    return FINE


def _policy_text(checked: TuningInput, report: TuningReport) -> str:
    policy = checked.policy
    return changed_text(policy.text, policy.place, report.changes, tuple(_head(checked, report)))


def _head(checked: TuningInput, report: TuningReport) -> Iterator[str]:
    given, found, verdict = report.given, report.found, report.verdict
    assert given.held_out is not None
    assert verdict is not None
    yield f"Traces {report.loads}, fleet {report.fleet.profile.name}; {report.objective.shown()}."
    yield from (f"{scene.parts}." for scene in checked.scenes)
    if report.caution is not None:
        yield f"Note: {report.caution}"
    if verdict.keeps_given:
        yield f"Kept as it was: {verdict.reason}."
        yield f"Expected of it: {shown_figures(given.held_out)}, on the held-out {report.hold_out_percent:g} %."
        return
    assert found.held_out is not None
    yield f"Expected of it: {shown_figures(found.held_out)}, on the held-out {report.hold_out_percent:g} %."
    yield f"The policy before: {shown_figures(given.held_out)} there."


def _refuse(*problems: str) -> int:
    for problem in problems:
        typer.echo(f"tokenscaler: {problem}", err=True)
    return WRONG_USAGE
