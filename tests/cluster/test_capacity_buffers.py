"""On a real Karpenter: a node is kept ready by a CapacityBuffer, handed over, and let go, with no right too many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import CRD_DIRECTORY, StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_pools import INSTANCE_TYPES, NODE_CLASS, node_pool, nodes_of
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEPLOY = Path(__file__).parents[2] / "deploy"
POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"


@pytest.fixture
def karpenter_plane() -> Iterator[ControlPlane]:
    with ControlPlane(karpenter_instance_types=INSTANCE_TYPES) as started:
        started.apply(CRD_DIRECTORY)
        started.apply(NODE_CLASS)
        started.apply(node_pool("od", "on-demand", limits={"nvidia.com/gpu": "16"}, weight=10))
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
    kubeconfig = plane.create_service_account(fleet.namespace, "shipped", _shipped_rules())
    start_controller(fleet, kubeconfig=kubeconfig).wait_deciding(records=3)
    return fleet, f"system:serviceaccount:{fleet.namespace}:shipped"


def _shipped_rules() -> list[dict[str, Any]]:
    """Of the base and the overlay, with the NodePool of this test in place of those in the example."""
    folders = ("base", "overlays/node-pools", "overlays/capacity-buffers")
    files = [file for folder in folders for file in sorted((DEPLOY / folder).glob("*.yaml"))]
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
    rules = [rule for each in documents if each["kind"] in ("Role", "ClusterRole") for rule in each["rules"]]
    return [
        rule | ({"resourceNames": ["od"]} if "resourceNames" in rule and rule["resources"] == ["nodepools"] else {})
        for rule in rules
    ]


def _condition(plane: ControlPlane) -> dict[str, Any]:
    conditions = plane.api.get(f"{POOL_PATH}/h100").get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "NodesHeldReady"), {})


def _buffers(plane: ControlPlane, fleet: Fleet) -> list[str]:
    path = f"/apis/autoscaling.x-k8s.io/v1beta1/namespaces/{fleet.namespace}/capacitybuffers"
    return [each["metadata"]["name"] for each in plane.api.items(path)]
