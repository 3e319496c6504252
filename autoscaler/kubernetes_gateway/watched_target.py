"""What is kept of an object that can be scaled: its count, which pods are its own, and who last wrote the count."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from autoscaler.api.accelerators import accelerators_of_template
from autoscaler.api.document import rfc3339_seconds
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests, requests_of_template
from autoscaler.api.replica_template import template_of
from autoscaler.kubernetes_gateway.label_selector import (
    LabelSelector,
    Requirement,
    selector_from_object,
    selector_from_text,
)
from autoscaler.kubernetes_gateway.watched_objects import group_of

Document = dict[str, Any]

GROUP_LABEL = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX_LABEL = "leaderworkerset.sigs.k8s.io/group-index"


@dataclass(frozen=True, slots=True)
class TargetScale:
    """What the scale subresource says, or would say."""

    spec_replicas: int
    status_replicas: int
    selector: LabelSelector | None
    pods_per_replica: int = 1
    is_paused: bool = False
    is_rolling_out: bool = False


@dataclass(frozen=True, slots=True)
class WatchedTarget:
    """An object that can be scaled; `scale` is None where its kind is not known and must be asked at `/scale`."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    created_at_seconds: float
    is_deleting: bool
    owners: tuple[str, ...] | None  # field managers that own the count; None: the server notes no owners at all
    scale: TargetScale | None
    accelerators_per_replica: int | None  # by its pod template; None: it has none, or names no accelerators
    requests: PodRequests = NO_REQUESTS  # of one pod, where a pod is a replica
    template: str | None = None  # identifies what a replica is made of; None: it has no pod template


def target_reduction(api_version: str, kind: str) -> Callable[[Document], WatchedTarget | None]:
    """The function that reduces objects of this kind."""
    read_scale = SCALE_READERS.get((group_of(api_version), kind))

    def reduce(document: Document) -> WatchedTarget:
        metadata = document["metadata"]
        return WatchedTarget(
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
            uid=metadata.get("uid") or "",
            resource_version=metadata["resourceVersion"],
            created_at_seconds=rfc3339_seconds(metadata.get("creationTimestamp")) or 0.0,
            is_deleting=metadata.get("deletionTimestamp") is not None,
            owners=_owners(metadata.get("managedFields")),
            scale=read_scale(document) if read_scale else None,
            accelerators_per_replica=accelerators_of_template(document),
            requests=requests_of_template(document),
            template=template_of(document),
        )

    return reduce


def scale_from_subresource(document: Document) -> TargetScale:
    """What a Scale object says, for kinds that are not read directly."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return TargetScale(
        spec_replicas=int(spec.get("replicas") or 0),
        status_replicas=int(status.get("replicas") or 0),
        selector=selector_from_text(str(status.get("selector") or "")),
    )


def _owners(managed_fields: Any) -> tuple[str, ...] | None:
    if not managed_fields:
        return None
    return tuple(
        str(entry.get("manager") or "unknown")
        for entry in managed_fields
        # A custom resource may keep its count under another name: what is written through /scale is the count.
        if entry.get("subresource") == "scale" or "f:replicas" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    )


def _replicas(section: Mapping[str, Any], default: int) -> int:
    value = section.get("replicas")
    return default if value is None else int(value)


def _deployment_scale(document: Document) -> TargetScale:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    replicas = _replicas(status, 0)
    return TargetScale(
        spec_replicas=_replicas(spec, 1),
        status_replicas=replicas,
        selector=selector_from_object(spec.get("selector")),
        is_paused=bool(spec.get("paused")),
        # Pods of an older template are left: a plain change of the count leaves none.
        is_rolling_out=replicas > int(status.get("updatedReplicas") or 0),
    )


def _stateful_set_scale(document: Document) -> TargetScale:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    strategy = spec.get("updateStrategy") or {}
    # Below the partition old pods are meant to stay (a canary); with OnDelete they stay until somebody deletes them.
    partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
    replicas, updated = _replicas(status, 0), int(status.get("updatedReplicas") or 0)
    is_changing = status.get("updateRevision") != status.get("currentRevision")
    return TargetScale(
        spec_replicas=_replicas(spec, 1),
        status_replicas=replicas,
        selector=selector_from_object(spec.get("selector")),
        is_rolling_out=is_changing and strategy.get("type") != "OnDelete" and updated < replicas - partition,
    )


def _replica_set_scale(document: Document) -> TargetScale:
    spec, status = document.get("spec") or {}, document.get("status") or {}
    return TargetScale(_replicas(spec, 1), _replicas(status, 0), selector_from_object(spec.get("selector")))


def _leader_worker_set_scale(document: Document) -> TargetScale:
    """A replica is a group of `size` pods. The set's own selector names only the leaders, so all are sought by name."""
    spec, status = document.get("spec") or {}, document.get("status") or {}
    template = spec.get("leaderWorkerTemplate") or {}
    return TargetScale(
        spec_replicas=_replicas(spec, 1),
        status_replicas=_replicas(status, 0),
        selector=LabelSelector((Requirement(GROUP_LABEL, "In", (document["metadata"]["name"],)),)),
        pods_per_replica=max(1, int(template.get("size") or 1)),
        is_rolling_out=any(
            condition.get("type") == "UpdateInProgress" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        ),
    )


SCALE_READERS: dict[tuple[str, str], Callable[[Document], TargetScale]] = {
    ("apps", "Deployment"): _deployment_scale,
    ("apps", "StatefulSet"): _stateful_set_scale,
    ("apps", "ReplicaSet"): _replica_set_scale,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set_scale,
}
"""Kinds whose count is read from the watched object itself. Any other kind is asked at its scale subresource."""
