"""How does a command speak to whoever called it?"""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import NoReturn

import typer
from rich.console import Console

from autoscaler.exit_codes import WRONG_USAGE


class Output(StrEnum):
    """Text for a person, JSON for a machine."""

    TEXT = "text"
    JSON = "json"


def refuse(message: str) -> NoReturn:
    """Says on stderr what cannot be done, and exits with 2."""
    typer.echo(f"tokenscaler: {message}", err=True)
    raise typer.Exit(WRONG_USAGE)


def console() -> Console:
    """Where text is printed: the terminal, else a pipe."""
    # A pipe has no width of its own; 200 columns keep a line a line for grep.
    # No markup: what is printed holds PromQL, whose [5m] is no style.
    width = None if sys.stdout.isatty() else 200
    return Console(highlight=False, markup=False, emoji=False, width=width)
