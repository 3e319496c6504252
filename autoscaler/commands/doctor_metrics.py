"""What `tokenscaler doctor` prints: findings about what Tokenscaler would work on, without changing anything."""

from __future__ import annotations

import json
import sys

import typer
from rich.console import Console
from rich.table import Table

from autoscaler.engines import ENGINES
from autoscaler.engines.page_report import PageReport, report_page
from autoscaler.engines.page_source import PageUnavailable, read_page
from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE


def doctor_metrics_page(place: str, engine: str | None, as_json: bool, console: Console) -> int:
    """Reports one /metrics page; 1 when too little is on it to scale on, 2 when it cannot be read."""
    if engine is not None and engine not in ENGINES:
        typer.echo(f"tokenscaler: --engine {engine}: one of {', '.join(ENGINES)} is wanted", err=True)
        return WRONG_USAGE
    text = sys.stdin.read() if place == "-" else read_page(place)
    if isinstance(text, PageUnavailable):
        typer.echo(f"tokenscaler: {text.message}", err=True)
        return WRONG_USAGE
    report = report_page(text, engine)
    if as_json:
        typer.echo(json.dumps(report.to_document(), indent=2))
    else:
        _print(report, console)
    return FINE if report.is_enough_to_scale else NOT_RIGHT


def _print(report: PageReport, console: Console) -> None:
    console.print(f"engine: {report.engine or 'not recognized'}", highlight=False)
    table = Table(box=None)
    table.add_column("signal")
    table.add_column("value", justify="right")
    table.add_column("series", justify="right")
    table.add_column("metric")
    for signal, found in report.signals.items():
        document = found.to_document()
        value = document.get("value", document.get("count"))
        table.add_row(signal, "" if value is None else f"{value:.6g}", str(document["series"]), str(document["metric"]))
    if report.signals:
        console.print(table)
    console.print(f"absent: {', '.join(report.absent) or 'nothing'}", highlight=False)
    for problem in report.problems:
        console.print(f"problem: {problem}", highlight=False, style="yellow")
    votes = ", ".join(report.possible_votes) or "none: too little to scale on"
    console.print(f"votes that can be cast: {votes}", highlight=False)
