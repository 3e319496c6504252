"""What `tokenscaler doctor nodepools` does: it reads AcceleratorPools and what they rest on, and says what is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.pool_bounds import DOLLARS_PATTERN, micro_dollars
from autoscaler.exit_codes import FINE, NOT_RIGHT, NOTHING_THERE, WRONG_USAGE
from autoscaler.finding import Finding, print_findings
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, NotFound
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.credentials import CredentialsError
from autoscaler.node_pool_checks.checks import judge
from autoscaler.node_pool_checks.limits import nodes_by_key, shape_of
from autoscaler.node_pool_checks.survey import survey_cluster
from autoscaler.node_pool_checks.survey_types import Survey, SurveyedNodePool, Version


@dataclass(frozen=True, slots=True)
class Asked:
    """What doctor is told of the installation: the controller's ServiceAccount as NAMESPACE/NAME, and its bounds."""

    account: str
    quota_cpus: int | None = None
    ceiling_dollars_per_hour: str | None = None


def doctor_node_pools(
    kubeconfig: Path | None, context: str | None, asked: Asked, as_json: bool, console: Console
) -> int:
    """Reports on all AcceleratorPools: 0 all is well, 1 something is not right, 2 they cannot be read.

    3 where there is nothing to check: no AcceleratorPool, or no Karpenter. Nothing is changed.
    """
    namespace, _, name = asked.account.partition("/")
    if not namespace or not name or "/" in name:
        return _refuse(f"--service-account {asked.account}: NAMESPACE/NAME is wanted")
    dollars = asked.ceiling_dollars_per_hour
    if dollars is not None and re.fullmatch(DOLLARS_PATTERN, dollars) is None:
        return _refuse(f"--ceiling-dollars-per-hour {dollars}: an amount such as 3000 is wanted")
    try:
        connection = connect(str(kubeconfig) if kubeconfig else None, context)
    except CredentialsError as error:
        return _refuse(str(error))
    ceiling_per_hour = None if dollars is None else micro_dollars(dollars)
    survey = survey_cluster(connection, asked.account, asked.quota_cpus, ceiling_per_hour)
    if isinstance(survey, NotFound):
        typer.echo(f"tokenscaler: there are no AcceleratorPools: {survey.message}; apply deploy/crd first", err=True)
        return NOTHING_THERE
    if isinstance(survey, ApiFailure):
        return _refuse(survey.message)
    findings = judge(survey)
    if as_json:
        document = _facts(survey) | {"findings": [each.to_document() for each in findings]}
        typer.echo(json.dumps(document, indent=2))
    else:
        _print(survey, findings, console)
    if not (survey.pools or survey.refused) or not survey.karpenter.serves_v1:
        return NOTHING_THERE
    return NOT_RIGHT if findings else FINE


def _facts(survey: Survey) -> dict[str, Any]:
    karpenter = survey.karpenter
    return {
        "kubernetes": _words(survey.kubernetes),
        "karpenter": {
            "version": _words(karpenter.version),
            "capacityBuffers": karpenter.has_capacity_buffers,
            "staticReplicas": karpenter.has_static_replicas,
        },
        "nodePools": [
            {"acceleratorPool": pool.name, "nodePool": node_pool.name, "wholeNodesByLimit": _nodes(pool, node_pool)}
            for pool, node_pool in survey.pairs()
        ],
    }


def _nodes(pool: AcceleratorPool, node_pool: SurveyedNodePool) -> dict[str, int] | None:
    shape = shape_of(pool, node_pool)
    return None if shape is None else nodes_by_key(node_pool, shape)


def _print(survey: Survey, findings: tuple[Finding, ...], console: Console) -> None:
    karpenter = survey.karpenter
    console.print(
        f"Kubernetes {_words(survey.kubernetes)}, Karpenter {_words(karpenter.version)}, "
        f"CapacityBuffer {_there(karpenter.has_capacity_buffers)}, "
        f"static replicas {_there(karpenter.has_static_replicas)}"
    )
    if not survey.pools and not survey.refused:
        console.print("no AcceleratorPool: nothing to check")
    if not survey.karpenter.serves_v1:
        console.print("Karpenter is not installed (no karpenter.sh/v1): there are no NodePools to check")
    for pool, node_pool in survey.pairs():
        nodes = _nodes(pool, node_pool)
        if nodes is None:
            allowed = "nobody knows the shape of a node yet"
        elif nodes:
            allowed = f"{min(nodes.values())} nodes ({', '.join(f'{key}: {count}' for key, count in nodes.items())})"
        else:
            allowed = "nothing limits it"
        console.print(f"AcceleratorPool {pool.name}, NodePool {node_pool.name}: {allowed}")
    print_findings(findings, console)


def _words(version: Version | None) -> str:
    return "not known" if version is None else ".".join(map(str, version))


def _there(is_there: bool) -> str:
    return "served" if is_there else "not served"


def _refuse(message: str) -> int:
    typer.echo(f"tokenscaler: {message}", err=True)
    return WRONG_USAGE
