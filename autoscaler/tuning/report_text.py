"""What came of a search, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table

from autoscaler.tuning.dimension import told_value
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.policy_variant import short_path
from autoscaler.tuning.tuning_report import TuningReport, hours, percent, shown_values
from autoscaler.tuning.verdict import at_ends

# Longer fronts are thinned; the page and the JSON have all of it.
MOST_ROWS = 12
HEADINGS = ("met", "missed", "acc.-hours", "reversals/h", "max")


def front_table(report: TuningReport) -> Table:
    """The policies that no other one beats in misses and hours both, from the cheapest to the best."""
    outcome, front = report.outcome, report.outcome.front()
    title = f"Pareto front on the searched part: {len(front)} of {len(outcome.trials)} policies (*: the given one)"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for dimension in report.dimensions:
        table.add_column("\n".join(short_path(dimension.path).split(".")), justify="right")
    step = max(1, -(-len(front) // MOST_ROWS))
    for trial in (*front[:-1:step], front[-1]):
        values = [told_value(trial.values[dimension.path]) for dimension in report.dimensions]
        table.add_row("*" if trial is outcome.given else "", *_cells(trial.figures), *values)
    return table


def tuning_text(report: TuningReport) -> RenderableType:
    """The front, then everybody on both parts, then what was decided."""
    note = () if report.caution is None else (f"Note: {report.caution}",)
    return Group(report.title, front_table(report), *_judged(report), *_said(report), *note)


def _judged(report: TuningReport) -> Iterator[RenderableType]:
    if report.verdict is None:
        return
    table = Table(title="Searched part, then held-out part", title_justify="left", box=None, pad_edge=False)
    table.add_column("policy")
    for heading in ("met", "acc.-hours", *HEADINGS):
        table.add_column(heading, justify="right")
    table.add_column("its own values", overflow="fold")
    for each in report.judged:
        held_out = ["-"] * 5 if each.held_out is None else _cells(each.held_out)
        search = (percent(each.search.attainment), hours(each.search))
        own = shown_values(each.values) if each in report.baselines else ""
        table.add_row(each.name, *search, *held_out, own)
    yield table


def _said(report: TuningReport) -> Iterator[str]:
    if report.outcome.invalid:
        yield f"{report.outcome.invalid} proposals were no valid policies and were not run."
    if report.verdict is None:
        yield "Stopped before the end: the table is of what was run. The same command goes on from there."
        return
    yield f"Chosen by {report.objective.shown()}: {report.verdict.reason}."
    if report.verdict.keeps_given:
        yield "The given policy is kept."
        return
    for change in report.changes:
        yield f"  {change.path}: {change.was} -> {told_value(change.value)}"
    for each in at_ends(report.found.values, report.dimensions):
        yield f"{each}; a wider range may hold a better one."


def _cells(figures: Figures) -> list[str]:
    return [
        percent(figures.attainment),
        percent(figures.missed_share),
        hours(figures),
        f"{figures.reversals_per_hour:.1f}",
        str(figures.max_replicas),
    ]
