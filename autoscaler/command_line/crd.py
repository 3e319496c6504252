"""The definitions of our own kinds."""

from __future__ import annotations

import typer


def crd() -> None:
    """Print the custom resource definitions.

    Example: tokenscaler crd | kubectl apply -f -
    """
    from autoscaler.api.custom_resource_definition import render

    typer.echo(render(), nl=False)
