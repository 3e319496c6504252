"""NodePools of the test's Karpenter, whose nodes are played by kwok and boot in a second."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.kubernetes_api import KubernetesApi

Document = dict[str, Any]

INSTANCE_TYPES = Path(__file__).parent / "karpenter" / "instance-types.json"
PATH = "/apis/karpenter.sh/v1/nodepools"
NODE_CLASSES_PATH = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"


def node_class(name: str) -> Document:
    """What a NodePool's nodes are made by; without it the NodePool makes none."""
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": name},
        "spec": {"nodeRegistrationDelay": "1s"},
    }


NODE_CLASS = node_class("default")


def node_pool(name: str, capacity_type: str, *, limits: Document, weight: int, node_class: str = "default") -> Document:
    """A NodePool of nodes with 8 accelerators; an empty node goes after some seconds."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "weight": weight,
            "limits": limits,
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": "3s",
                "budgets": [{"nodes": "100%"}],
            },
            "template": {
                "spec": {
                    "expireAfter": "Never",
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": node_class},
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity_type]},
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["gpu-8x"]},
                    ],
                }
            },
        },
    }


def limits_of(control_plane: ControlPlane, name: str) -> Document:
    """The limits of a NodePool now."""
    return dict(control_plane.api.get(f"{PATH}/{name}")["spec"].get("limits") or {})


def nodes_of(control_plane: ControlPlane, name: str) -> list[str]:
    """The nodes of a NodePool now, those that are being deleted too."""
    nodes = control_plane.api.items("/api/v1/nodes")
    labelled = [node for node in nodes if node["metadata"].get("labels", {}).get("karpenter.sh/nodepool") == name]
    return [node["metadata"]["name"] for node in labelled]


def kinds_of_nodes(api: KubernetesApi) -> tuple[int, int]:
    """The nodes on demand and on spot that are there and not being deleted."""
    nodes = api.items("/api/v1/nodes")
    kinds = [
        node["metadata"]["labels"].get("karpenter.sh/capacity-type")
        for node in nodes
        if "deletionTimestamp" not in node["metadata"]
    ]
    return kinds.count("on-demand"), kinds.count("spot")


def refusals(control_plane: ControlPlane, namespace: str) -> list[str]:
    """What Karpenter has said about pods that no NodePool may make a node for."""
    events = control_plane.api.items(f"/api/v1/namespaces/{namespace}/events")
    return [event["message"] for event in events if "exceed limits" in (event.get("message") or "")]


def given_up(node_claim: str) -> Document:
    """The event by which Karpenter says that there was no capacity for a node."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {"name": "given-up"},
        "involvedObject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": node_claim},
        "type": "Warning",
        "reason": "InsufficientCapacityError",
        "message": "tried in vain",
        "lastTimestamp": now,
    }
