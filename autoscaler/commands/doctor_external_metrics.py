"""What `tokenscaler doctor external-metrics` does: it reads three APIServices and says who serves what."""

from __future__ import annotations

import json
from pathlib import Path

import typer
from rich.console import Console

from autoscaler.exit_codes import FINE, NOT_RIGHT, WRONG_USAGE
from autoscaler.external_metrics.group_owners import (
    API_SERVICES,
    API_SERVICES_PATH,
    GroupOwner,
    ServiceName,
    judge_owners,
    read_owner,
)
from autoscaler.finding import Finding, print_findings
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError


def doctor_external_metrics(
    kubeconfig: Path | None, context: str | None, service: str, as_json: bool, console: Console
) -> int:
    """Reports the owners of the metrics groups; 1 where something is not right, 2 where they cannot be read.

    `service` is our own Service as NAMESPACE/NAME. Nothing is changed.
    """
    namespace, _, name = service.partition("/")
    if not namespace or not name or "/" in name:
        return _refuse(f"--service {service}: NAMESPACE/NAME is wanted")
    try:
        owners = _read_owners(connect(str(kubeconfig) if kubeconfig else None, context))
    except CredentialsError as error:
        return _refuse(str(error))
    if isinstance(owners, ApiFailure):
        return _refuse(owners.message)
    findings = judge_owners(owners, ServiceName(namespace, name))
    if as_json:
        document = {"owners": {key: _who(owner) for key, owner in owners.items()}}
        typer.echo(json.dumps(document | {"findings": [each.to_document() for each in findings]}, indent=2))
    else:
        _print(owners, findings, console)
    return NOT_RIGHT if findings else FINE


def _read_owners(connection: ApiConnection) -> dict[str, GroupOwner | None] | ApiFailure:
    owners: dict[str, GroupOwner | None] = {}
    for name in API_SERVICES:
        answer = connection.get(f"{API_SERVICES_PATH}/{name}")
        if isinstance(answer, ApiFailure) and not isinstance(answer, NotFound):
            return answer
        owners[name] = None if isinstance(answer, ApiFailure) else read_owner(answer)
    return owners


def _who(owner: GroupOwner | None) -> str:
    if owner is None:
        return "nobody"
    return str(owner.service) if owner.service else "the API server itself"


def _print(owners: dict[str, GroupOwner | None], findings: tuple[Finding, ...], console: Console) -> None:
    for name, owner in owners.items():
        console.print(f"{name}: {_who(owner)}")
    print_findings(findings, console)


def _refuse(message: str) -> int:
    typer.echo(f"tokenscaler: {message}", err=True)
    return WRONG_USAGE
