"""`tokenscaler doctor nodepools` on an API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from autoscaler.cli import app
from tests.fakes.api_server import Answer, FakeApiServer, Request, Resource

CLUSTER_KINDS = (
    ("tokenscaler.io/v1alpha1", "acceleratorpools", "AcceleratorPool"),
    ("karpenter.sh/v1", "nodepools", "NodePool"),
    ("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"),
    ("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview"),
)
POOL = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100"},
    "spec": {"mode": "Manage", "nodePools": {"onDemand": "od"}, "nodeShape": {"accelerators": 8, "cpu": 192}},
}
NODE_POOL: dict[str, Any] = {
    "metadata": {"name": "od", "generation": 1},
    "spec": {
        "limits": {"nvidia.com/gpu": "256", "cpu": "2000"},
        "template": {
            "spec": {
                "taints": [{"key": "gpu", "effect": "NoSchedule"}],
                "requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                ],
            }
        },
    },
    "status": {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]},
}
SCALER = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "InferenceScaler",
    "metadata": {"name": "chat", "namespace": "inference"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"},
        "engine": "vllm",
        "minReplicas": 1,
        "maxReplicas": 2,
        "acceleratorPoolRef": {"name": "h100"},
    },
}
DEPLOYMENT = {
    "metadata": {"name": "vllm", "namespace": "inference"},
    "spec": {
        "template": {
            "spec": {
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}],
            }
        }
    },
}


class Cluster:
    def __init__(self, server: FakeApiServer, folder: Path) -> None:
        self.server = server
        self.forbidden = "nothing"  # the resource of which the controller may do nothing
        self._kubeconfig = str(server.write_kubeconfig(folder))
        for api_version, plural, kind in CLUSTER_KINDS:
            server.add_resource(Resource(api_version, plural, kind, is_namespaced=False))
        server.add_resource(Resource("tokenscaler.io/v1alpha1", "inferencescalers", "InferenceScaler"))
        server.add_resource(Resource("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"))
        server.add_resource(Resource("v1", "services", "Service"))

    def judges(self, request: Request, allowed: bool) -> bool:
        """Whether a request asks for a right that the controller has, or has not."""
        is_review = request.path.endswith("subjectaccessreviews")
        return is_review and (self.forbidden not in json.dumps(request.body)) is allowed

    def doctor(self, *arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["doctor", "nodepools", "--kubeconfig", self._kubeconfig, *arguments], env={"COLUMNS": "300"}
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with FakeApiServer() as server:
        yield Cluster(server, tmp_path)


@pytest.fixture
def filled(cluster: Cluster) -> Cluster:
    cluster.server.put("acceleratorpools", POOL)
    cluster.server.put("nodepools", NODE_POOL)
    cluster.server.put("inferencescalers", SCALER)
    cluster.server.put("deployments", DEPLOYMENT)
    for allowed, answer in ((False, b'{"status": {"allowed": false}}'), (True, b'{"status": {"allowed": true}}')):
        cluster.server.fail(lambda request, allowed=allowed: cluster.judges(request, allowed), Answer(201, answer), 100)
    return cluster


def test_without_accelerator_pools_there_is_nothing_to_check(cluster: Cluster) -> None:
    result = cluster.doctor()

    assert result.exit_code == 3
    assert "no AcceleratorPool: nothing to check" in result.stdout


def test_where_our_definitions_are_not_installed_that_is_said(cluster: Cluster) -> None:
    cluster.server.fail(lambda request: "acceleratorpools" in request.path, Answer(404, b'{"message": "not found"}'))

    result = cluster.doctor()

    assert result.exit_code == 3
    assert "there are no AcceleratorPools" in result.stderr
    assert "apply deploy/crd first" in result.stderr


def test_without_karpenter_there_is_nothing_to_check(filled: Cluster) -> None:
    filled.server.remove_resource(Resource("karpenter.sh/v1", "nodepools", "NodePool", is_namespaced=False))

    result = filled.doctor()

    assert result.exit_code == 3
    assert "Karpenter is not installed (no karpenter.sh/v1): there are no NodePools to check" in result.stdout


def test_a_pool_that_is_not_accepted_is_a_finding(cluster: Cluster) -> None:
    cluster.server.put("acceleratorpools", POOL | {"spec": POOL["spec"] | {"nodeShape": None}})

    result = cluster.doctor()

    assert result.exit_code == 1
    assert "problem: AcceleratorPool h100: spec is" in result.stdout
    assert "mode Manage needs nodeShape" in result.stdout


def test_both_targets_of_a_scaler_are_looked_at(filled: Cluster) -> None:
    targets = {
        kind: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
        for kind, name in (("onDemand", "vllm"), ("spot", "vllm-spot"))
    }
    spec = SCALER["spec"] | {"capacityTypes": targets, "scaleTargetRef": None}
    filled.server.put("inferencescalers", SCALER | {"spec": spec})

    result = filled.doctor()

    assert "problem: Deployment inference/vllm-spot: metadata.name is vllm-spot\n" in result.stdout
    assert "problem: Deployment inference/vllm:" not in result.stdout


def test_each_finding_has_its_object_field_value_consequence_and_fix(filled: Cluster) -> None:
    text, document = filled.doctor(), filled.doctor("--output", "json")

    assert text.exit_code == document.exit_code == 1, text.output
    assert "NodePool od: 10 nodes (nvidia.com/gpu: 32, cpu: 10)" in text.stdout
    assert "problem: NodePool od: spec.limits.cpu is 2000" in text.stdout
    parsed = json.loads(document.stdout)
    findings = {each["field"]: each for each in parsed["findings"]}
    assert set(findings["spec.limits.cpu"]) == {"object", "field", "value", "consequence", "fix", "other_fixes"}
    assert findings["spec.limits.cpu"]["fix"] == "6144 for as many nodes"
    assert parsed["nodePools"] == [
        {"acceleratorPool": "h100", "nodePool": "od", "wholeNodesByLimit": {"nvidia.com/gpu": 32, "cpu": 10}}
    ]


def test_a_cluster_as_it_should_be_ends_with_0(filled: Cluster) -> None:
    limits = {"nvidia.com/gpu": "256", "cpu": "6144"}
    filled.server.put("nodepools", NODE_POOL | {"spec": NODE_POOL["spec"] | {"limits": limits}})

    result = filled.doctor()

    assert result.exit_code == 0, result.output


def test_what_is_sent_changes_nothing(filled: Cluster) -> None:
    filled.doctor()

    sent = [request for request in filled.server.requests if request.method != "GET"]
    assert {(request.method, request.path.rsplit("/", 1)[1]) for request in sent} == {
        ("POST", "subjectaccessreviews"),
        ("PATCH", "od"),
    }
    (patch,) = [request for request in sent if request.method == "PATCH"]
    assert patch.query["dryRun"] == "All"


def test_what_cannot_be_read_is_a_finding(filled: Cluster) -> None:
    filled.server.fail(lambda request: "priorityclasses" in request.path, Answer(403, b'{"message": "forbidden"}'))

    result = filled.doctor()

    assert result.exit_code == 1
    assert 'grant verb "list" on "priorityclasses"' in result.stdout


def test_a_target_that_is_missing_is_a_finding(filled: Cluster) -> None:
    filled.server.delete("deployments", "vllm", "inference")

    result = filled.doctor()

    assert "problem: Deployment inference/vllm: metadata.name is vllm\n" in result.stdout
    assert "there is no such Deployment: nothing could be checked of what InferenceScaler" in result.stdout


def test_without_accelerator_pools_to_read_nothing_is_checked(filled: Cluster) -> None:
    filled.server.fail(lambda request: "acceleratorpools" in request.path, Answer(403, b'{"message": "forbidden"}'))

    result = filled.doctor()

    assert result.exit_code == 2
    assert 'grant verb "list" on "acceleratorpools"' in result.stderr


def test_rights_that_the_controller_lacks_are_findings(filled: Cluster) -> None:
    filled.forbidden = "daemonsets"

    result = filled.doctor()

    assert "ServiceAccount tokenscaler-system/tokenscaler: verb list on daemonsets.apps is not allowed" in result.stdout
    assert "the role of deploy/overlays/node-pools" in result.stdout


def test_an_amount_of_money_is_wanted(cluster: Cluster) -> None:
    result = cluster.doctor("--ceiling-dollars-per-hour", "much")
    assert result.exit_code == 2
    assert "an amount such as 3000 is wanted" in result.stderr


def test_a_ceiling_for_all_pools_needs_prices(filled: Cluster) -> None:
    result = filled.doctor("--ceiling-dollars-per-hour", "3000")
    assert "problem: AcceleratorPool h100: spec.nodeDollarsPerHour is none" in result.stdout


def test_a_service_account_needs_a_namespace(cluster: Cluster) -> None:
    assert cluster.doctor("--service-account", "tokenscaler").exit_code == 2


def test_a_service_that_goes_on_routing_to_what_is_to_go_is_found(filled: Cluster) -> None:
    drain = {"scaleDownVictims": "WholeNodes", "scaleDownDrainSeconds": 60}
    filled.server.put("inferencescalers", {**SCALER, "spec": {**SCALER["spec"], **drain}})  # type: ignore[dict-item]
    template = {
        **DEPLOYMENT["spec"]["template"],
        "metadata": {"labels": {"app": "v", "tokenscaler.io/serving": "true"}},
    }  # type: ignore[index]
    filled.server.put("deployments", {**DEPLOYMENT, "spec": {"template": template}})
    filled.server.put(
        "services", {"metadata": {"name": "chat", "namespace": "inference"}, "spec": {"selector": {"app": "v"}}}
    )

    result = filled.doctor()

    assert result.exit_code == 1
    assert "Service inference/chat" in result.stdout
    assert "tokenscaler.io/serving" in result.stdout
