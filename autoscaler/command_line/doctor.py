"""What is to be checked?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoscaler.command_line.terminal import Output, console


def doctor_metrics(
    page: Annotated[str, typer.Option(help="File or http(s) URL of a /metrics page; - is stdin.")],
    engine: Annotated[str | None, typer.Option(help="Take it for this engine instead of recognizing one.")] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say which engine a /metrics page is of and which signals it supplies; exit 1 when too few to scale on.

    Example: tokenscaler doctor metrics --page http://localhost:8000/metrics
    """
    from autoscaler.commands.doctor_metrics import doctor_metrics_page

    raise typer.Exit(doctor_metrics_page(page, engine, output is Output.JSON, console()))


def doctor_external_metrics_groups(
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    service: Annotated[
        str, typer.Option(help="NAMESPACE/NAME of our own Service.")
    ] = "tokenscaler-system/tokenscaler-metrics",
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Say who serves the metrics API groups of this cluster; exit 1 when another provider or a dead one is in the way.

    Example: tokenscaler doctor external-metrics
    """
    from autoscaler.commands.doctor_external_metrics import doctor_external_metrics

    raise typer.Exit(doctor_external_metrics(kubeconfig, context, service, output is Output.JSON, console()))


def doctor_nodepools(
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    service_account: Annotated[
        str, typer.Option(help="NAMESPACE/NAME of the controller's ServiceAccount, whose rights are checked.")
    ] = "tokenscaler-system/tokenscaler",
    quota_cpus: Annotated[
        int | None, typer.Option(min=1, help="vCPU that the cloud account may run of these instances.")
    ] = None,
    ceiling_dollars_per_hour: Annotated[
        str | None, typer.Option(help="What `run` is given as ceiling for all AcceleratorPools together.")
    ] = None,
    output: Annotated[Output, typer.Option(help="text or json.")] = Output.TEXT,
) -> None:
    """Check AcceleratorPools, their NodePools and the pods on them; exit 1 where something is not right.

    Exit 3 where there is nothing to check: no AcceleratorPool, or no Karpenter.

    Example: tokenscaler doctor nodepools --quota-cpus 6144
    """
    from autoscaler.commands.doctor_node_pools import Asked, doctor_node_pools

    asked = Asked(service_account, quota_cpus, ceiling_dollars_per_hour)
    raise typer.Exit(doctor_node_pools(kubeconfig, context, asked, output is Output.JSON, console()))
