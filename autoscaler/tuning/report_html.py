"""What came of a search as one self-contained page: misses against accelerator-hours, and what is behind every point.

Everything is in the file, pictures as SVG; nothing is fetched and no script runs, so it can be sent to a colleague.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from autoscaler.replay.report_html import COLOURS, STYLE
from autoscaler.tuning.dimension import told_value
from autoscaler.tuning.figures import Figures
from autoscaler.tuning.tuning_report import TuningReport, hours, percent, shown_values
from autoscaler.tuning.verdict import Judged, shown_figures

STYLE_OF_TABLES = "td { white-space: nowrap; } td.values { white-space: normal; text-align: left; }"
WIDTH, HEIGHT = 1100, 420
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 26, 40
# Shares of missed requests are drawn by their logarithm; fewer than one in ten thousand stand at the bottom.
LEAST_MISSED = 1e-4
GRID_SHARES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0)


@dataclass(frozen=True, slots=True)
class _Axes:
    least_hours: float
    most_hours: float
    most_missed: float

    def x(self, accelerator_hours: float) -> float:
        share = (accelerator_hours - self.least_hours) / max(self.most_hours - self.least_hours, 1e-9)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, missed_share: float) -> float:
        least, most = math.log(LEAST_MISSED), math.log(self.most_missed)
        share = (math.log(max(missed_share, LEAST_MISSED)) - least) / (most - least)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share


def tuning_page(report: TuningReport) -> str:
    """The page as HTML."""
    facts = (
        f"Chosen by {report.objective.shown()}. Seeds {_listed(report.seeds)} in the search, "
        f"{_listed(report.held_out_seeds)} on the last {report.hold_out_percent:g} % of each trace, which was held out."
    )
    parts = (
        f"<h1>{escape(report.title)}</h1><p>{escape(facts)}</p>{_caution(report)}{_verdict(report)}",
        _search_picture(report),
        _held_out_picture(report),
        _judged_table(report),
        _front_table(report),
        _list("Searched", [dimension.shown() for dimension in report.dimensions]),
        _list("Assumed", report.assumptions),
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tokenscaler tune</title>'
        f"<style>{STYLE}{STYLE_OF_TABLES}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _caution(report: TuningReport) -> str:
    return "" if report.caution is None else f"<p><b>Note</b>: {escape(report.caution)}</p>"


def _verdict(report: TuningReport) -> str:
    if report.verdict is None:
        return "<p>Stopped before the end: all of this is of what was run.</p>"
    head = "The given policy is kept" if report.verdict.keeps_given else "The policy that was found is written"
    rows = "".join(
        f"<li>{escape(change.path)}: {escape(change.was)} &rarr; {escape(told_value(change.value))}</li>"
        for change in report.changes
    )
    return f"<p><b>{head}</b>: {escape(report.verdict.reason)}.</p><ul>{rows}</ul>"


def _search_picture(report: TuningReport) -> str:
    named = [(each, each.search) for each in report.judged]
    tried = [trial.figures for trial in report.outcome.trials]
    fronts = [figures for each in report.baselines for figures in each.front]
    axes = _axes([*tried, *fronts, *(figures for _, figures in named)])
    front = report.outcome.front()
    dots = "".join(
        _dot(axes, trial.figures, COLOURS[0] if trial in front else "#bbb", 4, shown_values(trial.values))
        for trial in report.outcome.trials
    )
    lines = "".join(_line(axes, each.front, _colour(each, report)) for each in report.baselines)
    ours = _line(axes, [trial.figures for trial in front], COLOURS[0])
    title = "Searched part: every policy that was tried; lines are Pareto fronts, of this policy and of tuned baselines"
    return _picture(title, axes, f"{lines}{ours}{dots}{_named(axes, report, named)}")


def _line(axes: _Axes, front: Sequence[Figures], colour: str) -> str:
    points = "L".join(f"{axes.x(each.accelerator_hours):.1f} {axes.y(each.missed_share):.1f}" for each in front)
    return f'<path class="line" stroke="{colour}" d="M{points}"/>' if points else ""


def _held_out_picture(report: TuningReport) -> str:
    named = [(each, each.held_out) for each in report.judged if each.held_out is not None]
    if not named:
        return ""
    axes = _axes([figures for _, figures in named])
    return _picture("Held-out part: what the search has not seen", axes, _named(axes, report, named))


def _axes(figures: Sequence[Figures]) -> _Axes:
    spent = [each.accelerator_hours for each in figures]
    most_missed = max(1e-2, *(each.missed_share for each in figures))
    margin = 0.05 * (max(spent) - min(spent)) or 0.05 * max(spent)
    return _Axes(max(0.0, min(spent) - margin), max(spent) + margin, min(1.0, 1.5 * most_missed))


def _named(axes: _Axes, report: TuningReport, named: Sequence[tuple[Judged, Figures]]) -> str:
    """A large dot and a name for each; names that would lie upon each other are moved down."""
    drawn: list[str] = []
    taken: list[tuple[float, float]] = []
    for each, figures in sorted(named, key=lambda pair: axes.y(pair[1].missed_share)):
        x, y = axes.x(figures.accelerator_hours) + 9, axes.y(figures.missed_share) + 4
        while any(abs(x - other) < 130 and abs(y - height) < 12 for other, height in taken):
            y += 12
        taken.append((x, y))
        drawn.append(_dot(axes, figures, _colour(each, report), 6, f"{each.name}: {shown_values(each.values)}"))
        drawn.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(each.name)}</text>')
    return "".join(drawn)


def _dot(axes: _Axes, figures: Figures, colour: str, radius: int, words: str) -> str:
    return (
        f'<circle cx="{axes.x(figures.accelerator_hours):.1f}" cy="{axes.y(figures.missed_share):.1f}" r="{radius}" '
        f'fill="{colour}"><title>{escape(shown_figures(figures))}\n{escape(words)}</title></circle>'
    )


def _picture(title: str, axes: _Axes, drawn: str) -> str:
    return (
        f'<h2>{escape(title)}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(_grid(axes))}{drawn}</svg>"
    )


def _grid(axes: _Axes) -> Iterator[str]:
    for share in (each for each in GRID_SHARES if each <= axes.most_missed):
        y = axes.y(share)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{100 * share:g} %</text>'
    step = _round_step((axes.most_hours - axes.least_hours) / 5)
    for number in range(math.ceil(axes.least_hours / step), math.floor(axes.most_hours / step) + 1):
        x = axes.x(number * step)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        yield f'<text x="{x:.1f}" y="{HEIGHT - 22}" text-anchor="middle">{number * step:,.4g}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 5}" text-anchor="middle">accelerator-hours</text>'
    yield f'<text x="{LEFT}" y="12">missed requests</text>'


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, ... from here on, of whatever size."""
    size = 10.0 ** math.floor(math.log10(max(least, 1e-6)))
    return next(size * factor for factor in (1, 2, 5, 10) if size * factor >= least or factor == 10)


