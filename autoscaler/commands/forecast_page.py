"""How does a forecast look on a page of its own? One HTML file with a picture in it, and nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from html import escape

from forecasting.forecast import Forecast
from forecasting.time_series import TimeSeries

SHOWN_DAYS = 2.0
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 1100, 360, 70, 30, 10
STYLE = """
:root { color-scheme: light dark; --text: #1d2430; --quiet: #687183; --line: #d9dee7; --load: #2457c5; --band: #b3580f }
@media (prefers-color-scheme: dark) { :root { --text: #e8ecf3; --quiet: #9aa4b5; --line: #39414f; --load: #7ba4ff;
  --band: #f0a35b } body { background: #14181f } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); max-width: 1140px; margin: 2rem auto; padding: 0 1rem }
svg { width: 100%; height: auto } text { fill: var(--quiet); font-size: 12px } td, th { padding: .2rem .8rem;
  text-align: right; font-variant-numeric: tabular-nums } .grid { stroke: var(--line) } .load { stroke: var(--load);
  fill: none; stroke-width: 1.5 } .band { fill: var(--band); opacity: .25 } .middle { stroke: var(--band); fill: none;
  stroke-width: 2 } .now { stroke: var(--quiet); stroke-dasharray: 4 3 }
"""


def forecast_page(title: str, series: TimeSeries, forecast: Forecast, verdict: str) -> str:
    """The whole HTML document: the last two days, the band ahead, its numbers, and whether the model may act."""
    rows = "".join(
        f"<tr><td>{step}</td><td>{_clock(_begin(forecast, step))}</td>"
        + "".join(f"<td>{value:,.6g}</td>" for value in by_step)
        + f"<td>{_ratio(forecast, step)}</td></tr>"
        for step, by_step in enumerate(forecast.quantiles, start=1)
    )
    heads = "".join(f"<th>{100 * level:g} %</th>" for level in forecast.levels)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Forecast of {escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>Issued at {_clock(forecast.origin_seconds)} UTC for the next {forecast.reach_seconds // 60} minutes.
The model {escape(verdict)}.</p>
{_picture(series, forecast)}
<table><thead><tr><th>step</th><th>from (UTC)</th>{heads}<th>loss to last value</th></tr></thead>
<tbody>{rows}</tbody></table>
</body></html>
"""


def _picture(series: TimeSeries, forecast: Forecast) -> str:
    shown = series.values[-round(SHOWN_DAYS * 86_400 / series.step_seconds) :].tolist()
    begin = series.end_seconds - series.step_seconds * len(shown)
    end = forecast.origin_seconds + forecast.reach_seconds
    top: float = max(
        [*(value for value in shown if math.isfinite(value)), *(row[-1] for row in forecast.quantiles), 1e-9]
    )

    def x(seconds: float) -> float:
        return LEFT + (seconds - begin) / (end - begin) * (WIDTH - LEFT)

    def y(value: float) -> float:
        return TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM)

    load = _path([(x(begin + (place + 0.5) * series.step_seconds), value) for place, value in enumerate(shown)], y)
    edges = [(_begin(forecast, step), _begin(forecast, step + 1)) for step in range(1, len(forecast.quantiles) + 1)]
    steps = list(zip(edges, forecast.quantiles, strict=True))
    upper = [(x(at), row[-1]) for both_ends, row in steps for at in both_ends]
    lower = [(x(at), row[0]) for both_ends, row in steps for at in both_ends]
    band = " ".join(f"{at:.1f},{y(value):.1f}" for at, value in [*upper, *reversed(lower)])
    grid = "".join(
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y(part * top):.1f}" y2="{y(part * top):.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y(part * top) + 4:.1f}" text-anchor="end">{part * top:,.4g}</text>'
        for part in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    hours = _multiples(begin, end, 6 * 3600)
    marks = "".join(f'<text x="{x(at):.1f}" y="{HEIGHT - 8}" text-anchor="middle">{_clock(at)}</text>' for at in hours)
    here = f"{x(forecast.origin_seconds):.1f}"
    now = f'<line class="now" x1="{here}" x2="{here}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="load and forecast">{grid}{marks}{now}'
        f'<path class="load" d="{load}"/><polygon class="band" points="{band}"/>'
        f'<path class="middle" d="{_path(lower, y)}"/></svg>'
    )


def _path(points: Sequence[tuple[float, float]], y: Callable[[float], float]) -> str:
    commands, is_down = [], False
    for at, value in points:
        if not math.isfinite(value):
            is_down = False
            continue
        commands.append(f"{'L' if is_down else 'M'}{at:.1f},{y(value):.1f}")
        is_down = True
    return " ".join(commands)


def _multiples(begin: float, end: float, step: int) -> list[float]:
    first = math.ceil(begin / step) * step
    return [float(at) for at in range(int(first), int(end) + 1, step)]


def _begin(forecast: Forecast, step: int) -> float:
    return forecast.origin_seconds + (step - 1) * forecast.bin_seconds


def _ratio(forecast: Forecast, step: int) -> str:
    ratio = forecast.skills[step - 1].loss_ratio
    return "–" if ratio is None else f"{ratio:.2f}"


def _clock(unix_seconds: float) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%m-%d %H:%M")
