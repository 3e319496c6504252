"""Somebody else steers the same target: nothing is written, and a condition says who it is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.cluster.harness.fleet import Fleet, assert_only_rises_to
from tests.cluster.harness.policies import quick_policy
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def _hpa(fleet: Fleet) -> Callable[[], None]:
    path = f"/apis/autoscaling/v2/namespaces/{fleet.namespace}/horizontalpodautoscalers"
    body = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "cpu-scaler"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": fleet.kind, "name": fleet.name},
            "minReplicas": 2,
            "maxReplicas": 9,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }
    fleet.control_plane.api.create(path, body)
    return lambda: fleet.control_plane.api.delete(f"{path}/cpu-scaler")


def _scaled_object(fleet: Fleet) -> Callable[[], None]:
    fleet.control_plane.install_crd("scaledobject")
    path = f"/apis/keda.sh/v1alpha1/namespaces/{fleet.namespace}/scaledobjects"
    body = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "keda-scaler"},
        "spec": {"scaleTargetRef": {"name": fleet.name}},
    }
    fleet.control_plane.api.create(path, body)
    return lambda: fleet.control_plane.api.delete(f"{path}/keda-scaler")


@pytest.mark.parametrize(
    ("compete", "named"),
    [
        pytest.param(_hpa, "cpu-scaler", id="a HorizontalPodAutoscaler"),
        pytest.param(_scaled_object, "keda-scaler", id="a ScaledObject of KEDA"),
    ],
)
def test_another_autoscaler_on_the_target_is_named_and_respected(
    control_plane, start_fleet, start_controller, compete: Callable[[Fleet], Callable[[], None]], named: str
) -> None:
    control_plane.install_crd("scaledobject")
    fleet = start_fleet(replicas=2)
    remove = compete(fleet)
    fleet.create_scaler(quick_policy())
    start_controller(fleet).wait_deciding(records=2)
    fleet.set_load(PoolLoad(running=32, waiting=16))

    condition = fleet.wait_condition("AbleToScale", "False", "CompetingAutoscaler")
    assert named in condition["message"]
    time.sleep(5)
    ours = [event for event in fleet.scale_attempts() if "horizontal-pod-autoscaler" not in event.user]
    assert ours == []

    remove()
    fleet.wait_replicas(4)
    fleet.wait_condition("AbleToScale", "True")


def test_of_two_inference_scalers_on_a_target_the_older_steers(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=2)
    fleet.create_scaler(quick_policy(maximum=5), name="older")
    time.sleep(1.1)  # creation times are whole seconds
    fleet.create_scaler(quick_policy(maximum=20), name="younger")
    start_controller(fleet).wait_deciding(records=4)
    fleet.set_load(PoolLoad(running=80, waiting=40))

    fleet.wait_replicas(5)
    condition = fleet.wait_condition("AbleToScale", "False", "CompetingScaler", name="younger")
    assert "older" in condition["message"]
    time.sleep(5)
    assert_only_rises_to(fleet.written_counts(), 5)


def test_a_person_who_has_just_scaled_is_not_overruled_at_once(start_fleet, start_controller) -> None:
    fleet = start_fleet(replicas=2)
    fleet.set_load(PoolLoad(running=16, waiting=8))
    fleet.create_scaler(quick_policy())
    controller = start_controller(fleet)
    controller.wait_deciding(records=3)
    fleet.control_plane.kubectl("scale", "-n", fleet.namespace, "deployment/vllm", "--replicas=3")
    by_hand = len(fleet.scale_attempts())
    fleet.set_load(PoolLoad(running=80, waiting=40))

    condition = fleet.wait_condition("AbleToScale", "False", "CompetingWriter")
    assert "kubectl" in condition["message"]
    assert len(fleet.scale_attempts()) == by_hand
