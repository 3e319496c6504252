"""What do the documents of the API look like on the wire? JSON, as kube-apiserver itself would answer.

Two forms of discovery: the plain one, and the aggregated one that newer clients and the aggregator ask for first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from autoscaler.api.conditions import rfc3339
from autoscaler.api.quantity import quantity
from autoscaler.external_metrics.values import MetricValue

JSON = "application/json"
AGGREGATED_VERSIONS = ("v2", "v2beta1")

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One resource as discovery lists it."""

    name: str
    kind: str
    is_namespaced: bool = True
    verbs: tuple[str, ...] = ("get",)


@dataclass(frozen=True, slots=True)
class ApiGroup:
    """A group that this server serves; the first version is the preferred one."""

    name: str
    versions: tuple[str, ...]
    resources: tuple[ApiResource, ...]


# One placeholder for all metrics: nobody looks a metric up here, and a long list would burden every discovery client.
EXTERNAL_METRICS = ApiGroup(
    "external.metrics.k8s.io", ("v1beta1",), (ApiResource("externalmetrics", "ExternalMetricValueList"),)
)


def encode(document: Document) -> bytes:
    """The document as JSON."""
    return orjson.dumps(document)


def value_list(values: Sequence[MetricValue]) -> Document:
    """An ExternalMetricValueList; whoever reads it as one number adds the items up."""
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": "external.metrics.k8s.io/v1beta1",
        "metadata": {},
        "items": [
            {
                "metricName": value.name,
                "metricLabels": dict(value.labels),
                "timestamp": rfc3339(value.timestamp_seconds),
                "value": quantity(value.milli_value),
            }
            for value in values
        ],
    }


def status(code: int, reason: str, message: str) -> Document:
    """A metav1.Status of a failure."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def api_group_list(groups: Sequence[ApiGroup]) -> Document:
    """Answer to GET /apis in the plain form."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in groups]}


def api_group(group: ApiGroup) -> Document:
    """Answer to GET /apis/GROUP."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(group)}


def api_resource_list(group: ApiGroup, version: str) -> Document:
    """Answer to GET /apis/GROUP/VERSION. Never without resources: old clients take that for a failure."""
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group.name}/{version}",
        "resources": [
            {
                "name": resource.name,
                "singularName": "",
                "namespaced": resource.is_namespaced,
                "kind": resource.kind,
                "verbs": list(resource.verbs),
            }
            for resource in group.resources
        ],
    }


def aggregated_discovery(groups: Sequence[ApiGroup], version: str) -> Document:
    """Answer to GET /apis in the aggregated form; `version` is one of AGGREGATED_VERSIONS."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group.name, "creationTimestamp": None},
                "versions": [
                    {
                        "version": served,
                        "resources": _discovered_all(group, served),
                        "freshness": "Current",
                    }
                    for served in group.versions
                ],
            }
            for group in groups
        ],
    }


def aggregated_media_type(version: str) -> str:
    """The content type of the aggregated form: the aggregator takes exactly this one."""
    return f"{JSON};g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def wanted_aggregated_version(accept: str) -> str | None:
    """The version of the aggregated form that a client would rather have than plain JSON; None: plain JSON.

    Protobuf is often named first and is passed over: JSON is answered, which every client names as well.
    """
    for media_range in accept.split(","):
        media_type, *parameters = (part.strip() for part in media_range.split(";"))
        if media_type != JSON:
            continue
        named = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if "as" not in named:
            return None
        if named["as"] == "APIGroupDiscoveryList" and named.get("v") in AGGREGATED_VERSIONS:
            return named["v"]
    return None


def entity_tag(content: bytes) -> str:
    """The ETag of a document: the same content has the same one in every replica."""
    return f'"{hashlib.sha256(content).hexdigest()[:32].upper()}"'


def _group(group: ApiGroup) -> Document:
    versions = [{"groupVersion": f"{group.name}/{version}", "version": version} for version in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _discovered_all(group: ApiGroup, version: str) -> list[Document]:
    """The resources; `a/b` is a subresource of `a`, which need not be a resource by itself."""
    found: dict[str, Document] = {}
    for resource in group.resources:
        parent, _, subresource = resource.name.partition("/")
        if not subresource:
            found[parent] = {**_discovered(group, version, resource), "resource": parent, "singularResource": ""}
            continue
        scope = "Namespaced" if resource.is_namespaced else "Cluster"
        holder = found.setdefault(
            parent, {"resource": parent, "responseKind": None, "scope": scope, "singularResource": "", "verbs": []}
        )
        discovered = _discovered(group, version, resource)
        discovered.pop("scope")
        holder.setdefault("subresources", []).append({"subresource": subresource, **discovered})
    return list(found.values())


def _discovered(group: ApiGroup, version: str, resource: ApiResource) -> Document:
    return {
        "responseKind": {"group": group.name, "version": version, "kind": resource.kind},
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "verbs": list(resource.verbs),
    }
