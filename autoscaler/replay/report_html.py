"""The report as one self-contained page: table, load, replicas, misses, and every decision where the pointer rests.

Everything is in the file, pictures as SVG; nothing is fetched and no script runs, so it can be sent to a colleague.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from autoscaler.replay.comparison import PolicyOutcome
from autoscaler.replay.report_json import Report, mean_figure
from autoscaler.replay.report_text import columns_of, node_sentences, ratio_to_clairvoyant, report_title
from autoscaler.replay.result import PoolResult
from autoscaler.replay.timeline import TimelinePoint

WIDTH, HEIGHT = 1100, 220
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 10, 26
# Between the times that are named, of which there are few.
TIME_STEPS_SECONDS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800)
MOST_TIMES = 8
MOST_POINTS = 1200
# Told apart with the common forms of colour blindness too (Okabe and Ito, 2008).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999933", "#882255")
STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 1140px; color: #1a1a1a; }
h1 { font-size: 1.3rem; } h2 { font-size: 1rem; margin: 1.6rem 0 .3rem; }
table { border-collapse: collapse; width: 100%; } th, td { padding: .25rem .5rem; text-align: right; }
th:first-child, td:first-child { text-align: left; } tbody tr { border-top: 1px solid #ddd; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .4em; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: #555; }
.grid { stroke: #e5e5e5; } .line { fill: none; stroke-width: 1.5; } .ready { stroke-dasharray: 3 3; opacity: .6; }
circle { fill-opacity: .75; } circle:hover { r: 6; } .note { color: #555; }
"""


@dataclass(frozen=True, slots=True)
class _Scale:
    begins: float
    ends: float
    most: float
    least_step: float = 0.0  # between two values that are named; 1 where there are only whole ones

    def x(self, at_seconds: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (at_seconds - self.begins) / max(self.ends - self.begins, 1.0)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / max(self.most, 1e-9)


def report_page(report: Report) -> str:
    """The page as HTML. Pictures show the first seed of each policy."""
    shown = [(outcome.name, outcome.results[0]) for outcome in report.outcomes if outcome.results]
    pictures = "".join(_pictures(report, shown)) if shown and shown[0][1].points else ""
    notes = "".join(f"<li>{escape(each)}</li>" for each in report.assumptions)
    nodes = "".join(f"<li>{escape(each)}</li>" for each in node_sentences(report))
    nodes = f'<h2>Nodes</h2><ul class="note">{nodes}</ul>' if nodes else ""
    stopped = "<p>Stopped before the end: all of this is of what was run.</p>" if report.was_stopped else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Tokenscaler replay</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(report_title(report))}</h1>{stopped}{_table(report)}{nodes}{pictures}"
        f'<h2>Assumed</h2><ul class="note">{notes}</ul></body></html>\n'
    )


def _table(report: Report) -> str:
    heads = "".join(f"<th>{escape(heading)}</th>" for heading, _, _ in columns_of(report))
    rows = "".join(_row(outcome, place, report) for place, outcome in enumerate(report.outcomes))
    last = ""
    if report.clairvoyant is not None:
        found = report.clairvoyant
        cells = {
            "attainment": f"{100 * found.attainment:.2f} %",
            "accelerator_hours": f"{found.accelerator_hours:,.2f}",
        }
        empty = "".join(f"<td>{cells.get(name, '')}</td>" for _, name, _ in columns_of(report))
        last = f"<tr><td>(clairvoyant)</td>{empty}<td>1.00</td></tr>"
    return (
        f"<table><thead><tr><th>policy</th>{heads}<th>x clairvoyant</th></tr></thead>"
        f"<tbody>{rows}{last}</tbody></table>"
    )


def _row(outcome: PolicyOutcome, place: int, report: Report) -> str:
    cells = []
    for _, name, text in columns_of(report):
        value = mean_figure(outcome, name)
        cells.append(f"<td>{'-' if value is None else escape(text(value))}</td>")
    key = f'<span class="key" style="background:{_colour(place)}"></span>'
    ratio = ratio_to_clairvoyant(outcome, report)
    return f"<tr><td>{key}{escape(outcome.name)}</td>{''.join(cells)}<td>{ratio}</td></tr>"


