"""`tokenscaler drain-watcher`: looks every two seconds until it is told to stop."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import typer

from autoscaler.drain_watcher.drain import DrainWatcher
from autoscaler.drain_watcher.instance_metadata import InstanceMetadata
from autoscaler.exit_codes import FINE, WRONG_USAGE
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError

# Two minutes are left after a notice; AWS advises to ask every five seconds, its own handler does every two.
LOOK_SECONDS = 2.0


def run_drain_watcher(
    node: str, drain_file: Path, looked_file: Path, metadata_url: str | None, kubeconfig: Path | None
) -> int:
    """Runs until SIGTERM or SIGINT. `looked_file` is touched after every look that saw all there is to see."""
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None)
    except CredentialsError as error:
        typer.echo(f"tokenscaler: {error}", err=True)
        return WRONG_USAGE
    notice = None if metadata_url is None else InstanceMetadata(metadata_url).notice
    watcher = DrainWatcher(connection, node, drain_file, notice)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    while not stopping.is_set():
        if watcher.look():
            looked_file.touch()
        stopping.wait(LOOK_SECONDS)
    return FINE
