"""Which replica does a pod belong to, and which pods belong to a target, where its selector matches others' too?"""

from __future__ import annotations

from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from autoscaler.kubernetes_gateway.watched_target import GROUP_INDEX_LABEL, GROUP_LABEL

RAY_CLUSTER_LABEL = "ray.io/cluster"
"""KubeRay: the Ray cluster that a head or a worker belongs to."""
RAY_REPLICA_LABEL = "ray.io/worker-group-replica-name"
"""KubeRay: the workers on several hosts that make up one replica of a worker group."""
TEMPLATE_HASH_LABEL = "pod-template-hash"

# Their replicas have numbers, and a smaller count takes the highest ones away, whatever state they are in.
NUMBERED_KINDS = frozenset({"StatefulSet", "LeaderWorkerSet"})


def replica_of(pod: WatchedPod, target_kind: str) -> str:
    """The replica's name: its LeaderWorkerSet group, its Ray cluster or multi-host worker, else the pod itself.

    A target that is a Ray cluster itself has workers as replicas; of any other, a whole Ray cluster is one replica.
    """
    labels = pod.labels
    group, index = labels.get(GROUP_LABEL), labels.get(GROUP_INDEX_LABEL)
    if group is not None and index is not None:
        return f"{group}-{index}"
    cluster = labels.get(RAY_CLUSTER_LABEL)
    if cluster is None:
        return pod.name
    if target_kind == "RayCluster":
        return labels.get(RAY_REPLICA_LABEL, pod.name)
    return cluster


def number_of(replica: str) -> int | None:
    """The number at the end of the name of a numbered kind's replica; None where there is none."""
    digits = replica.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def belongs_to(pod: WatchedPod, kind: str, name: str) -> bool | None:
    """Whether the pod is one of this target's own, by its owner; None where that cannot be told.

    A Deployment's pods are owned by ReplicaSets that are called after it and the hash of their template.
    """
    if kind == "LeaderWorkerSet":
        return pod.labels.get(GROUP_LABEL) == name
    if pod.owner is None:
        return None
    owner_kind, owner_name = pod.owner
    if kind in ("StatefulSet", "ReplicaSet"):
        return (owner_kind, owner_name) == (kind, name)
    if kind == "Deployment":
        if owner_kind != "ReplicaSet":
            return False
        template_hash = pod.labels.get(TEMPLATE_HASH_LABEL)
        return None if template_hash is None else owner_name == f"{name}-{template_hash}"
    return None
