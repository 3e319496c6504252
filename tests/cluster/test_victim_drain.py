"""On a real control plane: who loads is protected, and who is to go leaves a real Service first.

The controller has the shipped roles and no other right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.kubernetes_gateway.api_failure import Rejected
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_page import PodLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

DEPLOY_DIRECTORY = Path(__file__).parents[2] / "deploy"
LABEL = "tokenscaler.io/serving"
PROTECTION = {"karpenter.sh/do-not-disrupt", "tokenscaler.io/protected-while-loading"}
LONG_SECONDS = 600
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


def _shipped_rules() -> Iterator[dict[str, Any]]:
    overlay = DEPLOY_DIRECTORY / "overlays/pod-deletion-cost/role_pod_deletion_cost.yaml"
    for file in [*sorted((DEPLOY_DIRECTORY / "base").glob("*.yaml")), overlay]:
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] in ("Role", "ClusterRole"):
                yield from document["rules"]


def _shipped_admission(namespace: str) -> list[dict[str, Any]]:
    """The policy of the overlay, for the account of this test."""
    text = (DEPLOY_DIRECTORY / "overlays/pod-deletion-cost/admission_pod_marks.yaml").read_text()
    return list(yaml.safe_load_all(text.replace("tokenscaler-system:tokenscaler", f"{namespace}:tokenscaler")))


def _nodes_of_karpenter(plane: ControlPlane) -> None:
    for node in plane.api.items("/api/v1/nodes"):
        labels = {"karpenter.sh/nodepool": "od", "karpenter.sh/capacity-type": "on-demand"}
        plane.api.merge(f"/api/v1/nodes/{node['metadata']['name']}", {"metadata": {"labels": labels}})


def _create_service(fleet: Fleet) -> None:
    spec = {"selector": {"app": fleet.name, LABEL: "true"}, "ports": [{"port": 8000}]}
    path = f"/api/v1/namespaces/{fleet.namespace}/services"
    fleet.control_plane.api.create(path, {"metadata": {"name": "router"}, "spec": spec})


def _routed(fleet: Fleet) -> set[str]:
    """The pods that a router finds behind the Service."""
    slices = fleet.control_plane.api.items(f"/apis/discovery.k8s.io/v1/namespaces/{fleet.namespace}/endpointslices")
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    return {endpoint["targetRef"]["name"] for endpoint in endpoints if endpoint["conditions"].get("ready")}


def _protected(fleet: Fleet) -> set[str]:
    """The pods that Karpenter may not move, by our doing."""
    pods = fleet.pods()
    return {each["metadata"]["name"] for each in pods if each["metadata"]["annotations"].keys() >= PROTECTION}


def _load(fleet: Fleet, pod: str, **load: int) -> None:
    fleet.exporters.set_pod_load(fleet.namespace, pod, PodLoad(**load))


def test_loading_draining_returning_load_and_a_crash(own_control_plane, start_fleet, start_controller) -> None:
    """One story: two replicas of a node each become three, and the third leaves, returns, and goes in the end."""
    plane: ControlPlane = own_control_plane
    _nodes_of_karpenter(plane)
    fleet: Fleet = start_fleet(replicas=2, on=plane, accelerators=8, loads_in="10s", labels={LABEL: "true"})
    _create_service(fleet)
    first, second = fleet.pod_names()
    _load(fleet, first, running=5, waiting=8)
    _load(fleet, second, running=5)
    drain = {"scaleDownVictims": "WholeNodes", "scaleDownDrainSeconds": LONG_SECONDS, "protectLoadingReplicas": True}
    fleet.create_scaler(quick_policy() | drain)
    kubeconfig = plane.create_service_account(fleet.namespace, "tokenscaler", list(_shipped_rules()))
    plane.apply(*_shipped_admission(fleet.namespace))
    controller = start_controller(fleet, kubeconfig=kubeconfig)
    controller.wait_deciding(records=3)

    _load(fleet, first, running=5, waiting=12)
    fleet.wait_replicas(3)
    wait_until(lambda: len(_protected(fleet)) == 1, "the replica that loads is protected", 30, 0.1)
    (third,) = _protected(fleet)
    fleet.wait_ready(3)
    wait_until(lambda: _protected(fleet) == set(), "it is Ready, and may be moved", 30)
    _load(fleet, third, running=1)
    wait_until(lambda: _routed(fleet) == {first, second, third}, "all are behind the Service", 30)

    _load(fleet, first, running=5, waiting=8)
    wait_until(lambda: _routed(fleet) == {first, second}, "the one with least to do is out of the router", 60)
    assert "1 replica is out of the router" in fleet.wait_condition("AbleToScale", "True", "Draining")["message"]
    assert fleet.replicas() == 3, "it has a request to end"

    _load(fleet, first, running=5, waiting=12)
    wait_until(lambda: _routed(fleet) == {first, second, third}, "load has returned, and it serves again", 60)

    _load(fleet, first, running=5, waiting=8)
    wait_until(lambda: _routed(fleet) == {first, second}, "out of the router again", 60)
    controller.kill()
    _load(fleet, third)
    successor = start_controller(fleet, identity="successor", kubeconfig=kubeconfig)
    fleet.wait_replicas(2, timeout_seconds=120)
    fleet.wait_ready(2)
    assert fleet.pod_names() == [first, second]
    wait_until(lambda: _routed(fleet) == {first, second}, "the others serve", 30)
    assert fleet.written_counts() == [3, 2]
    emptied = f'tokenscaler_nodes_emptied_total{{namespace="{fleet.namespace}",target="vllm"}} 1.0'
    assert emptied in successor.get("/metrics").text
    _assert_only_shipped_rights(plane, fleet)
    _assert_nothing_else_is_admitted(connect(str(kubeconfig)), fleet, first)


def _assert_only_shipped_rights(plane: ControlPlane, fleet: Fleet) -> None:
    account = f"system:serviceaccount:{fleet.namespace}:tokenscaler"
    refused = [event for event in plane.audit_events() if event.user == account and event.code == 403]
    assert {(event.verb, event.resource) for event in refused} == set()


def _assert_nothing_else_is_admitted(connection: ApiConnection, fleet: Fleet, pod: str) -> None:
    """With the controller's own account: RBAC lets a pod be patched, and the admission policy says what of it."""
    path = f"/api/v1/namespaces/{fleet.namespace}/pods/{pod}"
    refused: dict[str, dict[str, Any]] = {
        "only the label": {"metadata": {"labels": {"app": "other"}}},
        "only the annotations": {"metadata": {"annotations": {"loads-in": None}}},
        "the spec": {"spec": {"containers": [{"name": "vllm", "image": "other"}]}},
        "the finalizers": {"metadata": {"finalizers": ["tokenscaler.io/stay"]}},
    }
    for words, body in refused.items():
        answer = connection.patch(path, body, STRATEGIC_MERGE_PATCH)
        assert isinstance(answer, Rejected), (body, answer)
        assert words in answer.message
