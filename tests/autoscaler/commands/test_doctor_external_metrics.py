"""`tokenscaler doctor external-metrics` on an API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from autoscaler.cli import app
from tests.fakes.api_server import Answer, FakeApiServer, Resource

KEDA = {"namespace": "keda", "name": "keda-operator-metrics-apiserver", "port": 443}
PASSED = {"conditions": [{"type": "Available", "status": "True", "reason": "Passed"}]}


class Cluster:
    def __init__(self, server: FakeApiServer, folder: Path) -> None:
        self.server = server
        self._kubeconfig = str(server.write_kubeconfig(folder))
        server.add_resource(Resource("apiregistration.k8s.io/v1", "apiservices", "APIService", is_namespaced=False))

    def serve(self, group_version: str, service: dict[str, object]) -> None:
        name = ".".join(group_version.split("/")[::-1])
        self.server.put("apiservices", {"metadata": {"name": name}, "spec": {"service": service}, "status": PASSED})

    def doctor(self, *arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["doctor", "external-metrics", "--kubeconfig", self._kubeconfig, *arguments], env={"COLUMNS": "300"}
        )


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with FakeApiServer() as server:
        yield Cluster(server, tmp_path)


def test_free_groups_are_fine(cluster: Cluster) -> None:
    result = cluster.doctor()

    assert result.exit_code == 0, result.output
    assert "v1beta1.external.metrics.k8s.io: nobody" in result.stdout


def test_a_foreign_owner_is_a_finding(cluster: Cluster) -> None:
    cluster.serve("external.metrics.k8s.io/v1beta1", KEDA)

    text, document = cluster.doctor(), cluster.doctor("--output", "json")

    assert text.exit_code == document.exit_code == 1
    assert "v1beta1.external.metrics.k8s.io: keda/keda-operator-metrics-apiserver" in text.stdout
    assert "spec.service is keda/keda-operator-metrics-apiserver" in text.stdout
    (finding,) = json.loads(document.stdout)["findings"]
    assert len(finding["other_fixes"]) == 2


def test_our_own_service_may_have_another_name(cluster: Cluster) -> None:
    cluster.serve("external.metrics.k8s.io/v1beta1", {"namespace": "scaling", "name": "ours"})

    assert cluster.doctor().exit_code == 1
    assert cluster.doctor("--service", "scaling/ours").exit_code == 0


def test_nothing_is_written(cluster: Cluster) -> None:
    cluster.doctor()

    assert {request.method for request in cluster.server.requests} == {"GET"}


def test_what_cannot_be_read_is_said_with_the_right_that_is_missing(cluster: Cluster) -> None:
    cluster.server.fail(lambda request: "apiservices" in request.path, Answer(403, b'{"message": "forbidden"}'))

    result = cluster.doctor()

    assert result.exit_code == 2
    assert 'grant verb "get" on "apiservices" in API group "apiregistration.k8s.io"' in result.stderr


def test_a_service_needs_a_namespace(cluster: Cluster) -> None:
    assert cluster.doctor("--service", "ours").exit_code == 2
