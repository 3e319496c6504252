"""Which options have several commands in the same words, and how are they read?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autoscaler.command_line.terminal import refuse

if TYPE_CHECKING:  # a command loads what it needs and no more
    from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings

LoadPrometheus = Annotated[
    str | None, typer.Option(help="Instead of a trace: the pool's own recorded load, from --start to --end.")
]
PrometheusConfig = Annotated[
    Path | None, typer.Option(help="YAML with authentication, TLS, headers and timeouts of the Prometheus client.")
]
TraceScale = Annotated[float, typer.Option(help="So many times the trace's users.")]
FleetName = Annotated[str | None, typer.Option(help="FLEET.yaml, or the name of a replica profile.")]
Baselines = Annotated[list[str] | None, typer.Option(help="A policy to compare with (repeatable).")]
LoadStart = Annotated[
    str | None, typer.Option(help="Begin at this second of the trace; of Prometheus: unix seconds or a date.")
]
LoadEnd = Annotated[str | None, typer.Option(help="End there.")]
PolicyOnly = Annotated[
    bool, typer.Option("--policy-only", help="Rates instead of requests: weeks in seconds, nothing of latencies.")
]
PolicyStep = Annotated[
    float | None, typer.Option(help="With --policy-only: seconds between decisions, 15 to 120; default by length.")
]


def prometheus_settings(url: str, path: Path | None) -> tuple[PrometheusSettings, QuerySettings]:
    """The settings for `url`, with the file's where one is given; refuses what cannot be read."""
    from autoscaler.settings import one_line, read_prometheus_settings

    try:
        return read_prometheus_settings(url, path)
    except (ValueError, OSError) as error:
        refuse(one_line(error))


def load_source(url: str | None, path: Path | None) -> tuple[PrometheusSettings | None, QuerySettings]:
    """The settings of the Prometheus that has recorded a load; None and the usual queries where there is a trace."""
    from autoscaler.prometheus.settings import QuerySettings

    return (None, QuerySettings()) if url is None else prometheus_settings(url, path)


def moment(option: str, given: str | None) -> float | None:
    """Seconds, or the unix time of a date; refuses what is neither."""
    if given is None:
        return None
    try:
        return float(given)
    except ValueError:
        pass
    from autoscaler.api.document import rfc3339_seconds

    moment_seconds = rfc3339_seconds(given)
    if moment_seconds is None:
        refuse(f"{option} {given}: seconds, or a date such as 2026-11-23T00:00Z, are wanted")
    return moment_seconds
