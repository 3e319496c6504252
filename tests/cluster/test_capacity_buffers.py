"""On a real Karpenter: a node is kept ready by a CapacityBuffer, limits hold what DaemonSets take of nodes too, and
one ceiling in dollars is for all pools."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import CRD_DIRECTORY, StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.cluster.harness.node_ledger import Change, LedgerEntry, NodeLedger
from tests.cluster.harness.node_pools import INSTANCE_TYPES, NODE_CLASS, limits_of, node_pool, nodes_of, refusals
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEPLOY = Path(__file__).parents[2] / "deploy"
POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
BY_BUFFER = '{"spec":{"prewarm":{"method":"CapacityBuffer"}}}'
BY_REPLICAS = '{"spec":{"prewarm":{"method":"Replicas"}}}'
# Of a node, an hour, by NodePool; and what all of them together may cost.
PRICES = {"chat": 50, "batch": 20}
DOLLARS = 200
# Whether one pool has had all of it first, and hands it over: that takes half a minute more, until its nodes have gone.
HANDS_OVER = "TOKENSCALER_LONG_LOOKS" in os.environ


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

    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", BY_REPLICAS)
    wait_until(lambda: _buffers(plane, fleet) == [], "the buffer is deleted", 60)
    wait_until(lambda: len(nodes_of(plane, "od")) == 2, "the node to spare goes", 120)
    refused = {(each.verb, each.resource) for each in plane.audit_events() if each.user == account and each.code == 403}
    assert refused == set(), "the shipped roles are enough"

    _show_a_template_of_somebody_else(plane, fleet)
    _show_a_cluster_that_knows_no_buffers(plane)


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


def test_one_ceiling_in_dollars_is_for_all_pools(karpenter_plane, start_fleet, start_controller, prometheus) -> None:
    """A node costs 50 $ an hour in one pool and 20 $ in the other, and 200 $ are all that there is."""
    plane = karpenter_plane
    chat, batch = (_priced_fleet(plane, start_fleet, name) for name in PRICES)
    _queue(chat, 1 if HANDS_OVER else 3)
    _queue(batch, 9)
    wait_scraped(prometheus, chat, batch)
    controller: ControllerProcess = start_controller(
        chat, namespaces=[chat.namespace, batch.namespace], arguments=["--ceiling-dollars-per-hour", str(DOLLARS)]
    )

    with NodeLedger(plane) as ledger:
        controller.wait_deciding(records=4)
        if HANDS_OVER:
            batch.wait_ready(7, timeout_seconds=120)
            _queue(chat, 3)
        chat.wait_ready(3, timeout_seconds=150)
        batch.wait_ready(2, timeout_seconds=120)
        limited = batch.wait_condition("ScalingLimited", "True", "AcceleratorCeiling")
        assert "(within the dollars an hour of all pools)" in limited["message"]
        entries = ledger.entries_until_now(plane)
    assert max(_dollars(entries)) == 190, "as much as whole nodes make of it, and at no moment more"
    assert chat.written_counts() == [3], "what the nodes of the other pool still cost, while they go, lowers no count"


def _queue(fleet: Fleet, replicas: int) -> None:
    fleet.set_load(PoolLoad(running=replicas, waiting=4 * replicas))


def _priced_fleet(plane: ControlPlane, start_fleet: StartFleet, name: str) -> Fleet:
    """A replica of a whole node of a NodePool of its own, whose AcceleratorPool says what a node costs."""
    plane.apply(node_pool(name, "on-demand", limits={"nvidia.com/gpu": "8"}, weight=1))
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=8, node_pool=name, scraped=False)
    spec = {
        "mode": "Manage",
        "nodePools": {"onDemand": name},
        "nodeShape": {"accelerators": 8},
        "slackNodes": 0,
        "nodeDollarsPerHour": {"onDemand": str(PRICES[name])},
    }
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": name}}
    plane.api.delete(f"{POOL_PATH}/{name}")  # of a first try, when this is the second
    plane.api.create(POOL_PATH, pool | {"spec": spec})
    priority = 100 if name == "chat" else 0
    fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": name}, "priority": priority})
    return fleet


def _dollars(entries: Sequence[LedgerEntry]) -> Iterator[int]:
    """What all nodes of the two pools cost after each change, those that are being deleted too."""
    standing: dict[str, int] = {}
    for entry in entries:
        if entry.change is Change.ORDERED:
            standing[entry.name] = PRICES.get(entry.node_pool, 0)
        elif entry.change is Change.GONE:
            del standing[entry.name]
        yield sum(standing.values())


def _show_a_template_of_somebody_else(plane: ControlPlane, fleet: Fleet) -> None:
    """Under the name that ours would have: it is said, and neither written nor deleted."""
    path = f"/api/v1/namespaces/{fleet.namespace}/podtemplates"
    pod = {"spec": {"containers": [{"name": "theirs", "image": "theirs"}]}}
    wait_until(lambda: plane.api.find(f"{path}/tokenscaler-h100") is None, "ours is deleted", 60)
    plane.api.create(path, {"metadata": {"name": "tokenscaler-h100"}, "template": pod})
    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", BY_BUFFER)
    wait_until(lambda: _condition(plane).get("reason") == "NameTaken", "the name is taken", 60)
    assert _buffers(plane, fleet) == []
    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", BY_REPLICAS)
    template = plane.api.get(f"{path}/tokenscaler-h100")["template"]
    assert [each["name"] for each in template["spec"]["containers"]] == ["theirs"]


def _show_a_cluster_that_knows_no_buffers(plane: ControlPlane) -> None:
    """As before Karpenter 1.14, or where nobody has installed the definition: that is said, and no node is held."""
    definition = "capacitybuffers.autoscaling.x-k8s.io"
    plane.kubectl("delete", "crd", definition)
    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", BY_BUFFER)
    wait_until(lambda: _condition(plane).get("reason") == "CapacityBuffersNotServed", "no such kind", 90)
    assert "nodes come with the replicas" in _condition(plane)["message"]
    plane.kubectl("patch", "apool", "h100", "--type=merge", "-p", BY_REPLICAS)
    plane.install_karpenter_crds()


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
