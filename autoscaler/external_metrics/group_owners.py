"""Who serves the two metrics API groups of a cluster, and what follows from it for us?

A cluster has one provider of each group version: the name of its APIService is fixed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.finding import Finding

EXTERNAL_METRICS = "v1beta1.external.metrics.k8s.io"
CUSTOM_METRICS = ("v1beta2.custom.metrics.k8s.io", "v1beta1.custom.metrics.k8s.io")
API_SERVICES = (EXTERNAL_METRICS, *CUSTOM_METRICS)
API_SERVICES_PATH = "/apis/apiregistration.k8s.io/v1/apiservices"

# Seen on Kubernetes 1.37 for as long as one group cannot be discovered.
_BROKEN_DISCOVERY = (
    "its metrics cannot be read, namespaces that are deleted stay Terminating (NamespaceDeletionDiscoveryFailure), and "
    "kubectl prints errors of discovery"
)


@dataclass(frozen=True, slots=True)
class ServiceName:
    """A Service by namespace and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class GroupOwner:
    """Who serves a group version: a Service, the API server itself (`service` None), and whether it answers."""

    api_service: str
    service: ServiceName | None
    port: int
    is_available: bool
    problem: str  # why it is not available; empty where it is


def read_owner(document: Mapping[str, Any]) -> GroupOwner:
    """The owner that an APIService names. Without an Available condition it is not available yet."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    service = spec.get("service")
    conditions = status.get("conditions") or ()
    available = next((each for each in conditions if each.get("type") == "Available"), None)
    if available is None:
        problem = "not looked at by the API server yet"
    else:
        problem = f"{available.get('reason', '')}: {available.get('message', '')}".strip(": ")
    is_available = available is not None and available.get("status") == "True"
    return GroupOwner(
        str((document.get("metadata") or {}).get("name", "")),
        None if service is None else ServiceName(str(service.get("namespace", "")), str(service.get("name", ""))),
        443 if service is None else int(service.get("port") or 443),
        is_available,
        "" if is_available else problem,
    )


def judge_owners(owners: Mapping[str, GroupOwner | None], ours: ServiceName) -> tuple[Finding, ...]:
    """What is not right with the owners by APIService name (None: nobody), where `ours` is our own Service.

    A foreign owner of external metrics is as it should be where we serve custom metrics instead.
    """
    findings: list[Finding] = []
    external = owners.get(EXTERNAL_METRICS)
    is_beside_it = any((owner := owners.get(name)) is not None and owner.service == ours for name in CUSTOM_METRICS)
    if external is not None and external.service != ours and not is_beside_it:
        findings.append(_foreign(external, owners, ours))
    findings += [_unavailable(owner, ours) for owner in owners.values() if owner is not None and owner.problem]
    return tuple(findings)


def _foreign(owner: GroupOwner, owners: Mapping[str, GroupOwner | None], ours: ServiceName) -> Finding:
    service = owner.service
    if service is None:
        address, value = "https://SERVICE.NAMESPACE.svc", "none (served by the API server itself)"
    else:
        address, value = f"https://{service.name}.{service.namespace}.svc:{owner.port}", str(service)
    return Finding(
        object=f"APIService {owner.api_service}",
        field="spec.service",
        value=value,
        consequence=(
            "every HPA's External metrics are answered by it: it does not know ours, and if our APIService is applied "
            "over it, the metrics that it serves today are gone"
        ),
        fix=(
            f"take the group over and pass on what we do not know: `--forward-to {address}` first, our APIService "
            "after it (deploy/other-providers.md)"
        ),
        other_fixes=(_object_metrics(owners, ours), *_by_keda(service)),
    )


def _by_keda(service: ServiceName | None) -> tuple[str, ...]:
    if service is None or "keda" not in service.name:
        return ()
    return ("let KEDA go on writing the counts and ask us: `--keda-port` (deploy/overlays/keda-external-scaler)",)


def _object_metrics(owners: Mapping[str, GroupOwner | None], ours: ServiceName) -> str:
    foreign = [owner for name in CUSTOM_METRICS if (owner := owners.get(name)) is not None and owner.service != ours]
    way = (
        "leave the group to it, and read the same values as Object metrics of the InferenceScaler from "
        "custom.metrics.k8s.io"
    )
    if foreign:
        return (
            f"{way}: not here, as {' and '.join(f'{each.api_service} is served by {each.service}' for each in foreign)}"
        )
    return f"{way}, which is free (deploy/overlays/custom-metrics)"


def _unavailable(owner: GroupOwner, ours: ServiceName) -> Finding:
    if owner.service == ours:
        way = f"bring the pods of Service {ours} back, or remove us: `kubectl delete apiservice {owner.api_service}`"
    else:
        way = (
            f"repair {owner.service}, or remove the group where nobody needs it: "
            f"`kubectl delete apiservice {owner.api_service}`"
        )
    return Finding(
        object=f"APIService {owner.api_service}",
        field="status.conditions[Available]",
        value=f"False ({owner.problem})",
        consequence=_BROKEN_DISCOVERY,
        fix=way,
    )
