"""The parts that the scenarios stand on do what they promise."""

from __future__ import annotations

import subprocess
import time

import pytest

from tests.cluster.harness.component_commands import program
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.kubernetes_api import KubernetesApi
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.tcp_link import TcpLink
from tests.servers.vllm_exporters import Fault, PoolLoad

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize(
    ("kind", "pods"),
    [
        pytest.param("Deployment", 3, id="a Deployment"),
        pytest.param("StatefulSet", 3, id="a StatefulSet"),
        pytest.param("LeaderWorkerSet", 6, id="a LeaderWorkerSet of groups of two"),
    ],
)
def test_pods_become_ready_and_their_pages_are_scraped(start_fleet, prometheus, kind: str, pods: int) -> None:
    fleet = start_fleet(replicas=3, kind=kind)
    fleet.set_load(PoolLoad(running=30, waiting=13, prompt_tokens_per_second=6000, requests_per_second=3))

    selector = f'{{namespace="{fleet.namespace}"}}'
    wait_until(lambda: _sum(prometheus, f"sum(vllm:num_requests_waiting{selector})") == 13, "13 waiting", 30)
    assert _sum(prometheus, f"count(vllm:num_requests_running{selector})") == pods
    wait_until(
        lambda: 5500 < (_sum(prometheus, f"sum(rate(vllm:prompt_tokens_total{selector}[10s]))") or 0) < 6500,
        "6000 prompt tokens per second",
        30,
    )

    fleet.scale(2)
    fleet.wait_ready(2)
    wait_until(lambda: _sum(prometheus, f"sum(vllm:num_requests_waiting{selector})") == 13, "13 waiting", 30)


def _sum(prometheus: PrometheusServer, promql: str) -> float | None:
    result = prometheus.query(promql)
    return float(result[0]["value"][1]) if result else None


def test_loading_a_model_takes_the_time_that_the_pod_states(start_fleet) -> None:
    started = time.monotonic()
    start_fleet(replicas=1, loads_in="4s")
    assert time.monotonic() - started >= 4


@pytest.mark.parametrize(
    ("fault", "promql"),
    [
        pytest.param(Fault.DEAD, "up{N} == 0", id="a dead exporter refuses"),
        pytest.param(Fault.HANGS, "up{N} == 0", id="a hanging exporter lets the scrape time out"),
        pytest.param(Fault.NAN, "vllm:num_requests_waiting{N} != vllm:num_requests_waiting{N}", id="NaN is stored"),
        pytest.param(Fault.RENAMED, "vllm:requests_waiting{N}", id="a renamed metric has its new name"),
        pytest.param(Fault.EMPTY, "scrape_samples_scraped{N} == 0", id="an empty page has no samples"),
    ],
)
def test_a_fault_shows_in_prometheus_and_heals(start_fleet, prometheus, fault: Fault, promql: str) -> None:
    fleet = start_fleet(replicas=2)
    selector = f'{{namespace="{fleet.namespace}"}}'
    fleet.set_fault(fault, share=0.5)
    wait_until(lambda: len(prometheus.query(promql.replace("{N}", selector))) == 1, f"one {fault}", 30)
    fleet.set_fault(None)
    wait_until(lambda: len(prometheus.query(f"up{selector} == 1")) == 2, "both up again", 30)


def test_counters_start_anew_when_an_engine_restarts(start_fleet, prometheus) -> None:
    fleet = start_fleet(replicas=1)
    fleet.set_load(PoolLoad(generation_tokens_per_second=1000))
    promql = f'vllm:generation_tokens_total{{namespace="{fleet.namespace}"}}'
    wait_until(lambda: (_sum(prometheus, promql) or 0) > 2000, "2000 tokens", 30)
    fleet.exporters.restart(fleet.namespace, fleet.pod_names()[0])
    wait_until(lambda: (_sum(prometheus, f"resets({promql}[1m])") or 0) == 1, "a reset", 30)


def test_a_service_account_may_do_what_its_role_says_and_the_audit_log_names_it(control_plane: ControlPlane) -> None:
    control_plane.create_namespace("accounts")
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}]
    kubeconfig = control_plane.create_service_account("accounts", "writer", rules)
    kubectl = [program("kubectl"), f"--kubeconfig={kubeconfig}", "-n", "accounts"]
    subprocess.run([*kubectl, "create", "configmap", "a"], check=True, capture_output=True)
    refused = subprocess.run([*kubectl, "delete", "configmap", "a"], capture_output=True, text=True)

    assert "Forbidden" in refused.stderr
    writes = control_plane.writes(namespace="accounts", resource="configmaps")
    by_account = [event for event in writes if event.user == "system:serviceaccount:accounts:writer"]
    assert [(event.verb, event.name, event.code) for event in by_account] == [
        ("create", "a", 201),
        ("delete", "a", 403),
    ]


def test_an_old_watch_is_told_410_after_a_compaction_and_a_restart(own_control_plane: ControlPlane) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    old_version = own_control_plane.api.get(path)["metadata"]["resourceVersion"]
    for number in range(3):
        own_control_plane.api.create(path, {"metadata": {"name": f"map-{number}"}})
    own_control_plane.stop_api_server()
    own_control_plane.compact_etcd()
    own_control_plane.start_api_server()

    assert len(own_control_plane.api.items(path)) == 4  # with kube-root-ca.crt
    event = own_control_plane.api.get(path, watch="true", resourceVersion=old_version, timeoutSeconds=2)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


def test_a_cut_link_is_silent_until_it_is_mended(control_plane: ControlPlane) -> None:
    with TcpLink(control_plane.ports.api_server) as link:
        server = f"https://127.0.0.1:{link.port}"
        admin = control_plane.certificates.clients["admin"]
        api = KubernetesApi(server, control_plane.certificates.authority, admin)
        assert api.get("/readyz") == "ok"
        link.cut()
        api._client.timeout = 1
        with pytest.raises(Exception, match="timed out"):
            api.get("/readyz")
        link.mend()
        assert api.get("/readyz") == "ok"
        api.close()
