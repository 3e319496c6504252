from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from autoscaler.clock import SystemClock
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.observers.capacity_buffers import BuffersNotRead, BuffersNotServed, buffer_name
from tests.fakes.api_server import Answer, FakeApiServer, Request, Resource

ACCELERATOR_POOLS = Resource("tokenscaler.io/v1alpha1", "acceleratorpools", "AcceleratorPool", is_namespaced=False)
INFERENCE_SCALERS = Resource("tokenscaler.io/v1alpha1", "inferencescalers", "InferenceScaler")


def _scaler(name: str, kind: str = "Deployment", api_version: str = "apps/v1") -> dict[str, Any]:
    reference = {"apiVersion": api_version, "kind": kind, "name": "llama"}
    return {"metadata": {"name": name}, "spec": {"scaleTargetRef": reference}}


def _wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(250):
        if condition():
            return
        pause.wait(0.02)
    assert condition()


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        fake.add_resource(INFERENCE_SCALERS)
        yield fake


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[Callable[..., WatchedCluster]]:
    with ExitStack() as cleanup:

        def begin(**settings: Any) -> WatchedCluster:
            connection = connect(server.write_kubeconfig(tmp_path))
            cluster = WatchedCluster(connection, SystemClock(), lambda: 0.5, **settings)
            cluster.start()
            cleanup.callback(cluster.stop)
            return cluster

        yield begin


Start = Callable[..., WatchedCluster]


def test_the_kinds_that_scalers_name_are_watched_before_anybody_asks(server: FakeApiServer, start: Start) -> None:
    server.put("inferencescalers", _scaler("a"))
    server.put("deployments", {"metadata": {"name": "llama"}, "spec": {"replicas": 3}})
    cluster = start()
    _wait_for(lambda: cluster.has_synced)
    objects = cluster.target_kind("apps/v1", "Deployment").objects
    assert objects is not None
    target = objects.get(("inference", "llama"))
    assert target is not None
    assert target.scale is not None
    assert target.scale.spec_replicas == 3


def test_a_kind_that_cannot_be_read_does_not_hold_up_the_others(server: FakeApiServer, start: Start) -> None:
    server.put("inferencescalers", _scaler("a", kind="StatefulSet"))
    server.put("inferencescalers", _scaler("b", kind="Gone", api_version="gone.io/v1"))
    server.put("inferencescalers", _scaler("c"))
    server.fail(lambda request: request.path == "/apis/apps/v1/statefulsets", Answer(403), times=1000)
    cluster = start()
    _wait_for(lambda: cluster.has_synced)
    assert any('"statefulsets" in API group "apps"' in problem for problem in cluster.problems)


def test_what_is_always_watched_must_be_read(server: FakeApiServer, start: Start) -> None:
    server.fail(lambda request: request.path == "/api/v1/pods", Answer(403), times=1000)
    cluster = start()
    _wait_for(lambda: any('"pods"' in problem for problem in cluster.problems))
    assert not cluster.has_synced


def test_a_scaler_of_a_new_kind_does_not_make_the_rest_unsynced(server: FakeApiServer, start: Start) -> None:
    cluster = start()
    _wait_for(lambda: cluster.has_synced)
    server.fail(lambda request: request.path == "/apis/apps/v1", Answer(200, hang_seconds=0.5))
    server.put("inferencescalers", _scaler("a"))
    _wait_for(lambda: bool(server.requests_of(lambda request: request.path == "/apis/apps/v1")))
    assert cluster.has_synced


def test_a_cluster_without_our_definitions_and_without_keda_is_synced(start: Start, server: FakeApiServer) -> None:
    server.remove_resource(INFERENCE_SCALERS)
    cluster = start()
    _wait_for(lambda: cluster.has_synced)
    assert cluster.problems == ()
    assert cluster.inference_scalers is not None
    assert cluster.inference_scalers.is_absent


