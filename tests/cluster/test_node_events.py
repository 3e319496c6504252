"""A node that begins to leave is answered at once, however far away the next look is."""

from __future__ import annotations

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

TAINT = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
LONGEST_TICK_SECONDS = 60


def test_the_taint_of_a_drain_wakes_the_loop(control_plane, start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=1)
    fleet.create_scaler(quick_policy())
    fleet.set_load(PoolLoad(running=1, waiting=4))
    controller = start_controller(fleet, tick_seconds=LONGEST_TICK_SECONDS)
    controller.wait_deciding()
    (pod,) = fleet.pods()
    node = f"/api/v1/nodes/{pod['spec']['nodeName']}"
    try:
        control_plane.api.merge(node, {"spec": {"taints": [TAINT]}})
        fleet.wait_replicas(2, timeout_seconds=90)
        wait_until(lambda: len(controller.records()) >= 2, "the second look is recorded", 30)
        before, last = (record["input"] for record in controller.records()[:2])
        assert last["replicas"]["leaving"] == 1
        assert last["nowSeconds"] - before["nowSeconds"] < LONGEST_TICK_SECONDS, "sooner than by the interval"
    finally:
        control_plane.api.merge(node, {"spec": {"taints": []}})
