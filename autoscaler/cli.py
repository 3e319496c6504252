"""The `tokenscaler` command. Exit codes: 0 fine, 1 what was checked is not right, 2 wrong usage or input."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from autoscaler.command_line.crd import crd
from autoscaler.command_line.demo import demo
from autoscaler.command_line.doctor import doctor_external_metrics_groups, doctor_metrics, doctor_nodepools
from autoscaler.command_line.drain_watcher import drain_watcher
from autoscaler.command_line.explain import explain
from autoscaler.command_line.forecast import forecast
from autoscaler.command_line.hpa import hpa
from autoscaler.command_line.replay import replay
from autoscaler.command_line.run import run
from autoscaler.command_line.tune import tune

app = typer.Typer(
    name="tokenscaler",
    help="A Kubernetes autoscaler for LLM inference fleets.\n\nExample: tokenscaler demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
doctor_app = typer.Typer(
    help="Read-only checks of what Tokenscaler would work on.\n\nExample: tokenscaler doctor metrics --page page.txt",
    no_args_is_help=True,
)
app.add_typer(doctor_app, name="doctor")
for command in (run, demo, explain, forecast, replay, tune, hpa, crd):
    app.command()(command)
app.command("drain-watcher")(drain_watcher)
doctor_app.command("metrics")(doctor_metrics)
doctor_app.command("external-metrics")(doctor_external_metrics_groups)
doctor_app.command("nodepools")(doctor_nodepools)


def main() -> None:
    """Runs the command line."""
    app()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tokenscaler {metadata.version('tokenscaler')}")
        raise typer.Exit(0)


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A Kubernetes autoscaler for LLM inference fleets.

    Example: tokenscaler demo
    """
