"""The whole controller as a process of its own, on a fake API server and without a Prometheus."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.decision_log import read_log
from autoscaler.decision_record import DecisionRecord
from tests.cluster.harness.controller_process import ControllerProcess
from tests.fakes.api_server import FakeApiServer, Request, Resource
from tests.pool_builders import a_scaler_document
from tests.servers.ports import free_port
from tests.servers.process import wait_until

SCALERS = Resource("tokenscaler.io/v1alpha1", "inferencescalers", "InferenceScaler")
POOLS = Resource("tokenscaler.io/v1alpha1", "acceleratorpools", "AcceleratorPool", is_namespaced=False)
LLAMA = {
    "metadata": {"namespace": "inference", "name": "llama", "uid": "llama-uid"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "llama"}}},
    "status": {"replicas": 3},
}

StartController = Callable[..., ControllerProcess]


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.add_resource(SCALERS)
        fake.add_resource(POOLS)
        fake.put("deployments", LLAMA)
        yield fake


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[StartController]:
    started: list[ControllerProcess] = []
    kubeconfig = Path(server.write_kubeconfig(tmp_path))

    def start(**options: Any) -> ControllerProcess:
        controller = ControllerProcess(
            tmp_path,
            kubeconfig,
            f"http://127.0.0.1:{free_port()}",
            identity="one",
            namespaces=[],
            lease_namespace="inference",
            tick_seconds=0.2,
            **options,
        )
        started.append(controller)
        controller.start()
        controller.wait_deciding()
        return controller

    yield start
    for controller in started:
        controller.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "a.yaml").write_text(yaml.safe_dump(a_file()))
    return folder


def a_file(**spec: Any) -> dict[str, Any]:
    document = a_scaler_document(**spec)
    document["metadata"] = {"namespace": "inference", "name": "llama"}
    return document


def get(controller: ControllerProcess, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"{controller.url}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def log_lines(controller: ControllerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in controller.log_text().splitlines()]


def writes(server: FakeApiServer) -> list[str]:
    def is_write(request: Request) -> bool:
        return request.method not in {"GET", "HEAD"}

    return [f"{request.method} {request.path}" for request in server.requests_of(is_write)]


def test_a_controller_on_files_decides_serves_and_ends_in_order(
    server: FakeApiServer, start: StartController, folder: Path
) -> None:
    controller = start(config=folder)
    assert get(controller, "/healthz") == (200, "ok\n")
    assert get(controller, "/readyz") == (200, "ok\n")
    assert 'tokenscaler_desired_replicas{name="llama",namespace="inference"} 3.0' in get(controller, "/metrics")[1]
    assert json.loads(get(controller, "/decisions/inference/llama")[1])["decision"]["desiredReplicas"] == 3
    controller.send_signal(signal.SIGTERM)
    assert controller.wait() == 0
    assert all(isinstance(entry, DecisionRecord) for entry in read_log(controller.decision_log))
    assert [line["message"] for line in log_lines(controller)[-2:]] == ["stopping", "lease lost"]
    assert server.get("leases", "tokenscaler")["spec"]["holderIdentity"] == ""
    assert {path.partition(" ")[2].split("/")[2] for path in writes(server)} == {"coordination.k8s.io"}


def test_a_changed_file_is_taken_over_and_a_bad_one_is_told(start: StartController, folder: Path) -> None:
    controller = start(config=folder)
    (folder / "a.yaml").write_text(yaml.safe_dump(a_file(minReplicas=5)))

    def desired() -> int:
        return int(json.loads(get(controller, "/decisions/inference/llama")[1])["decision"]["desiredReplicas"])

    wait_until(lambda: desired() == 5, "the new minimum is in force", 20.0)
    (folder / "a.yaml").write_text("kind: [")
    wait_until(
        lambda: 'tokenscaler_config_file_refused{file="a.yaml"} 1.0' in get(controller, "/metrics")[1],
        "the bad file is told",
        20.0,
    )
    assert desired() == 5


def test_a_dry_run_decides_and_writes_nothing_at_all(server: FakeApiServer, start: StartController) -> None:
    server.put("inferencescalers", a_scaler_document(minReplicas=5))
    controller = start(dry_run=True)
    controller.wait_deciding(3)
    record = json.loads(get(controller, "/decisions/inference/llama")[1])
    assert record["decision"]["desiredReplicas"] == 5
    assert record["actuation"]["reason"] == "DryRun"
    controller.stop()
    assert writes(server) == []


def test_a_controller_scales_and_tells_the_object(server: FakeApiServer, start: StartController) -> None:
    server.put("inferencescalers", a_scaler_document(minReplicas=5))
    controller = start()

    def status() -> dict[str, Any]:
        found: dict[str, Any] = server.get("inferencescalers", "llama").get("status", {})
        return found

    wait_until(lambda: status().get("specReplicas") == 5, "the count is written and seen", 20.0)
    assert server.get("deployments", "llama")["spec"]["replicas"] == 5
    conditions = {condition["type"]: condition["status"] for condition in status()["conditions"]}
    assert (conditions["TargetFound"], conditions["AbleToScale"], conditions["MetricsAvailable"]) == (
        "True",
        "True",
        "False",
    )
    controller.stop()
    scale_writes = [path for path in writes(server) if path.endswith("/scale")]
    assert scale_writes == ["PATCH /apis/apps/v1/namespaces/inference/deployments/llama/scale"]
    reasons = [event["reason"] for event in server.all("events")]
    assert reasons.count("SucceededRescale") == 1


def test_a_second_controller_stands_by_and_takes_over_with_what_was_saved(
    server: FakeApiServer, start: StartController, tmp_path: Path
) -> None:
    server.put("inferencescalers", a_scaler_document(minReplicas=5))
    first = start()
    wait_until(lambda: "history" in server.get("inferencescalers", "llama").get("status", {}), "a status", 20.0)
    elsewhere = tmp_path / "second"
    elsewhere.mkdir()
    second = ControllerProcess(
        elsewhere,
        Path(server.write_kubeconfig(elsewhere)),
        f"http://127.0.0.1:{free_port()}",
        identity="two",
        namespaces=[],
        lease_namespace="inference",
        tick_seconds=0.2,
    )
    second.start()
    try:
        second.wait_ready(lambda: 'outcome="standby"' in _metrics_or_nothing(second), 30.0)
        assert second.records() == []
        assert get(second, "/healthz") == (200, "ok\n")
        first.stop()
        second.wait_deciding()
        begun_with = second.records()[0]["input"]["history"]["completeSinceSeconds"]
        assert begun_with == first.records()[0]["input"]["history"]["completeSinceSeconds"]
    finally:
        second.stop()


def _metrics_or_nothing(controller: ControllerProcess) -> str:
    try:
        return get(controller, "/metrics")[1]
    except OSError:
        return ""
