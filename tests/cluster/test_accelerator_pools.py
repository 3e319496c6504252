"""On a real Karpenter: limits are there before the pods that need them, hold the ceiling, and follow the nodes down."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from tests.cluster.conftest import StartController, StartFleet
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet, written_count
from tests.cluster.harness.node_ledger import Change, LedgerEntry, NodeLedger
from tests.cluster.harness.node_pools import (
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

    with NodeLedger(plane) as ledger:
        _grow_and_shrink(plane, fleet)
        entries = ledger.entries_until_now(plane)
    _assert_in_order(
        entries, _written_limits(plane), [(each.revision, written_count(each)) for each in fleet.scale_writes()]
    )


def _grow_and_shrink(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.set_load(_queue(5))
    fleet.wait_ready(5)
    assert _limit_nodes(plane, "od") == 6
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


def _written_limits(plane: ControlPlane) -> list[tuple[int, int]]:
    """The limits of NodePool od in whole nodes, by the revision at which they were written."""
    writes = plane.writes(resource="nodepools", namespace="")
    return [
        (write.revision, int(write.response["spec"]["limits"]["nvidia.com/gpu"]) // ACCELERATORS)
        for write in sorted(writes, key=lambda write: write.revision)
        if write.name == "od" and write.response is not None and write.code in (200, 201)
    ]


def _assert_in_order(
    entries: Sequence[LedgerEntry], limits: Sequence[tuple[int, int]], counts: Sequence[tuple[int, int]]
) -> None:
    """By the order in which all of it was stored: limits, then replicas, then nodes; and the other way round down."""
    raised = [(revision, count) for (_, before), (revision, count) in pairwise([(0, 2), *counts]) if count > before]
    assert raised, "replicas were raised"
    early = [each for each in raised if _at(limits, each[0]) < each[1]]
    assert early == [], "no replica is asked for before the limit lets its node come"

    ordered = [entry for entry in entries if entry.change is Change.ORDERED and entry.revision > counts[0][0]]
    assert ordered, "nodes were ordered"
    surplus = [entry for entry in ordered if entry.staying["od"] > _at(counts, entry.revision)]
    assert surplus == [], "never a node more than the plan has replicas"

    lowered = [(revision, nodes) for (_, before), (revision, nodes) in pairwise(limits) if nodes < before]
    assert lowered, "limits were lowered"
    staying = [(entry.revision, entry.staying.get("od", 0)) for entry in entries]
    hasty = [each for each in lowered if _at(staying, each[0]) > each[1]]
    assert hasty == [], "no limit comes down before its nodes have gone"


def _at(known: Sequence[tuple[int, int]], revision: int) -> int:
    """The last known number at a revision."""
    return [number for at, number in known if at <= revision][-1]
