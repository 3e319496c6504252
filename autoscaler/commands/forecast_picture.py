"""How does a forecast look beside the load before it? A picture of characters for the terminal."""

from __future__ import annotations

import numpy as np

from forecasting.forecast import Forecast
from forecasting.time_series import TimeSeries

HEIGHT = 12
FORECAST_COLUMNS_PER_STEP = 3
AXIS_WIDTH = 12
EIGHTHS = " ▁▂▃▄▅▆▇█"


def draw_forecast(series: TimeSeries, forecast: Forecast, width: int) -> list[str]:
    """Lines of at most `width` characters: the last bins as bars, "|" for now, then the band of each step.

    "▒" fills from the median to 0.95, "░" is below the median; missing bins are gaps marked "?".
    """
    ahead = len(forecast.point) * FORECAST_COLUMNS_PER_STEP
    shown = max(1, min(width - AXIS_WIDTH - ahead - 3, len(series.values)))
    past = series.values[-shown:]
    top = max(float(np.nanmax(past, initial=0.0)), forecast.quantiles[-1][-1], max(q[-1] for q in forecast.quantiles))
    top = top if top > 0 else 1.0
    lines = []
    for row in range(HEIGHT, 0, -1):
        label = (
            f"{top * row / HEIGHT:>{AXIS_WIDTH - 2}.4g} " if row in (HEIGHT, HEIGHT // 2) else " " * (AXIS_WIDTH - 1)
        )
        bars = "".join(_bar(value, row, top) for value in past)
        band = "".join(_band(quantiles, row, top) * FORECAST_COLUMNS_PER_STEP for quantiles in forecast.quantiles)
        lines.append(f"{label}│{bars}|{band}".rstrip())
    hours = shown * series.step_seconds / 3600
    lines.append(" " * (AXIS_WIDTH - 1) + "└" + "─" * (shown + ahead + 1))
    left, right = f"-{hours:.1f} h", f"now  +{len(forecast.point) * series.step_seconds / 60:.0f} min"
    lines.append(" " * AXIS_WIDTH + left + " " * max(1, shown - len(left)) + right)
    for step, quantiles in enumerate(forecast.quantiles, start=1):
        values = ", ".join(f"q{level:g} {value:.6g}" for level, value in zip(forecast.levels, quantiles, strict=True))
        lines.append(f"step {step} (to +{step * series.step_seconds / 60:.0f} min): {values}")
    return lines


def _bar(value: float, row: int, top: float) -> str:
    if not np.isfinite(value):
        return "?" if row == 1 else " "
    filled = value / top * HEIGHT - (row - 1)
    return EIGHTHS[int(np.clip(round(filled * 8), 0, 8))]


def _band(quantiles: tuple[float, ...], row: int, top: float) -> str:
    middle = (row - 0.5) / HEIGHT * top
    if middle <= quantiles[0]:
        return "░"
    return "▒" if middle <= quantiles[-1] else " "
