"""On a real Karpenter: a node is kept ready by a CapacityBuffer, and limits hold what DaemonSets take of nodes too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import CRD_DIRECTORY, StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_pools import INSTANCE_TYPES, NODE_CLASS, limits_of, node_pool, nodes_of, refusals
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEPLOY = Path(__file__).parents[2] / "deploy"
POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"


@pytest.fixture(scope="module")
def karpenter_plane() -> Iterator[ControlPlane]:
    with ControlPlane(karpenter_instance_types=INSTANCE_TYPES) as started:
        started.apply(CRD_DIRECTORY)
        started.apply(NODE_CLASS)
        started.apply(node_pool("od", "on-demand", limits={"nvidia.com/gpu": "16"}, weight=10))
        started.apply(node_pool("shared", "on-demand", limits={"nvidia.com/gpu": "16", "cpu": "384"}, weight=1))
        yield started


def test_a_node_is_kept_ready_handed_over_and_let_go(karpenter_plane, start_fleet, start_controller) -> None:
    plane = karpenter_plane
    fleet, account = _buffered_fleet(plane, start_fleet, start_controller)

    wait_until(lambda: len(nodes_of(plane, "od")) == 2, "a node beside the replica's", 90)
    wait_until(lambda: _condition(plane).get("status") == "True", "the status says that it is held", 30)
    assert "1 node held ready by CapacityBuffer" in _condition(plane)["message"]
    assert len(fleet.pods()) == 1, "nothing runs there"
    warm = set(nodes_of(plane, "od"))

    fleet.set_load(PoolLoad(running=2, waiting=8))
    fleet.wait_ready(2, timeout_seconds=90)
    assert {pod["spec"]["nodeName"] for pod in fleet.pods()} == warm, "the node that was ready"

    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", '{"spec":{"prewarm":{"method":"Replicas"}}}')
    wait_until(lambda: _buffers(plane, fleet) == [], "the buffer is deleted", 60)
    wait_until(lambda: len(nodes_of(plane, "od")) == 2, "the node to spare goes", 120)
    refused = {(each.verb, each.resource) for each in plane.audit_events() if each.user == account and each.code == 403}
    assert refused == set(), "the shipped roles are enough"


def test_limits_hold_the_nodes_that_replicas_take_beside_daemon_sets(
    karpenter_plane, start_fleet, start_controller
) -> None:
    """By accelerators four replicas share a node; beside a DaemonSet of 60 CPUs two of 45 do."""
    plane = karpenter_plane
    plane.apply(_daemon_set("shared", cpu="60"))
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=2)
    patch = {"nodeSelector": {"karpenter.sh/nodepool": "shared"}, "containers": [_asking("vllm", "45")]}
    plane.kubectl(
        "patch", "deployment", "vllm", "-n", fleet.namespace, "-p", json.dumps({"spec": {"template": {"spec": patch}}})
    )
    spec = {"mode": "Manage", "nodePools": {"onDemand": "shared"}, "nodeShape": {"accelerators": 8, "cpu": 192}}
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "shared"}}
    plane.api.create(POOL_PATH, pool | {"spec": spec})
    fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": "shared"}})
    fleet.set_load(PoolLoad(running=4, waiting=16))
    kubeconfig = plane.create_service_account(fleet.namespace, "shipped", _shipped_rules("shared"))
    start_controller(fleet, kubeconfig=kubeconfig)

    fleet.wait_ready(4, timeout_seconds=120)
    wait_until(lambda: limits_of(plane, "shared") == {"nvidia.com/gpu": "24", "cpu": "576"}, "two and one to spare", 60)
    assert len(nodes_of(plane, "shared")) == 2, "as Karpenter packs them"
    assert refusals(plane, fleet.namespace) == []


def _daemon_set(node_pool: str, cpu: str) -> dict[str, Any]:
    pod = {
        "nodeSelector": {"karpenter.sh/nodepool": node_pool},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_asking("agent", cpu) | {"image": "agent"}],
    }
    labels = {"matchLabels": {"app": "agent"}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": pod}
    metadata = {"name": "agent", "namespace": "default"}
    spec = {"selector": labels, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def _asking(container: str, cpu: str) -> dict[str, Any]:
    return {"name": container, "resources": {"requests": {"cpu": cpu}}}


def _buffered_fleet(
    plane: ControlPlane, start_fleet: StartFleet, start_controller: StartController
) -> tuple[Fleet, str]:
    """A replica on a node, and a pool whose spare node a buffer keeps; with the name of the controller's account."""
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=8)
    spec = {
        "mode": "Manage",
        "latencyClass": "Interactive",  # and so a node to spare
        "nodePools": {"onDemand": "od"},
        "nodeShape": {"accelerators": 8},
        "prewarm": {"method": "CapacityBuffer"},
    }
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
    plane.api.create(POOL_PATH, pool | {"spec": spec})
    fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": "h100"}})
    fleet.set_load(PoolLoad(running=1, waiting=4))
    kubeconfig = plane.create_service_account(fleet.namespace, "shipped", _shipped_rules("od"))
    start_controller(fleet, kubeconfig=kubeconfig).wait_deciding(records=3)
    return fleet, f"system:serviceaccount:{fleet.namespace}:shipped"


def _shipped_rules(node_pool: str) -> list[dict[str, Any]]:
    """Of the base and the overlay, with the NodePool of this test in place of those in the example."""
    folders = ("base", "overlays/node-pools", "overlays/capacity-buffers")
    files = [file for folder in folders for file in sorted((DEPLOY / folder).glob("*.yaml"))]
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
    rules = [rule for each in documents if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    return [
        rule
        | ({"resourceNames": [node_pool]} if "resourceNames" in rule and rule["resources"] == ["nodepools"] else {})
        for rule in rules
    ]


def _condition(plane: ControlPlane) -> dict[str, Any]:
    conditions = plane.api.get(f"{POOL_PATH}/h100").get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "NodesHeldReady"), {})


def _buffers(plane: ControlPlane, fleet: Fleet) -> list[str]:
    path = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{fleet.namespace}/capacitybuffers"
    return [each["metadata"]["name"] for each in plane.api.items(path)]
