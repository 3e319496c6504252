"""What is kept of each watched object: the fields that are used, and nothing else.

A pod as sent is 5 KB and more; of 10,000 of them some 20 MB are kept in this form. The functions take what the
API server sent and give None for an object that need not be remembered.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autoscaler.api.document import rfc3339_seconds
from autoscaler.api.held_budgets import ANNOTATION as HELD_BUDGETS
from autoscaler.api.karpenter_duration import duration_seconds
from autoscaler.api.node_shape import amount_of
from autoscaler.api.node_template import (
    ANY_NODE,
    NODE_POOL_LABEL,
    NodeTemplate,
    PodPlacement,
    read_node_template,
    read_placement,
)
from autoscaler.api.pod_requests import PodRequests, requests_of_pod
from autoscaler.observers.node_pools import DisruptionSeen
from policies.latency_class import ConsolidationSettings

Document = dict[str, Any]

# Labels with a value of its own for every pod: nobody selects by them, and an index of them would be all overhead.
_UNINDEXED_LABELS = frozenset(
    {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index"}
)
CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
_LIMITED_RESOURCES = frozenset({"nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"})
DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
SERVING_LABEL = "tokenscaler.io/serving"
"""Of a pod that may be taken out of the router: Services select by "true"; "false" while it is out."""
DRAINED_AT_ANNOTATION = "tokenscaler.io/drained-at"
DO_NOT_DISRUPT_ANNOTATION = "karpenter.sh/do-not-disrupt"
PROTECTED_ANNOTATION = "tokenscaler.io/protected-while-loading"
"""Says that do-not-disrupt is ours, so that it is ours to take away."""
KEDA_PAUSED_ANNOTATION = "autoscaling.keda.sh/paused"


@dataclass(frozen=True, slots=True)
class WatchedPod:
    """A pod that has not finished. Times are unix seconds by the API server's clock."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    created_at_seconds: float
    is_ready: bool
    ready_changed_at_seconds: float | None  # last change of the Ready condition; None: the kubelet has not set it
    unschedulable_since_seconds: float | None
    is_terminating: bool
    scheduled_at_seconds: float | None = None  # when it got its node
    started_at_seconds: float | None = None  # when the last of its containers was started; None: not all run
    has_restarted: bool = False  # a container runs that is not its first
    owner: tuple[str, str] | None = None  # (kind, name) of its controller; None: it has none
    deletion_cost: str | None = None  # as annotated for its ReplicaSet; None: it is not
    node: str | None = None  # None: it has none yet
    drained_at_seconds: float | None = None  # since when we have had it out of the router; None: it is not
    is_protected: bool = False  # by our do-not-disrupt
    may_be_disrupted: bool = True  # it has no do-not-disrupt, whoever set it
    gives_way: bool = False  # its priority is negative: it only holds a place

    @property
    def path(self) -> str:
        """Where the API server has it."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"


@dataclass(frozen=True, slots=True)
class AutoscalerClaim:
    """An HPA or a ScaledObject that steers a target of its own namespace."""

    who: str
    namespace: str
    group: str  # of the target; empty: not said
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class WatchedNode:
    """A node and the accelerators that pods may use on it."""

    name: str
    node_pool: str | None
    capacity_type: str | None
    accelerators: Mapping[str, int]
    is_ready: bool
    is_cordoned: bool
    is_deleting: bool = False
    capacity: Mapping[str, str] = field(default_factory=dict)  # of a node of a NodePool: what limits are compared with
    taints: tuple[str, ...] = ()  # their keys
    allocatable: Mapping[str, str] = field(default_factory=dict)  # what of the capacity pods may have


@dataclass(frozen=True, slots=True)
class WatchedNodePool:
    """A Karpenter NodePool: its limits as quantities, and who wrote them."""

    name: str
    limits: Mapping[str, str]
    nodes: int  # by its own count, those that have not registered yet included
    problem: str | None  # why it makes no nodes; None: it is ready
    limit_managers: tuple[str, ...]  # field managers that own a limit, the one that wrote last at the end
    disruption: DisruptionSeen | None = None
    is_judged: bool = True  # Karpenter has looked at the spec that stands there now
    template: NodeTemplate = ANY_NODE  # of its nodes


@dataclass(frozen=True, slots=True)
class WatchedDaemonSet:
    """A DaemonSet: what its pod takes of each node on which it may run."""

    requests: PodRequests
    placement: PodPlacement


def reduce_pod(document: Document) -> WatchedPod | None:
    """None for a pod that has finished: it serves nobody and holds no accelerator."""
    metadata, status = document["metadata"], document.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready, scheduled = conditions.get("Ready") or {}, conditions.get("PodScheduled") or {}
    scheduling_changed_at_seconds = rfc3339_seconds(scheduled.get("lastTransitionTime"))
    containers = status.get("containerStatuses") or ()
    annotations = metadata.get("annotations") or {}
    return WatchedPod(
        namespace=sys.intern(metadata.get("namespace") or ""),
        name=metadata["name"],
        labels={sys.intern(key): sys.intern(value) for key, value in (metadata.get("labels") or {}).items()},
        created_at_seconds=rfc3339_seconds(metadata.get("creationTimestamp")) or 0.0,
        is_ready=ready.get("status") == "True",
        ready_changed_at_seconds=rfc3339_seconds(ready.get("lastTransitionTime")),
        unschedulable_since_seconds=scheduling_changed_at_seconds if scheduled.get("status") == "False" else None,
        is_terminating=metadata.get("deletionTimestamp") is not None,
        scheduled_at_seconds=scheduling_changed_at_seconds if scheduled.get("status") == "True" else None,
        started_at_seconds=_started_at_seconds(containers),
        has_restarted=any(container.get("restartCount") for container in containers),
        owner=_controller(metadata.get("ownerReferences") or ()),
        deletion_cost=annotations.get(DELETION_COST_ANNOTATION),
        node=_interned((document.get("spec") or {}).get("nodeName")),
        drained_at_seconds=_drained_at_seconds(metadata.get("labels") or {}, annotations),
        is_protected=PROTECTED_ANNOTATION in annotations,
        may_be_disrupted=DO_NOT_DISRUPT_ANNOTATION not in annotations,
        gives_way=((document.get("spec") or {}).get("priority") or 0) < 0,
    )


def _drained_at_seconds(labels: Mapping[str, str], annotations: Mapping[str, str]) -> float | None:
    """Long ago where it is not to be read; None also for a pod that somebody else has taken out."""
    if labels.get(SERVING_LABEL) != "false" or DRAINED_AT_ANNOTATION not in annotations:
        return None
    return rfc3339_seconds(annotations[DRAINED_AT_ANNOTATION]) or 0.0


def _interned(name: Any) -> str | None:
    return sys.intern(str(name)) if name else None


def _controller(references: Iterable[Document]) -> tuple[str, str] | None:
    for reference in references:
        if reference.get("controller"):
            return sys.intern(str(reference.get("kind"))), sys.intern(str(reference.get("name")))
    return None


def _started_at_seconds(containers: Iterable[Document]) -> float | None:
    moments = []
    for container in containers:
        running = (container.get("state") or {}).get("running") or {}
        started_at_seconds = rfc3339_seconds(running.get("startedAt"))
        if started_at_seconds is None:
            return None
        moments.append(started_at_seconds)
    return max(moments, default=None)


def pod_index_keys(pod: WatchedPod) -> Iterable[Hashable]:
    """A pod is found by its namespace and any of its labels."""
    return ((pod.namespace, key, value) for key, value in pod.labels.items() if key not in _UNINDEXED_LABELS)


def reduce_horizontal_pod_autoscaler(document: Document) -> AutoscalerClaim | None:
    """What an HPA steers."""
    reference = document["spec"]["scaleTargetRef"]
    return _claim(document, "HorizontalPodAutoscaler", reference.get("apiVersion") or "", reference["kind"])


def reduce_scaled_object(document: Document) -> AutoscalerClaim | None:
    """What a KEDA ScaledObject steers; None for one that is paused at whatever count there is.

    One with the annotation `paused-replicas` still writes that count, so it steers.
    """
    annotations = document["metadata"].get("annotations") or {}
    if str(annotations.get(KEDA_PAUSED_ANNOTATION, "")).lower() == "true":
        return None
    reference = document["spec"]["scaleTargetRef"]
    # KEDA's own defaults for what is left out.
    return _claim(
        document, "ScaledObject", reference.get("apiVersion") or "apps/v1", reference.get("kind") or "Deployment"
    )


def _claim(document: Document, kind: str, target_api_version: str, target_kind: str) -> AutoscalerClaim:
    metadata = document["metadata"]
    namespace = metadata.get("namespace") or ""
    return AutoscalerClaim(
        who=f"{kind} {namespace}/{metadata['name']}",
        namespace=namespace,
        group=group_of(target_api_version),
        kind=target_kind,
        name=document["spec"]["scaleTargetRef"]["name"],
    )


def claim_index_keys(claim: AutoscalerClaim) -> Iterable[Hashable]:
    """A claim is found by the target it names."""
    return ((claim.namespace, claim.kind, claim.name),)


def reduce_node(document: Document) -> WatchedNode:
    """A node; every extended resource (one with a domain in its name) counts as an accelerator."""
    metadata, status = document["metadata"], document.get("status") or {}
    labels = metadata.get("labels") or {}
    allocatable = status.get("allocatable") or {}
    return WatchedNode(
        name=metadata["name"],
        node_pool=labels.get(NODE_POOL_LABEL),
        capacity_type=labels.get(CAPACITY_TYPE_LABEL),
        accelerators={name: int(count) for name, count in allocatable.items() if "/" in name and str(count).isdigit()},
        is_ready=any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in status.get("conditions") or ()
        ),
        is_cordoned=bool((document.get("spec") or {}).get("unschedulable")),
        is_deleting=metadata.get("deletionTimestamp") is not None,
        capacity=whole_capacity(status) if NODE_POOL_LABEL in labels else {},
        taints=tuple(sys.intern(str(taint.get("key"))) for taint in (document.get("spec") or {}).get("taints") or ()),
        allocatable=limited_resources(allocatable) if NODE_POOL_LABEL in labels else {},
    )


def whole_capacity(status: Mapping[str, Any]) -> Mapping[str, str]:
    """What a node brings: its capacity, and where a provider states less than pods may have (as kwok does) that."""
    capacity = dict(limited_resources(status.get("capacity") or {}))
    for key, allocatable in limited_resources(status.get("allocatable") or {}).items():
        if (amount_of(capacity.get(key, "0")) or 0) < (amount_of(allocatable) or 0):
            capacity[key] = allocatable
    return capacity


def limited_resources(capacity: Mapping[str, Any]) -> Mapping[str, str]:
    """Those by which NodePools are limited, as quantities."""
    return {key: sys.intern(str(amount)) for key, amount in capacity.items() if key in _LIMITED_RESOURCES}


def reduce_daemon_set(document: Document) -> WatchedDaemonSet:
    """A DaemonSet by its pod template."""
    pod = ((document.get("spec") or {}).get("template") or {}).get("spec") or {}
    return WatchedDaemonSet(requests_of_pod(pod), read_placement(pod))


def reduce_node_pool(document: Document) -> WatchedNodePool:
    """A NodePool of Karpenter, version 1 of its API."""
    status = document.get("status") or {}
    resources = status.get("resources") or {}
    counted = str(status.get("nodes", resources.get("nodes", 0)))
    return WatchedNodePool(
        name=document["metadata"]["name"],
        limits={key: str(amount) for key, amount in ((document.get("spec") or {}).get("limits") or {}).items()},
        nodes=int(counted) if counted.isdigit() else 0,
        problem=_not_ready_because(status.get("conditions") or ()),
        limit_managers=_limit_managers(document["metadata"].get("managedFields") or ()),
        disruption=_disruption(document),
        is_judged=_is_judged(document),
        template=read_node_template(document),
    )


def _is_judged(document: Document) -> bool:
    """Whether the newest spec has been judged by any condition; without conditions nobody can say that it was not."""
    conditions = (document.get("status") or {}).get("conditions") or ()
    judged = [int(condition.get("observedGeneration") or 0) for condition in conditions]
    return not judged or max(judged) >= int(document["metadata"].get("generation") or 0)


def _disruption(document: Document) -> DisruptionSeen:
    """With Karpenter's own defaults for what is left out."""
    spec, annotations = document.get("spec") or {}, document["metadata"].get("annotations") or {}
    disruption, node = spec.get("disruption") or {}, (spec.get("template") or {}).get("spec") or {}
    after = str(disruption.get("consolidateAfter", "0s"))
    return DisruptionSeen(
        ConsolidationSettings(
            sys.intern(str(disruption.get("consolidationPolicy", "WhenEmptyOrUnderutilized"))),
            duration_seconds(after),
            duration_seconds(str(node.get("expireAfter", "720h"))),
        ),
        consolidate_after=after,
        budgets=tuple(disruption.get("budgets") or ()),
        held=annotations.get(HELD_BUDGETS),
        has_annotations=bool(annotations),
    )


def _not_ready_because(conditions: Iterable[Document]) -> str | None:
    """What the Ready condition says where it is False; None while it is judged anew, as after each patch."""
    for condition in conditions:
        if condition.get("type") == "Ready" and condition.get("status") == "False":
            return str(condition.get("message") or condition.get("reason") or "not Ready")
    return None


def _limit_managers(managed_fields: Iterable[Document]) -> tuple[str, ...]:
    owners = [
        (str(entry.get("time") or ""), str(entry.get("manager") or "unknown"))
        for entry in managed_fields
        if "f:limits" in ((entry.get("fieldsV1") or {}).get("f:spec") or {})
    ]
    return tuple(manager for _, manager in sorted(owners))


def reduce_own_object(document: Document) -> Document:
    """One of our own objects, whole but for `managedFields` and the annotation in which kubectl keeps a copy."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "managedFields"}
    annotations = dict(metadata.get("annotations") or {})
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return document | {"metadata": metadata | {"annotations": annotations}}


def group_of(api_version: str) -> str:
    """The API group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]