def _judged_table(report: TuningReport) -> str:
    heads = ("met, searched", "acc.-hours", "met, held out", "acc.-hours", "reversals/h", "most replicas", "values")
    rows = []
    for each in report.judged:
        key = f'<span class="key" style="background:{_colour(each, report)}"></span>'
        cells = [percent(each.search.attainment), hours(each.search), *_held_out(each)]
        rows.append(_row(f"{key}{escape(each.name)}", cells, shown_values(each.values)))
        for name, alone in () if each.held_out is None or len(report.traces) < 2 else each.held_out.by_load():
            ours = ["", "", percent(alone.attainment), hours(alone), f"{alone.reversals_per_hour:.1f}"]
            rows.append(_row(f'<span class="note">{escape(name)}</span>', [*ours, str(alone.max_replicas)]))
    return f"<h2>Both parts</h2>{_table(('policy', *heads), rows)}"


def _held_out(each: Judged) -> tuple[str, str, str, str]:
    found = each.held_out
    if found is None:
        return "-", "-", "-", "-"
    return percent(found.attainment), hours(found), f"{found.reversals_per_hour:.1f}", str(found.max_replicas)


def _front_table(report: TuningReport) -> str:
    rows = [
        _row(
            percent(trial.figures.attainment),
            [hours(trial.figures), f"{trial.figures.reversals_per_hour:.1f}"],
            shown_values(trial.values),
        )
        for trial in report.outcome.front()
    ]
    return f"<h2>The front</h2>{_table(('met', 'acc.-hours', 'reversals/h', 'values'), rows)}"


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _row(first: str, cells: Sequence[str], values: str = "") -> str:
    """`first` is HTML already; values stand last, as long as they are."""
    middle = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
    return f'<tr><td>{first}</td>{middle}<td class="values">{escape(values)}</td></tr>'


def _list(title: str, lines: Sequence[str]) -> str:
    return f'<h2>{escape(title)}</h2><ul class="note">{"".join(f"<li>{escape(each)}</li>" for each in lines)}</ul>'


def _colour(each: Judged, report: TuningReport) -> str:
    """Black for the given policy, the second colour for what was found, the rest for baselines."""
    if each is report.given:
        return "#000000"
    if each is report.found:
        return COLOURS[1]
    places = [place for place, colour in enumerate(COLOURS) if colour not in ("#000000", COLOURS[0], COLOURS[1])]
    return COLOURS[places[report.baselines.index(each) % len(places)]]


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
