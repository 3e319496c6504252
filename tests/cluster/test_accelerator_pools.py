"""On a real Karpenter: limits are there before the pods that need them, hold the ceiling, and follow the nodes down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.conftest import CRD_DIRECTORY, StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_pools import (
    INSTANCE_TYPES,
    NODE_CLASS,
    limits_of,
    node_pool,
    nodes_of,
    refusals,
)
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
# A whole node each: the kwok provider counts what pods request, so only such pods are counted as on a real cloud.
ACCELERATORS = 8
CEILING = 64


@pytest.fixture
def karpenter_plane() -> Iterator[ControlPlane]:
    with ControlPlane(karpenter_instance_types=INSTANCE_TYPES) as started:
        started.apply(CRD_DIRECTORY)
        started.apply(NODE_CLASS)
        yield started


def _queue(replicas: int) -> PoolLoad:
    return PoolLoad(running=replicas, waiting=4 * replicas)


def _limit_nodes(plane: ControlPlane, name: str) -> int:
    limits = limits_of(plane, name)
    accelerators, cpu = int(limits["nvidia.com/gpu"]), int(limits["cpu"])
    assert (accelerators % ACCELERATORS, cpu) == (0, 24 * accelerators), "whole nodes, all keys together"
    return accelerators // ACCELERATORS


def _managed_fleet(plane: ControlPlane, start_fleet: StartFleet, start_controller: StartController) -> Fleet:
    """Two replicas of a node each, whose NodePool is in step."""
    plane.apply(node_pool("od", "on-demand", limits={"nvidia.com/gpu": "16", "cpu": "384"}, weight=10))
    fleet = start_fleet(replicas=2, on=plane, accelerators=ACCELERATORS)
    plane.api.create(POOL_PATH, _accelerator_pool())
    fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": "h100"}})
    fleet.set_load(_queue(2))
    start_controller(fleet).wait_deciding(records=3)
    wait_until(lambda: _limit_nodes(plane, "od") == 3, "two nodes and one to spare", 30)
    return fleet


def test_limits_are_raised_in_time_and_follow_the_nodes_down(karpenter_plane, start_fleet, start_controller) -> None:
    plane, fleet = karpenter_plane, _managed_fleet(karpenter_plane, start_fleet, start_controller)

    fleet.set_load(_queue(5))
    fleet.wait_ready(5)
    assert _limit_nodes(plane, "od") == 6
    _assert_nodes_before_replicas(plane, fleet)
    assert refusals(plane, fleet.namespace) == []
    assert len(nodes_of(plane, "od")) == 5

    fleet.set_load(_queue(20))
    fleet.wait_ready(8)
    assert _limit_nodes(plane, "od") == CEILING // ACCELERATORS, "the ceiling, slack included"
    condition = fleet.wait_condition("ScalingLimited", "True", "AcceleratorCeiling")
    assert "wanted 20, capped at 8 by 64 accelerators of h100" in condition["message"]
    assert refusals(plane, fleet.namespace) == []

    fleet.set_load(_queue(1))
    fleet.wait_replicas(1, timeout_seconds=90)
    wait_until(lambda: len(nodes_of(plane, "od")) == 1, "empty nodes go", 120)
    wait_until(lambda: _limit_nodes(plane, "od") == 2, "the limit follows them", 120)
    status = plane.api.get(f"{POOL_PATH}/h100")["status"]
    assert (status["nodesNeeded"], status["limitNodes"]) == (1, 2)


def test_limits_set_by_hand_are_left_alone_and_said(karpenter_plane, start_fleet, start_controller) -> None:
    plane, fleet = karpenter_plane, _managed_fleet(karpenter_plane, start_fleet, start_controller)

    plane.kubectl(
        "patch", "nodepool", "od", "--type=merge", "-p", '{"spec":{"limits":{"nvidia.com/gpu":"32","cpu":"768"}}}'
    )
    _wait_pool_condition(plane, "CompetingWriter", '"kubectl-patch" has just set the limits of NodePool od')
    assert _limit_nodes(plane, "od") == 4

    plane.kubectl("delete", "nodepool", "od", "--wait=false")
    _wait_pool_condition(plane, "NodePoolNotFound", "there is no NodePool od")
    assert fleet.replicas() == 2


def _accelerator_pool() -> dict[str, object]:
    return {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "AcceleratorPool",
        "metadata": {"name": "h100"},
        "spec": {
            "mode": "Manage",
            "nodePools": {"onDemand": "od"},
            "nodeShape": {"accelerators": ACCELERATORS, "cpu": 192},
            "ceilings": {"accelerators": CEILING},
        },
    }


def _wait_pool_condition(plane: ControlPlane, reason: str, words: str) -> None:
    def says() -> bool:
        conditions = plane.api.get(f"{POOL_PATH}/h100").get("status", {}).get("conditions", [])
        found = [each for each in conditions if each["type"] == "LimitsInStep" and each["reason"] == reason]
        return any(each["status"] == "False" and words in each["message"] for each in found)

    wait_until(says, f"LimitsInStep is False: {reason}", 60)


def _assert_nodes_before_replicas(plane: ControlPlane, fleet: Fleet) -> None:
    limits = [event.at for event in plane.writes(resource="nodepools", namespace="") if event.code == 200]
    scales = [event.at for event in fleet.scale_writes()]
    assert limits, "limits were written"
    assert scales, "replicas were written"
    assert any(at <= scales[0] for at in limits[1:]), "the limit of the step stands before its replicas are written"