def test_nodes_and_accelerator_pools_are_watched_where_wanted(server: FakeApiServer, start: Start) -> None:
    server.put(
        "nodes",
        {
            "metadata": {
                "name": "n1",
                "labels": {"karpenter.sh/nodepool": "h100", "karpenter.sh/capacity-type": "spot"},
            },
            "status": {
                "allocatable": {"cpu": "192", "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
    )
    cluster = start(watches_nodes=True)
    _wait_for(lambda: cluster.has_synced)
    assert cluster.nodes is not None
    (node,) = cluster.nodes.all()
    assert (node.node_pool, node.capacity_type, node.accelerators, node.is_ready) == (
        "h100",
        "spot",
        {"nvidia.com/gpu": 8},
        True,
    )
    assert cluster.accelerator_pools is not None


def test_who_may_not_read_nodes_can_still_scale_and_counts_no_accelerators(server: FakeApiServer, start: Start) -> None:
    server.add_resource(ACCELERATOR_POOLS)
    server.put("acceleratorpools", {"metadata": {"name": "h100"}, "spec": {}})
    server.fail(lambda request: request.path == "/api/v1/nodes", Answer(403), times=1000)
    cluster = start(namespaces=("inference",), watches_nodes=True)
    _wait_for(lambda: cluster.has_synced)
    assert any('"nodes" in API group ""' in problem for problem in cluster.problems)
    assert cluster.accelerator_pools is not None
    assert cluster.nodes is not None
    _wait_for(lambda: cluster.accelerator_pools is not None and len(cluster.accelerator_pools.all()) == 1)
    assert ClusterAccelerators(cluster.accelerator_pools, cluster.nodes, cluster.node_pools).accelerator_pools() == ()


def test_launches_are_watched_when_somebody_wants_limits_kept(server: FakeApiServer, start: Start) -> None:
    server.add_resource(ACCELERATOR_POOLS)
    server.add_resource(Resource("v1", "events", "Event"))
    server.put("acceleratorpools", {"metadata": {"name": "h100"}, "spec": {"mode": "Observe"}})
    cluster = start(watches_nodes=True)
    _wait_for(lambda: cluster.has_synced)
    assert cluster.launches() == {}
    assert not any("nodeclaims" in request.path or "events" in request.path for request in server.requests)

    server.put("acceleratorpools", {"metadata": {"name": "h100"}, "spec": {"mode": "Manage"}})
    _wait_for(lambda: cluster.given_up is not None and cluster.given_up.has_synced)

    asked = [request for request in server.requests if request.path == "/api/v1/namespaces/default/events"]
    selections = {request.query.get("fieldSelector") for request in asked}
    assert selections == {"involvedObject.kind=NodeClaim,reason=InsufficientCapacityError"}


CAPACITY_BUFFERS = Resource("autoscaling.x-k8s.io/v1beta1", "capacitybuffers", "CapacityBuffer")
HELD_BEFORE = {"conditions": [{"type": "NodesHeldReady", "status": "True"}]}


def a_pool_with(method: str, status: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "h100"}, "spec": {"prewarm": {"method": method}}, "status": status or {}}


def test_capacity_buffers_are_watched_where_one_is_wanted(server: FakeApiServer, start: Start) -> None:
    server.add_resource(ACCELERATOR_POOLS)
    server.add_resource(CAPACITY_BUFFERS)
    server.put("acceleratorpools", a_pool_with("Replicas"))
    cluster = start(watches_nodes=True, buffer_namespace="inference")
    _wait_for(lambda: cluster.has_synced)
    assert cluster.capacity_buffers() == BuffersNotRead()
    assert not any("capacitybuffers" in request.path for request in server.requests)

    labels = {"tokenscaler.io/accelerator-pool": "h100"}
    for name, replicas in ((buffer_name("h100"), 3), ("somebody-elses", 5)):
        server.put("capacitybuffers", {"metadata": {"name": name, "labels": labels}, "spec": {"replicas": replicas}})
    server.put("acceleratorpools", a_pool_with("CapacityBuffer"))
    _wait_for(lambda: isinstance(cluster.capacity_buffers(), dict))
    seen = cluster.capacity_buffers()
    assert isinstance(seen, dict)
    assert seen["h100"].replicas == 3


def test_buffers_of_a_time_before_are_found_again_to_be_deleted(server: FakeApiServer, start: Start) -> None:
    server.add_resource(ACCELERATOR_POOLS)
    server.add_resource(CAPACITY_BUFFERS)
    server.put("acceleratorpools", a_pool_with("Replicas", HELD_BEFORE))
    cluster = start(watches_nodes=True, buffer_namespace="inference")
    _wait_for(lambda: cluster.capacity_buffers() == {})


def test_where_capacity_buffers_are_not_served_that_is_known(server: FakeApiServer, start: Start) -> None:
    server.add_resource(ACCELERATOR_POOLS)
    server.put("acceleratorpools", a_pool_with("CapacityBuffer"))
    cluster = start(watches_nodes=True, buffer_namespace="inference")
    _wait_for(lambda: cluster.capacity_buffers() == BuffersNotServed())
    assert cluster.has_synced
    assert cluster.problems == ()


def test_nobody_asks_for_nodes_otherwise(server: FakeApiServer, start: Start) -> None:
    cluster = start()
    _wait_for(lambda: cluster.has_synced)
    assert server.requests_of(lambda request: "nodes" in request.path) == []


def test_after_a_restart_of_the_server_every_watch_resumes_and_none_lists(server: FakeApiServer, start: Start) -> None:
    server.put("inferencescalers", _scaler("a"))
    cluster = start()
    _wait_for(lambda: cluster.has_synced and len(server.requests_of(_is_watch)) >= 4)
    server.stop()
    lists = len(server.requests_of(_is_list))
    watches = len(server.requests_of(_is_watch))
    server.start()
    # scaledobjects are absent here, so three fixed kinds and the Deployments are watched.
    _wait_for(lambda: len(server.requests_of(_is_watch)) >= watches + 4)
    again = server.requests_of(_is_list)[lists:]
    assert [request.path for request in again if "scaledobjects" not in request.path] == []


def _is_watch(request: Request) -> bool:
    return request.is_watch


def _is_list(request: Request) -> bool:
    return "limit" in request.query
