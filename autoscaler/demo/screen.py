"""What does the terminal show while the demo runs? A live table on a terminal, one line a change everywhere else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from autoscaler.dashboard.recorder import VOTE_PREFIX
from autoscaler.dashboard.snapshot import CountChange, FleetSnapshot, PoolView

SHOWN_CHANGES = 6


class Screen(Protocol):
    """Shows one snapshot after the other."""

    def __enter__(self) -> Screen: ...

    def __exit__(self, *exception: object) -> None: ...

    def show(self, snapshot: FleetSnapshot) -> None:
        """Takes the snapshot of a tick."""
        ...


class PlainScreen:
    """One line for each change of a count: for pipes, logs and CI."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown_until: dict[tuple[str, str], float] = {}

    def __enter__(self) -> PlainScreen:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def show(self, snapshot: FleetSnapshot) -> None:
        """Prints the changes that are new in it, oldest first."""
        for key, pool in snapshot.pools.items():
            shown_until = self._shown_until.get(key, 0.0)
            for change in reversed(pool.changes):
                if change.at_seconds > shown_until:
                    self._console.print(_change_line(pool, change), soft_wrap=True, highlight=False, markup=False)
            self._shown_until[key] = snapshot.now_seconds


class LiveScreen:
    """A table of the pools, the last decision of each in words, and the newest changes."""

    def __init__(self, console: Console, url: str) -> None:
        self._url = url
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.stop()

    def show(self, snapshot: FleetSnapshot) -> None:
        """Draws it over the one before."""
        self._live.update(render(snapshot, self._url), refresh=True)


def render(snapshot: FleetSnapshot, url: str) -> RenderableType:
    """The snapshot for a terminal."""
    headline = Text.assemble(
        ("tokenscaler demo", "bold"),
        ("  in simulation  ", "yellow"),
        f"{_time(snapshot.now_seconds)} UTC, {snapshot.source.seconds_per_second:g} times as fast   ",
        (url, "bold cyan"),
        ("   Ctrl-C ends", "dim"),
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("pool", style="bold")
    for column in ("wanted", "ready", "starting", "tokens/s", "waiting", "TTFT p99", "in time"):
        table.add_column(column, justify="right")
    table.add_column("votes")
    for pool in snapshot.pools.values():
        table.add_row(*_cells(pool))
    sentences = [Text.assemble((f"{pool.name}  ", "bold"), _sentence(pool)) for pool in snapshot.pools.values()]
    return Group(headline, Text(), table, Text(), *sentences, Text(), _changes(snapshot))


def _cells(pool: PoolView) -> tuple[str, ...]:
    counts, last = pool.replicas, _last_row(pool)
    if counts is None or pool.decision is None:
        return (pool.name, "-", "-", "-", "-", "-", "-", "-", pool.problem or "nothing decided yet")
    prompt, generated = last.get("promptTokensPerSecond"), last.get("generationTokensPerSecond")
    tokens = None if prompt is None or generated is None else prompt + generated
    first_token, met = last.get("timeToFirstTokenP99Seconds"), last.get("metShare")
    votes = ", ".join(
        f"{name.removeprefix(VOTE_PREFIX)} {value:.1f}" for name, value in last.items() if name.startswith(VOTE_PREFIX)
    )
    return (
        pool.name,
        str(pool.decision.desired_replicas),
        str(counts.ready),
        str(counts.starting),
        "-" if tokens is None else f"{tokens:,.0f}",
        "-" if "waitingRequests" not in last else f"{last['waitingRequests']:.0f}",
        "-" if first_token is None else f"{first_token:.2f} s",
        "-" if met is None else f"{100 * met:.1f} %",
        votes,
    )


def _last_row(pool: PoolView) -> dict[str, float]:
    series = pool.series
    if len(series.table) == 0:
        return {}
    row = dict(zip(series.names, series.table[-1].tolist(), strict=True))
    return {name: value for name, value in row.items() if value == value}


def _sentence(pool: PoolView) -> str:
    if pool.problem is not None:
        return pool.problem
    return pool.decision.message if pool.decision else "nothing decided yet"


def _changes(snapshot: FleetSnapshot) -> RenderableType:
    changes = [(change, pool) for pool in snapshot.pools.values() for change in pool.changes]
    changes.sort(key=lambda pair: pair[0].at_seconds, reverse=True)
    lines = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for change, pool in changes[:SHOWN_CHANGES]:
        colour = "yellow" if change.to_replicas > change.from_replicas else "green"
        count = Text(f"{change.from_replicas} -> {change.to_replicas}", style=colour)
        lines.add_row(_time(change.at_seconds), pool.name, count, change.reason)
    return lines


def _change_line(pool: PoolView, change: CountChange) -> str:
    return (
        f"{_time(change.at_seconds)} {pool.namespace}/{pool.name} {change.from_replicas} -> {change.to_replicas} "
        f"{change.reason}: {change.message}"
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")
