"""On a real Karpenter: replicas of nodes that go are replaced before they die, and nothing wrong is written meanwhile.

The controller runs with the shipped roles and no other right.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from autoscaler.cli import app
from autoscaler.drain_watcher.drain import DrainWatcher
from autoscaler.drain_watcher.instance_metadata import Notice
from autoscaler.kubernetes_gateway.connection import connect
from tests.cluster.conftest import StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_pools import given_up, limits_of, node_pool, nodes_of
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import LostRequests, PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEPLOY_DIRECTORY = Path(__file__).parents[2] / "deploy"
RUNNING = 30
POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
NODE_CLAIMS_PATH = "/apis/karpenter.sh/v1/nodeclaims"
POOL = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100"},
    "spec": {
        "mode": "Manage",
        "latencyClass": "Interactive",
        "manageDisruption": True,
        "nodePools": {"onDemand": "od"},
        "nodeShape": {"accelerators": 8, "cpu": 192},
        "ceilings": {"accelerators": 64},
    },
}


def _shipped_rules() -> Iterator[dict[str, Any]]:
    """Those of deploy/base and of the overlay that manages limits, for the NodePool of this test."""
    files = [*(DEPLOY_DIRECTORY / "base").glob("*.yaml"), DEPLOY_DIRECTORY / "overlays/node-pools/role_node_pools.yaml"]
    for file in sorted(files):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] in ("Role", "ClusterRole"):
                for rule in document["rules"]:
                    yield rule | (
                        {"resourceNames": ["od"]}
                        if "nodepools" in rule.get("resources", ()) and "patch" in rule["verbs"]
                        else {}
                    )


def _queue(replicas: int) -> PoolLoad:
    return PoolLoad(running=RUNNING, waiting=4 * replicas, request_seconds=1)


def _start(
    plane: ControlPlane, start_fleet: StartFleet, start_controller: StartController
) -> tuple[Fleet, ControllerProcess]:
    """Two replicas of a node each, under a controller with the shipped rights, whose limits are in step."""
    plane.apply(node_pool("od", "on-demand", limits={"nvidia.com/gpu": "16", "cpu": "384"}, weight=10))
    # A stopped pod has six times as long as a request takes.
    fleet = start_fleet(replicas=2, on=plane, accelerators=8, stops_in="6s")
    plane.api.create(POOL_PATH, POOL)
    # Never fewer than the two: what waits on a pod that goes is on no page for a few seconds.
    fleet.create_scaler(quick_policy(minimum=2) | {"acceleratorPoolRef": {"name": "h100"}})
    fleet.set_load(_queue(2))
    kubeconfig = plane.create_service_account(fleet.namespace, "tokenscaler", list(_shipped_rules()))
    controller = start_controller(fleet, kubeconfig=kubeconfig)
    controller.wait_deciding(records=3)
    wait_until(lambda: limits_of(plane, "od")["nvidia.com/gpu"] == "24", "two nodes and one to spare", 30)
    return fleet, controller


def test_nodes_that_go_and_a_karpenter_that_stops(karpenter_plane, start_fleet, start_controller, tmp_path) -> None:
    """One story, because a control plane with Karpenter and a scraped fleet take half a minute to start."""
    plane = karpenter_plane
    fleet, controller = _start(plane, start_fleet, start_controller)

    # A drain that may not evict: Karpenter itself makes no replacement for such a pod.
    _block_evictions(plane, fleet)
    first = sorted(fleet.pod_names())[0]
    node = _node_of(plane, fleet, first)
    plane.api.delete(f"{NODE_CLAIMS_PATH}/{_claim_of(plane, node)}")
    fleet.wait_ready(3)
    assert first in fleet.pod_names(), "it serves until it is evicted"
    assert fleet.replicas() == 3
    _assert_replaced_when_seen(controller, planned=2)
    assert "no pod of Deployment" in _doctor_says(plane)
    wait_until(lambda: _budgets(plane) == [{"nodes": "0"}, {"nodes": "100%"}], "no node is taken away meanwhile", 30)

    plane.api.delete(f"{_budgets_path(fleet)}/vllm")
    wait_until(lambda: node not in nodes_of(plane, "od"), "the drain ends", 60)
    fleet.wait_replicas(2)
    fleet.wait_ready(2)
    drained = _lost_with(fleet, first)
    assert drained.held in (RUNNING // 3, RUNNING // 3 + 8), "its replacement served beside it, so it held a third"
    assert drained.lost == 0, "and answered all of it"
    _wait_pool_condition(plane, "LimitsInStep", "od:")

    # What Karpenter says of a launch that it gives up. On this provider there is always capacity.
    plane.api.create("/api/v1/namespaces/default/events", given_up("od-abc12"))
    _wait_pool_condition(plane, "OutOfCapacity", "NodePool od makes no nodes: the cloud has none to give")
    assert "tried in vain" in fleet.wait_condition("NodesAvailable", "False", "OutOfCapacity")["message"]
    plane.api.delete("/api/v1/namespaces/default/events/given-up")
    fleet.wait_condition("NodesAvailable", "True")

    # Karpenter is down. The cloud gives notice to a node's watcher, and then the node is gone at once: its pod stays
    # Ready until somebody collects it.
    plane.component("karpenter").kill()
    killed = _newest_pod(fleet)
    second = _node_of(plane, fleet, killed)
    watcher = _drain_watcher(plane, fleet, second, tmp_path / "draining")
    wait_until(watcher.look, "it has cordoned its node", 30)
    fleet.wait_replicas(3)
    fleet.lose_node(second)
    wait_until(lambda: _has_lost(fleet, killed), "its requests are lost", 30)
    assert _lost_with(fleet, killed).lost == RUNNING // 2, "all that it held, half of what ran"
    controller.wait_record(lambda record: record["input"]["replicas"].get("leaving"), "it has left for good", 30)
    assert fleet.replicas() == 3
    _assert_replaced_when_seen(controller, planned=2)
    fleet.set_load(_queue(4))
    wait_until(lambda: fleet.replicas() >= 4, "four replicas are asked for", 60)
    _wait_pool_condition(plane, "KarpenterSilent", "is Karpenter up?")
    assert _whole_nodes(plane) >= 5, "four replicas and one to spare, nobody or somebody looking"

    plane.component("karpenter").start()
    _wait_pool_condition(plane, "LimitsInStep", "od:")

    plane.api.merge(f"{POOL_PATH}/h100", {"spec": {"manageDisruption": False}})
    wait_until(lambda: _budgets(plane) == [{"nodes": "100%"}], "the budgets are as they were", 30)

    nodes = _whole_nodes(plane)
    plane.api.delete("/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses/default")
    _wait_pool_condition(plane, "NodePoolNotReady", "NodePool od makes no nodes")
    assert _whole_nodes(plane) <= nodes
    assert fleet.replicas() >= 4
    _assert_only_shipped_writes(plane, fleet)


def _newest_pod(fleet: Fleet) -> str:
    """Not the one with all that waits: requests that move are seen twice for a second."""
    newest = max(fleet.pods(), key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return str(newest["metadata"]["name"])


def _has_lost(fleet: Fleet, pod: str) -> bool:
    return pod in {each.pod for each in fleet.exporters.lost(fleet.namespace)}


def _lost_with(fleet: Fleet, pod: str) -> LostRequests:
    """What the exporters' model says that a pod took with it when it went."""
    return next(each for each in fleet.exporters.lost(fleet.namespace) if each.pod == pod)


