"""On a real Karpenter: a warm node is handed over, and two pools share what the ceiling leaves by priority."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet, wait_scraped
from tests.cluster.harness.node_pools import node_pool, nodes_of
from tests.cluster.harness.policies import quick_policy
from tests.cluster.harness.workloads import deployment
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CEILING_NODES = 8
WARM = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "warm"}, "value": -10}


def test_a_warm_node_is_handed_over_and_what_is_short_is_shared_by_priority(
    karpenter_plane, start_fleet, start_controller, prometheus
) -> None:
    plane = karpenter_plane
    pool = node_pool("od", "on-demand", limits={"nvidia.com/gpu": "24"}, weight=10)
    plane.apply(WARM | {"preemptionPolicy": "Never"}, pool)
    chat: Fleet = start_fleet(replicas=2, on=plane, accelerators=8, scraped=False)
    batch: Fleet = start_fleet(replicas=1, on=plane, accelerators=8, scraped=False)
    wait_scraped(prometheus, chat, batch)
    _create_pool(plane, chat)
    for fleet, priority in ((chat, 100), (batch, 0)):
        fleet.create_scaler(quick_policy() | {"acceleratorPoolRef": {"name": "h100"}, "priority": priority})
    _load(chat, 2)
    _load(batch, 1)
    controller: ControllerProcess = start_controller(chat, namespaces=[chat.namespace, batch.namespace])
    controller.wait_deciding(records=6)

    wait_until(lambda: _warm_node(plane, chat) is not None, "a node is held ready", 150)
    warm = _warm_node(plane, chat)
    _load(chat, 3)
    chat.wait_ready(3, timeout_seconds=150)
    assert warm in {pod["spec"]["nodeName"] for pod in chat.pods() if pod["metadata"]["labels"]["app"] == "vllm"}

    _load(batch, 8)
    batch.wait_replicas(5, timeout_seconds=150)
    wait_until(lambda: _placeholders(plane, chat) == 0, "replicas come first", 90)
    _load(chat, 6)
    chat.wait_replicas(6, timeout_seconds=150)
    batch.wait_replicas(2, timeout_seconds=150)
    chat.wait_ready(6, timeout_seconds=200)
    assert len(nodes_of(plane, "od")) <= CEILING_NODES
    assert _accelerators_step(controller, batch) == (8, 2), "what was asked and what was given"
    assert _accelerators_step(controller, chat) is None, "it got what it asked for"


def _load(fleet: Fleet, replicas: int) -> None:
    fleet.set_load(PoolLoad(running=replicas, waiting=4 * replicas))


def _create_pool(plane: ControlPlane, fleet: Fleet) -> None:
    placeholders = deployment(fleet.namespace, "warm", 0, accelerators=8)
    placeholders["spec"]["template"]["spec"] |= {"priorityClassName": "warm", "terminationGracePeriodSeconds": 0}
    plane.api.create(f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments", placeholders)
    spec = {
        "mode": "Manage",
        "nodePools": {"onDemand": "od"},
        "nodeShape": {"accelerators": 8},
        "ceilings": {"accelerators": 8 * CEILING_NODES},
        "prewarm": {
            "method": "PlaceholderPods",
            "placeholderRef": {"namespace": fleet.namespace, "name": "warm"},
            "spareNodes": 1,
        },
    }
    pool = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
    plane.api.create("/apis/tokenscaler.io/v1alpha1/acceleratorpools", pool | {"spec": spec})


def _warm_node(plane: ControlPlane, fleet: Fleet) -> str | None:
    """The node that a placeholder holds, once it runs there."""
    running = [
        pod["spec"]["nodeName"]
        for pod in fleet.pods()
        if pod["metadata"]["labels"]["app"] == "warm" and pod["status"].get("phase") == "Running"
    ]
    return str(running[0]) if running else None


def _placeholders(plane: ControlPlane, fleet: Fleet) -> int:
    path = f"/apis/apps/v1/namespaces/{fleet.namespace}/deployments/warm"
    return int(plane.api.get(path)["spec"]["replicas"])


def _accelerators_step(controller: ControllerProcess, fleet: Fleet) -> tuple[int, int] | None:
    """What the newest record of a pool says that accelerators made of its count; None: nothing."""
    mine: list[dict[str, Any]] = [each for each in controller.records() if each["namespace"] == fleet.namespace]
    steps = [step for step in mine[-1]["decision"].get("steps", ()) if step["name"] == "accelerators"]
    return (steps[0]["before"], steps[0]["after"]) if steps else None