def _pictures(report: Report, shown: Sequence[tuple[str, PoolResult]]) -> Iterator[str]:
    first = shown[0][1]
    begins, ends = first.started_at_seconds, max(result.ended_at_seconds for _, result in shown)
    load = _rates(first.points, lambda point: point.arrived)
    yield _picture("Requests a second", _Scale(begins, ends, _largest([load])), [_line(load, "#555")])
    wanted = [[(point.at_seconds, float(point.wanted)) for point in result.points] for _, result in shown]
    ready = [[(point.at_seconds, float(point.ready)) for point in result.points] for _, result in shown]
    scale = _Scale(begins, ends, _largest([*wanted, *ready]), 1.0)
    lines = [_line(each, _colour(place)) for place, each in enumerate(wanted)]
    lines += [_line(each, _colour(place), "ready") for place, each in enumerate(ready)]
    marks = [mark for place, (name, result) in enumerate(shown) for mark in _marks(name, result, _colour(place), scale)]
    yield _picture("Replicas: wanted (ready: dashed); a dot is a decision, rest the pointer on it", scale, lines, marks)
    if any(result.nodes is not None for _, result in shown):
        yield _nodes_picture(shown, begins, ends)
    if first.is_of_rates:
        waiting = [[(point.at_seconds, float(point.arrived - point.finished)) for point in r.points] for _, r in shown]
        lines = [_line(each, _colour(place)) for place, each in enumerate(waiting)]
        yield _picture("Requests that wait for replicas", _Scale(begins, ends, _largest(waiting)), lines)
        return
    missed = [_rates(result.points, lambda point: point.finished - point.met) for _, result in shown]
    lines = [_line(each, _colour(place)) for place, each in enumerate(missed)]
    yield _picture("Requests outside the objectives, a second", _Scale(begins, ends, _largest(missed)), lines)


def _nodes_picture(shown: Sequence[tuple[str, PoolResult]], begins: float, ends: float) -> str:
    spot = [[(point.at_seconds, float(point.spot_nodes)) for point in result.points] for _, result in shown]
    on_demand = [[(point.at_seconds, float(point.on_demand_nodes)) for point in result.points] for _, result in shown]
    lines = [_line(each, _colour(place)) for place, each in enumerate(on_demand)]
    lines += [_line(each, _colour(place), "ready") for place, each in enumerate(spot)]
    return _picture(
        "Nodes on demand (on spot: dashed)", _Scale(begins, ends, _largest([*on_demand, *spot]), 1.0), lines
    )


_Points = list[tuple[float, float]]


def _rates(points: Sequence[TimelinePoint], count: Callable[[TimelinePoint], int]) -> _Points:
    """Per second, over steps that leave at most MOST_POINTS of them."""
    step = max(4, -(-len(points) // MOST_POINTS))
    kept = points[::step]
    return [
        (later.at_seconds, (count(later) - count(earlier)) / (later.at_seconds - earlier.at_seconds))
        for earlier, later in pairwise(kept)
    ]


def _largest(series: Sequence[_Points]) -> float:
    return max((value for points in series for _, value in points), default=0.0) or 1.0


def _line(points: _Points, colour: str, kind: str = "") -> tuple[_Points, str, str]:
    return points, colour, kind


def _picture(title: str, scale: _Scale, lines: Sequence[tuple[_Points, str, str]], marks: Sequence[str] = ()) -> str:
    drawn = "".join(
        f'<path class="line {kind}" stroke="{colour}" d="{_path(points, scale)}"/>' for points, colour, kind in lines
    )
    return (
        f'<h2>{escape(title)}</h2><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f"{''.join(_grid(scale))}{drawn}{''.join(marks)}</svg>"
    )


def _path(points: _Points, scale: _Scale) -> str:
    """Steps: a value holds until the next one. Only the points at which it changes are drawn."""
    parts: list[str] = []
    last = None
    for at, value in points:
        if value == last:
            continue
        x, y = f"{scale.x(at):.1f}", f"{scale.y(value):.1f}"
        parts.append(f"M{x} {y}" if last is None else f"H{x}V{y}")
        last = value
    if points:
        parts.append(f"H{scale.x(points[-1][0]):.1f}")
    return "".join(parts)


def _grid(scale: _Scale) -> Iterator[str]:
    for value in _round_values(scale.most, scale.least_step):
        y = scale.y(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,.4g}</text>'
    length = scale.ends - scale.begins
    step = next((each for each in TIME_STEPS_SECONDS if length <= MOST_TIMES * each), math.ceil(length / MOST_TIMES))
    for number in range(int(length / step) + 1):
        x = scale.x(scale.begins + number * step)
        anchor = "end" if x > WIDTH - RIGHT - LEFT / 2 else "middle"
        text = f"{number * step / 3600:g} h" if step >= 3600 or length >= 7200 else f"{number * step / 60:g} min"
        yield f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{text}</text>'


def _round_values(most: float, least_step: float) -> Iterator[float]:
    """0 and up to five more at equal, round steps: 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(max(most, 1e-9) / 5.0))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if most <= 5.0 * factor * power * (1.0 + 1e-9))
    step = max(step, least_step)
    return (number * step for number in range(int(most / step + 1e-9) + 1))


def _marks(name: str, result: PoolResult, colour: str, scale: _Scale) -> Iterator[str]:
    for change in result.changes:
        minutes = (change.at_seconds - result.started_at_seconds) / 60.0
        said = f"{name}, {minutes:.1f} min: {change.from_replicas} -> {change.to_replicas} {change.reason}"
        words = f"{said}\n{change.message}" if change.message else said
        yield (
            f'<circle cx="{scale.x(change.at_seconds):.1f}" cy="{scale.y(change.to_replicas):.1f}" r="3" '
            f'fill="{colour}"><title>{escape(words)}</title></circle>'
        )


def _colour(place: int) -> str:
    return COLOURS[place % len(COLOURS)]