def _budgets(plane: ControlPlane) -> list[dict[str, str]]:
    found = plane.api.get("/apis/karpenter.sh/v1/nodepools/od")["spec"]["disruption"]
    assert (found["consolidationPolicy"], found["consolidateAfter"]) == ("WhenEmpty", "30m"), "as Interactive wants it"
    return list(found["budgets"])


def _whole_nodes(plane: ControlPlane) -> int:
    limits = limits_of(plane, "od")
    accelerators, cpu = int(limits["nvidia.com/gpu"]), int(limits["cpu"])
    assert (accelerators % 8, cpu) == (0, 24 * accelerators), "whole nodes, all keys together"
    return accelerators // 8


def _drain_watcher(plane: ControlPlane, fleet: Fleet, node: str, drain_file: Path) -> DrainWatcher:
    """With the rights of the example, on a node whose cloud has given notice."""
    example = yaml.safe_load_all((DEPLOY_DIRECTORY / "examples/drain-watcher/drain-watcher.yaml").read_text())
    rules = next(each["rules"] for each in example if each["kind"] == "ClusterRole")
    kubeconfig = plane.create_service_account(fleet.namespace, "drain-watcher", rules)
    return DrainWatcher(connect(str(kubeconfig)), node, drain_file, lambda: Notice("terminate", "2030-01-01T00:00:00Z"))


