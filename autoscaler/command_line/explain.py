"""Whose decisions are to be explained, and of which time?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.command_line.terminal import Output, console, refuse


def explain(
    target: Annotated[str | None, typer.Argument(help="NAMESPACE/NAME of an InferenceScaler.")] = None,
    log: Annotated[Path | None, typer.Option(help="Decision log: every record is decided again.")] = None,
    url: Annotated[str | None, typer.Option(help="A controller's HTTP address, for its newest decisions.")] = None,
    at: Annotated[
        str | None, typer.Option(help="The decision in force at a time such as 2026-11-30T09:30:00Z.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="A line a change of the last 90s, 30m, 2h or 1d (of the log, back from its end).")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say why a pool has this many replicas, and decide the record again.

    Exit 1 where a record comes out otherwise, 2 where there is none to be had.

    Examples: tokenscaler explain inference/llama-70b --url http://localhost:8080 --since 2h;
    tokenscaler explain --log decisions.jsonl
    """
    from autoscaler.commands.explain import explain_log, explain_target
    from autoscaler.commands.record_window import parse_window

    if target is None and log is None:
        refuse("explain: give NAMESPACE/NAME or --log FILE (or both)")
    window = parse_window(at, since)
    if isinstance(window, str):
        refuse(window)
    if log is not None:
        raise typer.Exit(explain_log(log, target, window, output is Output.JSON, console()))
    assert target is not None
    raise typer.Exit(explain_target(target, url, kubeconfig, context, window, output is Output.JSON, console()))
