"""Which node is to be watched?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def drain_watcher(
    node: Annotated[str, typer.Option(envvar="TOKENSCALER_NODE", help="Name of the node that this runs on.")],
    drain_file: Annotated[Path, typer.Option(help="Is there while the node drains; readiness probes look for it.")],
    looked_file: Annotated[Path, typer.Option(help="Touched after every look that saw all there is to see.")] = Path(
        "/tmp/looked"
    ),
    metadata_url: Annotated[
        str | None, typer.Option(help="The cloud's instance metadata service, version 2. Default: it is not asked.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the pod's ServiceAccount.")] = None,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
) -> None:
    """Watch one node for a spot notice or a drain: fail the readiness of its pods, cordon it, let streams finish.

    Example: tokenscaler drain-watcher --node gpu-1 --drain-file /run/tokenscaler/draining
    """
    from autoscaler.drain_watcher.run import run_drain_watcher
    from autoscaler.process_log import configure_process_log

    configure_process_log(log_level)
    raise typer.Exit(run_drain_watcher(node, drain_file, looked_file, metadata_url, kubeconfig))