def _block_evictions(plane: ControlPlane, fleet: Fleet) -> None:
    budget = {
        "metadata": {"name": "vllm"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": fleet.name}}},
    }
    plane.api.create(_budgets_path(fleet), budget)
    path = f"{_budgets_path(fleet)}/vllm"
    wait_until(lambda: plane.api.get(path).get("status", {}).get("expectedPods") == 2, "the budget is in force", 30)


def _budgets_path(fleet: Fleet) -> str:
    return f"/apis/policy/v1/namespaces/{fleet.namespace}/poddisruptionbudgets"


def _node_of(plane: ControlPlane, fleet: Fleet, pod: str) -> str:
    return str(plane.api.get(f"/api/v1/namespaces/{fleet.namespace}/pods/{pod}")["spec"]["nodeName"])


def _claim_of(plane: ControlPlane, node: str) -> str:
    claims = plane.api.items(NODE_CLAIMS_PATH)
    return next(str(each["metadata"]["name"]) for each in claims if each["status"].get("nodeName") == node)


def _assert_replaced_when_seen(controller: ControllerProcess, *, planned: int) -> None:
    """The very decision that first saw a replica's node go asked for its replacement."""
    records = controller.records()
    seen = [record for record in records if record["input"]["replicas"].get("leaving")]
    assert seen, "a decision saw a node go"
    wrong = [each["decision"]["message"] for each in seen if each["decision"]["desiredReplicas"] != planned + 1]
    assert wrong == []


def _doctor_says(plane: ControlPlane) -> str:
    result = CliRunner().invoke(app, ["doctor", "nodepools", "--kubeconfig", str(plane.kubeconfig), "--output", "json"])
    assert result.exit_code == 1, result.output
    findings = json.loads(result.stdout)["findings"]
    assert "spec.template.spec.taints" in {each["field"] for each in findings}
    return " ".join(each["consequence"] for each in findings)


def _assert_only_shipped_writes(plane: ControlPlane, fleet: Fleet) -> None:
    """No request of the controller was refused, and of Karpenter's objects only the limits' NodePool was patched."""
    account = f"system:serviceaccount:{fleet.namespace}:tokenscaler"
    mine = [event for event in plane.audit_events() if event.user == account]
    assert {(event.verb, event.resource) for event in mine if event.code == 403} == set()
    assert _may_patch(plane, account, "od")
    assert not _may_patch(plane, account, "not-ours")
    karpenters = [event for event in mine if event.is_write and event.resource in ("nodepools", "nodeclaims", "nodes")]
    assert {(event.verb, event.resource, event.name) for event in karpenters} == {("patch", "nodepools", "od")}


def _may_patch(plane: ControlPlane, account: str, node_pool: str) -> bool:
    attributes = {"group": "karpenter.sh", "resource": "nodepools", "verb": "patch", "name": node_pool}
    review = {"spec": {"user": account, "resourceAttributes": attributes}}
    return bool(plane.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"])


def _wait_pool_condition(plane: ControlPlane, reason: str, words: str) -> None:
    def says() -> bool:
        conditions = plane.api.get(f"{POOL_PATH}/h100").get("status", {}).get("conditions", [])
        found = [each for each in conditions if each["type"] == "LimitsInStep" and each["reason"] == reason]
        return any(words in each["message"] for each in found)

    wait_until(says, f"LimitsInStep: {reason}", 90)
