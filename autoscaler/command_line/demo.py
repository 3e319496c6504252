"""What may the demonstration be told on its command line?"""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page on 127.0.0.1; a free one if taken.")
    ] = 8080,
    speed: Annotated[float, typer.Option(min=1, max=600, help="Simulated seconds in one second.")] = 30.0,
    duration: Annotated[float | None, typer.Option(min=0.1, help="Stop after so many real seconds.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed is another day.")] = 1,
) -> None:
    """Run the real controller loop on a simulated fleet: no cluster, no Prometheus.

    Example: tokenscaler demo --speed 60
    """
    from autoscaler.demo import run_demo

    raise typer.Exit(run_demo(port=port, speed=speed, duration_seconds=duration, seed=seed))
