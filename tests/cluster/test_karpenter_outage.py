"""On a real Karpenter that is down for two whole minutes: it is said, nothing wrong is written, and all is well after.

Takes five minutes, of which most is waiting: played by `make proof-karpenter`, and no part of a test run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, written_count
from tests.cluster.harness.node_pools import limits_of, node_pool, nodes_of, refusals
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

POOL_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
OUTAGE_SECONDS = 120
STANDING = 2
# What the load needs while nobody makes nodes, one after the other.
NEEDED = (4, 2, 5, 1, 3)


def test_two_minutes_without_karpenter(karpenter_plane, start_fleet, start_controller) -> None:
    plane = karpenter_plane
    plane.apply(node_pool("od", "on-demand", limits={"nvidia.com/gpu": "16", "cpu": "384"}, weight=10))
    fleet: Fleet = start_fleet(replicas=STANDING, on=plane, accelerators=8)
    spec = {"mode": "Manage", "nodePools": {"onDemand": "od"}, "nodeShape": {"accelerators": 8, "cpu": 192}}
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
    plane.api.create(POOL_PATH, pool | {"spec": spec})
    fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": "h100"}})
    _load(fleet, STANDING)
    controller: ControllerProcess = start_controller(fleet)
    controller.wait_deciding(records=3)
    wait_until(lambda: limits_of(plane, "od")["nvidia.com/gpu"] == "24", "two nodes and one to spare", 30)

    seen = len(plane.audit_events())
    plane.component("karpenter").kill()
    down_seconds = time.monotonic()
    for number, replicas in enumerate(NEEDED, start=1):
        _load(fleet, replicas)
        fleet.wait_replicas(replicas)
        until = down_seconds + OUTAGE_SECONDS * number / len(NEEDED)
        wait_until(lambda until=until: time.monotonic() >= until, "time passes", OUTAGE_SECONDS)
    assert time.monotonic() - down_seconds >= OUTAGE_SECONDS
    condition = _condition(plane, "LimitsInStep")
    assert (condition["status"], condition["reason"]) == ("False", "KarpenterSilent"), condition
    assert fleet.condition("NodesAvailable")["reason"] == "KarpenterSilent"
    assert _nodes_made(plane) == STANDING, "nobody made or took a node"
    _assert_rightly_written(plane, fleet, seen)

    plane.restart_karpenter(capacity_buffers=False)
    fleet.wait_ready(NEEDED[-1], timeout_seconds=120)
    wait_until(lambda: _condition(plane, "LimitsInStep").get("status") == "True", "limits are in step again", 90)
    fleet.wait_condition("NodesAvailable", "True")
    assert refusals(plane, fleet.namespace) == []

    _show_a_gate_that_is_off(plane)


def _show_a_gate_that_is_off(plane: ControlPlane) -> None:
    """Karpenter is up and looks at no CapacityBuffer: that is said, and that nodes come with the replicas."""
    plane.api.merge(f"{POOL_PATH}/h100", {"spec": {"prewarm": {"method": "CapacityBuffer", "spareNodes": 1}}})
    wait_until(lambda: _condition(plane, "NodesHeldReady").get("reason") == "CapacityBufferSilent", "nobody looks", 120)
    condition = _condition(plane, "NodesHeldReady")
    assert condition["status"] == "False"
    assert "is Karpenter's feature gate CapacityBuffer on" in condition["message"]
    assert _condition(plane, "LimitsInStep")["status"] == "True", "Karpenter itself is well"

    plane.restart_karpenter(capacity_buffers=True)
    wait_until(lambda: _condition(plane, "NodesHeldReady").get("status") == "True", "the gate is on", 120)
    wait_until(lambda: len(nodes_of(plane, "od")) == NEEDED[-1] + 1, "a node stands ready", 120)


def _assert_rightly_written(plane: ControlPlane, fleet: Fleet, seen: int) -> None:
    """Whole nodes, never fewer than stand there, never more than the plan, and before the replicas that need them."""
    limits = list(_limits_written(plane, seen))
    assert limits, "the load changed, and so did the limits"
    assert all(accelerators % 8 == 0 and cpu == 24 * accelerators for _, accelerators, cpu in limits), limits
    assert all(STANDING <= accelerators // 8 <= max(NEEDED) + 1 for _, accelerators, _ in limits), limits
    counts = [(write.revision, written_count(write)) for write in fleet.scale_writes()]
    assert [count for _, count in counts][-len(NEEDED) :] == list(NEEDED), counts
    for revision, count in counts[-len(NEEDED) :]:
        before = [accelerators // 8 for at, accelerators, _ in limits if at < revision]
        assert count <= (before[-1] if before else STANDING + 1), (revision, count, limits)


def _limits_written(plane: ControlPlane, seen: int) -> Iterator[tuple[int, int, int]]:
    """Revision, accelerators and CPUs of each write of the limits since so many events."""
    for event in plane.audit_events()[seen:]:
        if event.is_write and event.resource == "nodepools" and event.code == 200 and "limits" in str(event.request):
            limits = (event.response or {})["spec"]["limits"]
            yield event.revision, int(limits["nvidia.com/gpu"]), int(limits["cpu"])


def _nodes_made(plane: ControlPlane) -> int:
    return len(plane.api.items("/apis/karpenter.sh/v1/nodeclaims"))


def _load(fleet: Fleet, replicas: int) -> None:
    fleet.set_load(PoolLoad(running=replicas, waiting=4 * replicas))


def _condition(plane: ControlPlane, kind: str) -> dict[str, Any]:
    conditions = plane.api.get(f"{POOL_PATH}/h100").get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), {})
