"""We share the metrics API groups: another provider behind us, Object metrics beside it, KEDA without either.

One story on a real aggregator: two stock HPAs, of which one follows the other provider's metric through us and one an
Object metric of ours; then the other provider falls silent, and at last we go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.cli import app
from autoscaler.external_metrics.hpa_manifest import MetricSourceType, hpa_manifest
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.installed_metrics_api import (
    API_SERVICE_PATH,
    API_SERVICES_PATH,
    NAMESPACE,
    PREFIX,
    InstalledMetricsApi,
)
from tests.fakes.certificates import CertificateAuthority
from tests.fakes.keda_client import KedaClient
from tests.servers.metrics_provider import MetricsProvider
from tests.servers.ports import free_port
from tests.servers.process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

OVERLAYS = Path(__file__).parents[2] / "deploy" / "overlays"
CUSTOM = "/apis/custom.metrics.k8s.io"
CUSTOM_API_SERVICE = f"{API_SERVICES_PATH}/v1beta2.custom.metrics.k8s.io"
THEIR_METRIC = "s0-kafka-orders"
DESIRED = "tokenscaler-desired-replicas"
WAITING_PER_REPLICA = 4


@dataclass(frozen=True)
class Certificates:
    """Files for the other provider and for KEDA, in one folder."""

    authority: CertificateAuthority
    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def client(self) -> tuple[bytes, bytes]:
        return (self.folder / "client.key").read_bytes(), (self.folder / "client.crt").read_bytes()


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    folder = tmp_path / "certificates"
    folder.mkdir()
    authority = CertificateAuthority()
    (folder / "ca.crt").write_text(authority.certificate_text)
    authority.issue("tokenscaler", folder / "tls")
    authority.issue("other", folder / "other")
    authority.issue("keda-operator", folder / "client")
    return Certificates(authority, folder)


@pytest.fixture
def other(certificates: Certificates) -> Iterator[MetricsProvider]:
    with MetricsProvider((certificates.folder / "other.crt", certificates.folder / "other.key")) as provider:
        yield provider


def policy() -> dict[str, Any]:
    """Follows the queue of a gateway, whatever it is, at once."""
    return {
        "mode": "ExternalMetric",
        "minReplicas": 1,
        "maxReplicas": 20,
        "signals": {
            "pendingRequests": {
                "query": 'sum(gateway_pending_requests{pool="groups"})',
                "perReplica": WAITING_PER_REPLICA,
            }
        },
        "behavior": {
            "scaleUp": {"policies": [{"type": "Pods", "value": 20, "periodSeconds": 1}]},
            "scaleDown": {"stabilizationWindowSeconds": 0},
        },
        "coldStart": {"priorSeconds": 1},
    }


def hpa_of_theirs(fleet: Fleet) -> dict[str, Any]:
    metric = {"name": THEIR_METRIC, "selector": {"matchLabels": {"scaledobject.keda.sh/name": "orders"}}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": fleet.name, "namespace": fleet.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": fleet.name},
            "minReplicas": 1,
            "maxReplicas": 20,
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }


def hpa_of_ours(fleet: Fleet) -> str:
    """What `tokenscaler hpa NS/NAME --object-metric` prints."""
    scaler = parse_inference_scaler(fleet.control_plane.api.get(f"{fleet.scalers_path}/{fleet.name}"))
    assert isinstance(scaler, InferenceScaler), scaler
    manifest = hpa_manifest(scaler, MetricSourceType.OBJECT)
    assert manifest is not None
    return manifest


def hpa_condition(fleet: Fleet, kind: str) -> dict[str, Any]:
    path = f"/apis/autoscaling/v2/namespaces/{fleet.namespace}/horizontalpodautoscalers/{fleet.name}"
    conditions = fleet.control_plane.api.get(path).get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})


@dataclass(frozen=True)
class Story:
    """The parts that the chapters play with."""

    control_plane: ControlPlane
    installed: InstalledMetricsApi
    theirs: Fleet
    ours: Fleet
    other: MetricsProvider
    controller: ControllerProcess

    def set_ours(self, replicas: int) -> None:
        self.ours.exporters.set_gateway_pending("groups", replicas * WAITING_PER_REPLICA)

    def set_theirs(self, value: int) -> None:
        self.other.behaviour.values[(self.theirs.namespace, THEIR_METRIC)] = str(value)

    def raw(self, path: str) -> Any:
        return json.loads(self.control_plane.kubectl("get", "--raw", path))


def test_two_providers_one_group_and_object_metrics(
    control_plane: ControlPlane, start_fleet, start_controller, prometheus, certificates, other, tmp_path
) -> None:
    port, keda_port = free_port(), free_port()
    with InstalledMetricsApi(control_plane, port, OVERLAYS / "custom-metrics") as installed:
        theirs, ours = (start_fleet(replicas=1, scraped=False) for _ in range(2))
        other.behaviour.values[(theirs.namespace, THEIR_METRIC)] = "2"
        token = tmp_path / "token"
        token.write_text(control_plane.service_account_token(NAMESPACE, "tokenscaler"))
        controller = start_controller(
            ours,
            kubeconfig=installed.kubeconfig,
            lease_namespace=NAMESPACE,
            namespaces=[ours.namespace, theirs.namespace],
            arguments=[
                *("--metrics-api-port", str(port), "--forward-to", other.url),
                *("--forward-to-ca", certificates.ca, "--forward-to-token", token),
                *("--keda-port", str(keda_port), "--keda-certificate", certificates.folder),
            ],
        )
        story = Story(control_plane, installed, theirs, ours, other, controller)
        story.set_ours(3)
        prometheus.wait_for('gateway_pending_requests{pool="groups"}')
        ours.create_scaler(policy())
        installed.wait_available()
        wait_until(lambda: _is_available(story), "custom.metrics.k8s.io is Available", 120)
        control_plane.apply(hpa_of_theirs(theirs))
        control_plane.apply(hpa_of_ours(ours))

        for overlay in ("beside-another-provider", "custom-metrics", "keda-external-scaler"):
            control_plane.kubectl(
                "apply",
                "--dry-run=server",
                "--server-side",
                "--force-conflicts",
                "--validate=strict",
                "-k",
                OVERLAYS / overlay,
            )
        _both_are_followed(story, token.read_text())
        _both_are_discovered(story)
        _keda_reads_the_same(story, keda_port, certificates)
        _their_silence_is_theirs_alone(story)
        _when_we_go_we_say_what_is_stuck(story)


def _is_available(story: Story) -> bool:
    conditions = story.control_plane.api.get(CUSTOM_API_SERVICE).get("status", {}).get("conditions", [])
    return any(each["type"] == "Available" and each["status"] == "True" for each in conditions)


def _both_are_followed(story: Story, token: str) -> None:
    story.theirs.wait_replicas(2, 120)
    story.ours.wait_replicas(3, 120)
    request = story.other.metric_requests()[-1]
    assert request.query == {"labelSelector": ["scaledobject.keda.sh/name=orders"]}
    assert request.header("Authorization") == [f"Bearer {token}"]
    assert not [name for name, _ in request.headers if name.lower().startswith("x-remote")]


def _both_are_discovered(story: Story) -> None:
    def both() -> bool:
        return [resource["name"] for resource in story.raw(PREFIX)["resources"]] == ["externalmetrics", THEIR_METRIC]

    wait_until(both, "the metrics of both are listed", 120)
    assert story.raw(CUSTOM)["preferredVersion"]["version"] == "v1beta2"
    for version in ("v1beta1", "v1beta2"):
        path = f"{CUSTOM}/{version}/namespaces/{story.ours.namespace}/inferencescalers.tokenscaler.io/*/{DESIRED}"
        (item,) = story.raw(path)["items"]
        assert item["describedObject"]["name"] == story.ours.name
        assert item["value"] == "3"
    # All of kubectl's own discovery, in both of its forms.
    resources = story.control_plane.kubectl("api-resources", "-o", "name").splitlines()
    assert {"pods", "inferencescalers.tokenscaler.io"} <= set(resources)


def _keda_reads_the_same(story: Story, port: int, certificates: Certificates) -> None:
    client = KedaClient(port, certificates.authority.certificate_text, certificates.client)
    with client.channel:
        pool = {"namespace": story.ours.namespace, "inferenceScaler": story.ours.name}
        assert client.values(DESIRED, **pool) == [(DESIRED, 3, 3.0)]
        assert client.is_active(**pool)


def _their_silence_is_theirs_alone(story: Story) -> None:
    story.other.behaviour.is_silent = True
    story.set_theirs(5)
    wait_until(
        lambda: "the other provider of external metrics" in hpa_condition(story.theirs, "ScalingActive")["message"],
        "the HPA says who gave no answer",
        120,
    )
    assert hpa_condition(story.theirs, "ScalingActive")["reason"] == "FailedGetExternalMetric"
    story.set_ours(6)
    story.ours.wait_replicas(6, 120)
    assert story.theirs.replicas() == 2
    # A provider behind us that says nothing stalls nobody's discovery.
    story.control_plane.create_namespace("short-lived")
    story.control_plane.api.delete("/api/v1/namespaces/short-lived")
    wait_until(
        lambda: story.control_plane.api.find("/api/v1/namespaces/short-lived") is None, "the namespace has gone", 120
    )
    assert story.installed.condition()["status"] == "True"
    story.other.behaviour.is_silent = False
    story.theirs.wait_replicas(5, 120)
    page = story.controller.get("/metrics").text
    assert 'tokenscaler_forwarded_requests_total{outcome="failed"}' in page


def _when_we_go_we_say_what_is_stuck(story: Story) -> None:
    """What Kubernetes itself does without us: kubectl goes on, namespaces are emptied, but not gone until we are."""
    control_plane, api = story.control_plane, story.control_plane.api
    control_plane.create_namespace("leaving")
    api.create("/api/v1/namespaces/leaving/configmaps", {"metadata": {"name": "something"}})
    assert doctor(control_plane).exit_code == 0
    story.controller.stop()
    # It is looked at every 30 s, and whenever it is changed.
    api.merge(API_SERVICE_PATH, {"metadata": {"annotations": {"tests/looked-at": "again"}}})
    wait_until(lambda: story.installed.condition().get("status") == "False", "the group is not Available", 120)

    assert control_plane.kubectl("get", "pods", "-n", story.ours.namespace, "-o", "name").startswith("pod/")
    api.delete("/api/v1/namespaces/leaving")
    wait_until(lambda: "NamespaceDeletionDiscoveryFailure" in _true_conditions(api), "discovery fails", 120)
    assert api.items("/api/v1/namespaces/leaving/configmaps") == []
    found = doctor(control_plane)
    assert found.exit_code == 1
    assert "namespaces that are deleted stay Terminating" in found.stdout
    assert "kubectl delete apiservice v1beta1.external.metrics.k8s.io" in found.stdout

    story.installed.remove_api_services()
    wait_until(lambda: api.find("/api/v1/namespaces/leaving") is None, "the namespace has gone", 120)


def doctor(control_plane: ControlPlane) -> Result:
    command = ["doctor", "external-metrics", "--kubeconfig", str(control_plane.kubeconfig)]
    return CliRunner().invoke(app, command)


def _true_conditions(api: Any) -> set[str]:
    found = api.find("/api/v1/namespaces/leaving") or {}
    return {each["type"] for each in found.get("status", {}).get("conditions", []) if each["status"] == "True"}
