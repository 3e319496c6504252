"""What do the manifests of a test's pools look like?"""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]


def pod_template(
    pool: str,
    *,
    loads_in: str,
    stops_in: str,
    accelerators: int = 1,
    capacity_type: str | None = None,
    node_pool: str | None = None,
    labels: Document | None = None,
) -> Document:
    """A pod of one container with so many GPUs, which becomes Ready after `loads_in` and goes after `stops_in`.

    With a `capacity_type` or a `node_pool` it runs on such nodes only. `labels` are its own, and in nobody's selector.
    """
    stated = {"karpenter.sh/capacity-type": capacity_type, "karpenter.sh/nodepool": node_pool}
    only_on = {label: value for label, value in stated.items() if value is not None}
    selector = {"nodeSelector": only_on} if only_on else {}
    return {
        "metadata": {
            "labels": {"app": pool} | (labels or {}),
            "annotations": {"loads-in": loads_in, "stops-in": stops_in},
        },
        "spec": selector
        | {
            "containers": [
                {
                    "name": "vllm",
                    "image": "vllm/vllm-openai:test",
                    "resources": {"limits": {"nvidia.com/gpu": str(accelerators)}},
                }
            ]
        },
    }


def deployment(
    namespace: str,
    name: str,
    replicas: int,
    *,
    loads_in: str = "0s",
    stops_in: str = "0s",
    strategy: Document | None = None,
    accelerators: int = 1,
    capacity_type: str | None = None,
    node_pool: str | None = None,
    labels: Document | None = None,
) -> Document:
    """A Deployment; kwok plays its pods."""
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(
                name,
                loads_in=loads_in,
                stops_in=stops_in,
                accelerators=accelerators,
                capacity_type=capacity_type,
                node_pool=node_pool,
                labels=labels,
            ),
        },
    }
    if strategy is not None:
        document["spec"]["strategy"] = strategy
    return document


def stateful_set(namespace: str, name: str, replicas: int, *, loads_in: str = "0s") -> Document:
    """A StatefulSet that starts its pods in parallel."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name, loads_in=loads_in, stops_in="0s"),
        },
    }


def leader_worker_set(namespace: str, name: str, groups: int, size: int) -> Document:
    """A LeaderWorkerSet of the test's own minimal definition; see `play_leader_worker_set` for its pods."""
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": groups, "leaderWorkerTemplate": {"size": size}},
    }


def leader_worker_pods(document: Document) -> list[Document]:
    """The pods that the operator would make: `size` a group, named `<set>-<group>` and `<set>-<group>-<worker>`."""
    metadata, spec = document["metadata"], document["spec"]
    set_name, pods = metadata["name"], []
    for group in range(spec["replicas"]):
        for worker in range(spec["leaderWorkerTemplate"]["size"]):
            template = pod_template(set_name, loads_in="0s", stops_in="0s")
            labels = {
                "leaderworkerset.sigs.k8s.io/name": set_name,
                "leaderworkerset.sigs.k8s.io/group-index": str(group),
                "leaderworkerset.sigs.k8s.io/worker-index": str(worker),
            }
            pod_name = f"{set_name}-{group}" + (f"-{worker}" if worker else "")
            template["metadata"] |= {"name": pod_name, "labels": template["metadata"]["labels"] | labels}
            pods.append({"apiVersion": "v1", "kind": "Pod"} | template)
    return pods


def inference_scaler(
    namespace: str, name: str, spec: Document, *, kind: str = "Deployment", target: str | None = None
) -> Document:
    """An InferenceScaler of the vLLM engine for a target of the same name, unless another is given."""
    api_version = "leaderworkerset.x-k8s.io/v1" if kind == "LeaderWorkerSet" else "apps/v1"
    reference = {"apiVersion": api_version, "kind": kind, "name": target or name}
    return {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "InferenceScaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"scaleTargetRef": reference, "engine": "vllm"} | spec,
    }
