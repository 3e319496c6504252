"""Whose HorizontalPodAutoscaler is wanted?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def hpa(
    target: Annotated[str, typer.Argument(help="NAMESPACE/NAME of an InferenceScaler in mode ExternalMetric.")],
    file: Annotated[Path | None, typer.Option(help="Read it from this YAML file instead of the cluster.")] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Else the usual kubeconfig.")] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
    object_metric: Annotated[
        bool, typer.Option("--object-metric", help="Read the count from custom.metrics.k8s.io instead of external.")
    ] = False,
) -> None:
    """Print the HorizontalPodAutoscaler that follows an InferenceScaler, and adds no delay of its own.

    Example: tokenscaler hpa inference/llama-8b | kubectl apply -f -
    """
    from autoscaler.commands.hpa import print_hpa

    raise typer.Exit(print_hpa(target, file, kubeconfig, context, object_metric))
