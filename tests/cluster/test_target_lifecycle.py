"""The target goes, comes back, stands at zero, rolls out or is paused: the count stays right through all of it."""

from __future__ import annotations

import time

import pytest

from tests.cluster.harness.policies import quick_policy
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def test_a_deleted_target_is_a_condition_and_a_new_one_of_its_name_is_steered(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=2)
    fleet.set_load(PoolLoad(running=16, waiting=8))
    fleet.create_scaler(quick_policy())
    controller = start_controller(fleet)
    controller.wait_deciding(records=3)

    fleet.delete_target()
    condition = fleet.wait_condition("TargetFound", "False", "TargetNotFound")
    assert "vllm" in condition["message"]
    assert controller.running

    fleet.create_target(3)
    fleet.wait_ready(3)
    fleet.wait_condition("TargetFound", "True")
    fleet.set_load(PoolLoad(running=40, waiting=20))
    fleet.wait_replicas(5)
    assert fleet.written_counts()[-1] == 5


def test_a_target_that_somebody_put_to_zero_stays_there(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=0)
    fleet.create_scaler(quick_policy(minimum=2))
    start_controller(fleet).wait_deciding(records=3)

    fleet.wait_condition("ScalingActive", "False", "ScalingDisabled")
    time.sleep(5)
    assert fleet.written_counts() == []


def test_a_rollout_with_surge_changes_no_count(start_fleet, start_controller) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}
    fleet = start_fleet(replicas=3, loads_in="4s", stops_in="3s", strategy=strategy)
    fleet.set_load(PoolLoad(running=24, waiting=12))
    time.sleep(2)
    # Longer than the queue stays with a pod of the old version that is about to go and no longer counts.
    fleet.create_scaler(quick_policy(down_window_seconds=60))
    controller = start_controller(fleet)
    controller.wait_deciding(records=3)
    before = len(controller.records())

    template = {"metadata": {"labels": {"app": "vllm", "image": "new"}}}
    fleet.control_plane.api.merge(fleet.target_path, {"spec": {"template": template}})
    seen = controller.wait_record(lambda record: record["input"]["replicas"]["status"] > 3, "surge pods are seen")
    assert seen["input"]["replicas"]["spec"] == 3
    fleet.wait_ready(3)
    time.sleep(8)
    assert fleet.written_counts() == []
    assert {record["decision"]["desiredReplicas"] for record in controller.records()[before:]} == {3}


def test_a_paused_deployment_is_scaled_all_the_same(start_fleet, start_controller) -> None:
    # A paused rollout stops new pod templates, not the number of pods: waiting requests need replicas all the same.
    fleet = start_fleet(replicas=2)
    fleet.set_load(PoolLoad(running=16, waiting=8))
    fleet.control_plane.api.merge(fleet.target_path, {"spec": {"paused": True}})
    fleet.create_scaler(quick_policy())
    start_controller(fleet).wait_deciding(records=3)
    fleet.set_load(PoolLoad(running=32, waiting=16))
    fleet.wait_replicas(4)
