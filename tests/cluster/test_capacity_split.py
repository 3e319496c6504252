"""On a real Karpenter: the floor on demand holds in the nodes that are there, with two Deployments and with one."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from tests.cluster.conftest import StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.kubernetes_api import KubernetesApi
from tests.cluster.harness.node_pools import (
    NODE_CLASSES_PATH,
    PATH,
    given_up,
    kinds_of_nodes,
    node_class,
    node_pool,
    nodes_of,
)
from tests.cluster.harness.policies import quick_policy
from tests.cluster.harness.workloads import deployment
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
FLOOR_PERCENT = 20
# Of the one Deployment: by the floor one of them is on demand. More go one after the other, which takes as much longer.
LOOKS_LONG = "TOKENSCALER_LONG_LOOKS" in os.environ
REPLICAS = 5 if LOOKS_LONG else 2


class NodeWatch:
    """Looks at the nodes all the time; a context manager. `broken` are the counts by which the floor was not kept."""

    def __init__(self, plane: ControlPlane) -> None:
        certificates = plane.certificates
        self._api = KubernetesApi(plane.url, certificates.authority, certificates.clients["admin"])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.looks = 0
        self.broken: list[tuple[int, int]] = []

    def __enter__(self) -> NodeWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._api.close()

    def _look(self) -> None:
        while not self._stop.wait(0.2):
            on_demand, spot = kinds_of_nodes(self._api)
            self.looks += 1
            if 100 * on_demand < FLOOR_PERCENT * (on_demand + spot):
                self.broken.append((on_demand, spot))


def _split_fleet(plane: ControlPlane, start_fleet: StartFleet) -> Fleet:
    """A Deployment on demand with a replica, one on spot with none, and a scaler that steers both."""
    plane.apply(
        node_class("spot"),
        node_pool("od", "on-demand", limits={"nvidia.com/gpu": "8"}, weight=10),
        node_pool("spot", "spot", limits={"nvidia.com/gpu": "0"}, weight=1, node_class="spot"),
    )
    # A stopped pod has six times as long as a request takes.
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=8, capacity_type="on-demand", stops_in="6s")
    spot = deployment(fleet.namespace, "vllm-spot", 0, accelerators=8, capacity_type="spot", stops_in="6s")
    plane.api.create(f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments", spot)
    _create_pool(plane)
    targets = {
        kind: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
        for kind, name in (("onDemand", "vllm"), ("spot", "vllm-spot"))
    }
    policy = quick_policy() | {"acceleratorPoolRef": {"name": "h100"}, "capacityTypes": targets, "scaleTargetRef": None}
    fleet.create_scaler(policy)
    return fleet


def _create_pool(plane: ControlPlane) -> None:
    spec = {
        "mode": "Manage",
        "nodePools": {"onDemand": "od", "spot": "spot"},
        "nodeShape": {"accelerators": 8},
        "split": {"onDemandFloorPercent": FLOOR_PERCENT},
    }
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
    plane.api.create(POOL_PATH, pool | {"spec": spec})


def _counts(plane: ControlPlane, fleet: Fleet) -> tuple[int, int]:
    path = f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments"
    deployments: dict[str, Any] = {each["metadata"]["name"]: each for each in plane.api.items(path)}
    return deployments["vllm"]["spec"]["replicas"], deployments["vllm-spot"]["spec"]["replicas"]


def _ready_on_spot(plane: ControlPlane, fleet: Fleet) -> int:
    path = f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments/vllm-spot"
    return int(plane.api.get(path).get("status", {}).get("readyReplicas", 0))


def _settle(plane: ControlPlane, fleet: Fleet, replicas: int, on_demand: int) -> None:
    """Waits until the load for so many replicas has them, in counts and in nodes."""
    fleet.set_load(_load(replicas))
    wanted = (on_demand, replicas - on_demand)
    wait_until(lambda: _counts(plane, fleet) == wanted, f"counts {wanted}", 150)
    wait_until(lambda: kinds_of_nodes(plane.api) == wanted, f"nodes {wanted}", 150)


def test_the_floor_holds_in_real_nodes_through_growth_drought_return_and_shrinking(
    karpenter_plane, start_fleet, start_controller
) -> None:
    plane = karpenter_plane
    fleet = _split_fleet(plane, start_fleet)
    fleet.set_load(_load(1))
    controller: ControllerProcess = start_controller(fleet)
    controller.wait_deciding(records=3)

    with NodeWatch(plane) as watch:
        _settle(plane, fleet, 5, on_demand=1)
        wait_until(lambda: _ready_on_spot(plane, fleet) == 4, "what is on spot serves", 150)

        plane.api.delete(f"{NODE_CLASSES_PATH}/spot")
        wait_until(lambda: not _is_ready(plane, "spot"), "Karpenter has seen that spot cannot be had", 90)
        fleet.set_load(_load(8))
        wait_until(lambda: kinds_of_nodes(plane.api) == (4, 4), "what is added is on demand", 150)
        plane.apply(node_class("spot"))
        _settle(plane, fleet, 8, on_demand=2)
        wait_until(lambda: _audited(plane) == (2, 6, "True"), "the status says what is there", 90)

        _drift_back_after_the_cloud_had_none(plane, fleet, controller)

        fleet.set_load(_load(1))
        wait_until(lambda: _counts(plane, fleet) == (2, 0), "spot goes first, on demand waits for its nodes", 150)
    assert watch.looks > 20
    assert watch.broken == [], "at no moment"


def _drift_back_after_the_cloud_had_none(plane: ControlPlane, fleet: Fleet, controller: ControllerProcess) -> None:
    """Karpenter says of a launch on spot that it gave it up; on this provider there is always capacity."""
    plane.api.create("/api/v1/namespaces/default/events", given_up("spot-abc12"))
    fleet.wait_condition("NodesAvailable", "False", "OutOfCapacity")
    fleet.set_load(_load(10))
    wait_until(lambda: kinds_of_nodes(plane.api) == (4, 6), "what is added is on demand", 150)
    wait_until(lambda: controller.records()[-1]["input"]["replicas"]["ready"] == 10, "all of it serves", 150)

    since = len(controller.records())
    plane.api.delete("/api/v1/namespaces/default/events/given-up")
    _settle(plane, fleet, 10, on_demand=2)
    fewest = min(record["input"]["replicas"]["ready"] for record in controller.records()[since:])
    assert fewest >= 10, "what comes on spot serves before what is on demand goes"
    gone = fleet.exporters.lost(fleet.namespace)
    assert [each for each in gone if each.lost] == [], "no request is dropped"
    assert [each for each in gone if each.held], "though those that went had some"


def test_one_deployment_goes_back_to_spot_node_by_node_without_a_lost_request(
    karpenter_plane, start_fleet, start_controller
) -> None:
    """All is on demand that could be on spot. Nothing but nodes changes, neither the load nor the planned count."""
    plane = karpenter_plane
    fleet = _one_target_on_both(plane, start_fleet)
    plane.api.create("/api/v1/namespaces/default/events", given_up("spot-abc12"))
    fleet.set_load(_load(1))
    controller: ControllerProcess = start_controller(fleet)
    fleet.wait_condition("NodesAvailable", "False", "OutOfCapacity")
    fleet.set_load(_load(REPLICAS))
    wait_until(lambda: kinds_of_nodes(plane.api) == (REPLICAS, 0), "all of it is on demand", 150)
    wait_until(lambda: controller.records()[-1]["input"]["replicas"]["ready"] == REPLICAS, "and serves", 150)

    since = len(controller.records())
    with NodeWatch(plane) as watch:
        plane.api.delete("/api/v1/namespaces/default/events/given-up")
        wait_until(lambda: kinds_of_nodes(plane.api) == (1, REPLICAS - 1), "what may be is on spot", 300)
        fleet.wait_ready(REPLICAS)
    assert watch.broken == []
    records = controller.records()[since:]
    assert min(record["input"]["replicas"]["ready"] for record in records) >= REPLICAS, "spot serves before others go"
    assert {record["decision"]["desiredReplicas"] for record in records} == {REPLICAS, REPLICAS + 1}, "one at a time"
    assert fleet.condition("OnSpotAgain")["reason"] in ("OnSpotAgain", "ReturningToSpot")
    gone = fleet.exporters.lost(fleet.namespace)
    assert [each for each in gone if each.lost] == [], "no request is dropped"
    assert [each for each in gone if each.held], "though those that went had some"


@pytest.mark.skipif(not LOOKS_LONG, reason="by `make proof-karpenter`")
def test_one_deployment_whose_node_on_demand_is_lost_goes_on_demand_again_without_a_lost_request(
    karpenter_plane, start_fleet, start_controller
) -> None:
    """Four a node: what was on demand finds room on spot, and nothing but the floor asks for a node on demand."""
    plane = karpenter_plane
    fleet = _one_target_on_both(plane, start_fleet, accelerators=2, spot_limit="8")
    fleet.wait_ready(1)
    (lost,) = nodes_of(plane, "od")
    plane.api.merge(f"/api/v1/nodes/{lost}", {"spec": {"unschedulable": True}})
    plane.kubectl("scale", "deployment", "vllm", "-n", fleet.namespace, "--replicas=3")
    wait_until(lambda: kinds_of_nodes(plane.api) == (1, 1), "two are on spot", 150)
    fleet.wait_ready(3)
    fleet.set_load(_load(3))
    controller: ControllerProcess = start_controller(fleet)
    controller.wait_deciding(records=3)

    fleet.lose_node(lost)
    wait_until(lambda: kinds_of_nodes(plane.api) == (0, 1), "the floor is broken", 60)
    wait_until(lambda: fleet.condition("SplitKept").get("reason") == "RestoringFloor", "one more on demand", 200)
    since, lost_before = len(controller.records()), len(fleet.exporters.lost(fleet.namespace))
    wait_until(lambda: kinds_of_nodes(plane.api)[0] == 1, "it is there", 200)
    wait_until(lambda: kinds_of_nodes(plane.api) == (1, 0), "as the plan has it", 200)
    wait_until(lambda: fleet.condition("SplitKept")["status"] == "True", "and that is said", 60)
    records = controller.records()[since:]
    assert min(record["input"]["replicas"]["ready"] for record in records) >= 3, "others serve before these go"
    gone = fleet.exporters.lost(fleet.namespace)[lost_before:]
    assert [each for each in gone if each.lost] == [], "no request is dropped"
    assert [each for each in gone if each.held], "though those that went had some"


def _one_target_on_both(
    plane: ControlPlane, start_fleet: StartFleet, accelerators: int = 8, spot_limit: str = "0"
) -> Fleet:
    """A Deployment whose replicas may run on both kinds of nodes, and as many of them as there are nodes."""
    plane.apply(
        node_pool("od", "on-demand", limits={"nvidia.com/gpu": "8"}, weight=10),
        node_pool("spot", "spot", limits={"nvidia.com/gpu": spot_limit}, weight=1),
    )
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=accelerators, stops_in="6s")
    _create_pool(plane)
    maximum = (REPLICAS + 1) * (8 // accelerators)
    fleet.create_scaler(
        quick_policy()
        | {"acceleratorPoolRef": {"name": "h100"}, "scaleDownVictims": "WholeNodes", "maxReplicas": maximum}
    )
    return fleet


def _load(replicas: int) -> PoolLoad:
    return PoolLoad(running=3 * replicas, waiting=4 * replicas, request_seconds=1)


def _audited(plane: ControlPlane) -> tuple[int, int, str]:
    """What the status says of the real nodes: on demand, on spot, and whether the split is kept."""
    status = plane.api.get(f"{POOL_PATH}/h100")["status"]
    kept = next(each["status"] for each in status["conditions"] if each["type"] == "SplitKept")
    return status["onDemandNodes"], status["spotNodes"], kept


def _is_ready(plane: ControlPlane, name: str) -> bool:
    """Whether Karpenter says of a NodePool that it makes nodes."""
    conditions = plane.api.get(f"{PATH}/{name}")["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
