"""What do a bin, a pool and a refit of a large fleet cost on one core?"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from rich.table import Table

from forecasting.load_history import LoadHistory
from forecasting.parameters import REPLAYED_DAYS, ForecastingParameters
from forecasting.selection import GatedFleet

FULL_RING_BINS = 3 * 288 + 24  # after them every ring that is sorted is full
MEASURED_BINS = 48
HISTORY_BINS = 300


def measure_cost(pools: int) -> Table:
    """Time of a bin with full rings, with and without the gate's baseline, and memory per pool."""
    parameters = ForecastingParameters()
    fleet = GatedFleet(pools, parameters)
    random = np.random.default_rng(0)
    days = 100 + 50 * np.sin(2 * np.pi * np.arange(FULL_RING_BINS + MEASURED_BINS) / 288)
    milliseconds = []
    for load in days:
        loads = load + random.normal(0, 10, pools)
        start = time.process_time()
        fleet.advance(np.maximum(loads, 0))
        milliseconds.append(1000 * (time.process_time() - start))
    history = LoadHistory(pools, parameters)
    began = time.process_time()
    for _ in range(HISTORY_BINS):
        history.accept(np.full(pools, 100.0))
    a_bin_of_history = (time.process_time() - began) / HISTORY_BINS
    last = np.array(milliseconds[-MEASURED_BINS:])
    bytes_model, bytes_fleet = (sum(a.nbytes for a in _arrays(each, set())) for each in (fleet.model, fleet))
    table = Table(title=f"Cost of {pools} pools, bins of 5 minutes, CPU time of one core", title_justify="left")
    for heading in ("figure", "measured", "goal"):
        table.add_column(heading)
    table.add_row(
        "a bin: update, forecast, gate", f"{last.mean():.0f} ms, p95 {np.percentile(last, 95):.0f}", "<= 40 ms"
    )
    table.add_row("memory a pool", f"{bytes_model / pools / 1e3:.0f} KB + gate", "<= 200 KB")
    table.add_row("memory a pool with the gate", f"{bytes_fleet / pools / 1e3:.0f} KB", "<= 200 KB")
    cleaned = 21 * 288 * a_bin_of_history
    replay = (21 - REPLAYED_DAYS) * 288 * a_bin_of_history + REPLAYED_DAYS * 288 * last.mean() / 1000
    table.add_row("21 days into history and profile, a pool", f"{1000 * cleaned / pools:.1f} ms", "<= 15 ms")
    table.add_row("replay of 21 days, all pools", f"{replay:.0f} s", "<= 30 s")
    return table


def _arrays(owner: object, seen: set[int]) -> Iterator[np.ndarray]:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    if isinstance(owner, np.ndarray):
        yield owner if owner.base is None else owner.base
        return
    parts: list[object] = []
    if isinstance(owner, dict):
        parts += owner.values()
    elif isinstance(owner, (list, tuple)):
        parts += owner
    elif type(owner).__module__.startswith("forecasting"):
        parts += vars(owner).values() if hasattr(owner, "__dict__") else []
        parts += [getattr(owner, name) for name in getattr(type(owner), "__slots__", ())]
    for part in parts:
        yield from _arrays(part, seen)
