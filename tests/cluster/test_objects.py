"""The API server judges every object of the table as the Python types do, and stores what they read."""

from __future__ import annotations

import random
from typing import Any

import pytest

from autoscaler.api.accelerator_pool import (
    AcceleratorPool,
    AcceleratorPoolStatus,
    InvalidAcceleratorPool,
    parse_accelerator_pool,
)
from autoscaler.api.conditions import ConditionStatus, ConditionType, set_condition
from autoscaler.api.custom_resource_definition import render
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from autoscaler.api.pool_observation import PoolNode, PoolScaler, observe_accelerator_pool
from autoscaler.api.status import InferenceScalerStatus, read_status, restore_history, save_history, status_document
from policies.history import new_history
from policies.reasons import Reason
from tests.autoscaler.api.objects import ACCEPTED, POOL, REFUSED, SCALER, ObjectCase, changed, schedule
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.kubernetes_api import ApiError

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

Parsed = InferenceScaler | InvalidInferenceScaler | AcceleratorPool | InvalidAcceleratorPool

PATHS = {
    "InferenceScaler": "/apis/tokenscaler.io/v1alpha1/namespaces/default/inferencescalers",
    "AcceleratorPool": "/apis/tokenscaler.io/v1alpha1/acceleratorpools",
}


def create(control_plane: ControlPlane, document: dict[str, Any]) -> dict[str, Any]:
    """What the API server would store. Raises ApiError with its message where it refuses."""
    return control_plane.api.create(PATHS[document["kind"]], document, dryRun="All", fieldValidation="Strict")


def parse(document: dict[str, Any]) -> Parsed:
    is_pool = document["kind"] == "AcceleratorPool"
    return parse_accelerator_pool(document) if is_pool else parse_inference_scaler(document)


def test_the_definitions_apply_and_are_served(control_plane: ControlPlane) -> None:
    control_plane.apply(render())
    shown = control_plane.kubectl("api-resources", "--api-group=tokenscaler.io", "--no-headers")
    assert {(line.split()[0], line.split()[1]) for line in shown.splitlines()} == {
        ("acceleratorpools", "apool"),
        ("inferencescalers", "isc"),
    }


def test_kubectl_names_the_target_and_of_two_the_one_on_demand(control_plane: ControlPlane) -> None:
    targets = {
        kind: {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"vllm-{kind.lower()}"}}
        for kind in ("onDemand", "spot")
    }
    two = changed(SCALER, {"capacityTypes": targets, "scaleTargetRef": None, "acceleratorPoolRef": {"name": "h100"}})
    for name, document in (("one-target", changed(SCALER, {})), ("two-targets", two)):
        document["metadata"]["name"] = name
        control_plane.api.create(PATHS["InferenceScaler"], document)
    shown = control_plane.kubectl("get", "isc", "--no-headers", "one-target", "two-targets", "-o", "wide")
    one, both = (line.split() for line in shown.splitlines())
    assert one[2] == SCALER["spec"]["scaleTargetRef"]["name"]
    assert both[2] == "vllm-ondemand"
    assert "vllm-spot" in both
    control_plane.kubectl("delete", "isc", "one-target", "two-targets")


@pytest.mark.parametrize("case", [pytest.param(case, id=case.sentence) for case in ACCEPTED])
def test_accepted_and_stored_as_python_reads_it(control_plane: ControlPlane, case: ObjectCase) -> None:
    stored = parse(create(control_plane, case.document))
    from_file = parse(case.document)
    assert isinstance(stored, InferenceScaler | AcceleratorPool), stored.problems
    assert isinstance(from_file, InferenceScaler | AcceleratorPool), from_file.problems
    assert stored.spec == from_file.spec


@pytest.mark.parametrize("case", [pytest.param(case, id=case.sentence) for case in REFUSED])
def test_refused_with_the_field(control_plane: ControlPlane, case: ObjectCase) -> None:
    with pytest.raises(ApiError) as refused:
        create(control_plane, case.document)
    assert refused.value.status in {400, 422}
    assert case.field is not None
    assert case.field in refused.value.message


def test_cron_expressions_are_judged_alike(control_plane: ControlPlane) -> None:
    """Random expressions; a date that never comes, written in a roundabout way, only Python finds."""
    seed = 20260101
    chance = random.Random(seed)
    disagreements = []
    for _ in range(400):
        document = changed(SCALER, {"schedules": schedule(start=_cron(chance), end="59 23 31 12 7")})
        parsed = parse(document)
        try:
            create(control_plane, document)
            said = ""
        except ApiError as error:
            said = error.message
        python_said = "" if isinstance(parsed, InferenceScaler) else parsed.problems[0]
        if bool(said) != bool(python_said) and not (not said and "never happens" in python_said):
            disagreements.append((document["spec"]["schedules"][0]["start"], said, python_said))
    assert disagreements == [], f"seed {seed}"


def _cron(chance: random.Random) -> str:
    fields = [
        ("0", "59", "60", "07", "*/15", "5-10", "10-5", "1,2,3", "0-59/7", "5/10"),
        ("0", "23", "24", "*", "8-18", "*/3"),
        ("*", "1", "31", "0", "29", "30", "30,31", "28-31", "32", "*/10", "L"),
        ("*", "2", "FEB", "1-6", "JAN-MAR", "MAR-JAN", "13", "4,6", "feb", "*/2"),
        ("*", "1-5", "MON-FRI", "FRI-MON", "7", "8", "0,6", "MON#1", "*"),
    ]
    return " ".join(chance.choice(choices[:1] * 4 + choices) for choices in fields)


A_STATUS = InferenceScalerStatus(
    observed_generation=1,
    spec_replicas=4,
    ready_replicas=3,
    starting_replicas=1,
    desired_replicas=5,
    accelerators_desired=40,
    binding_reason="KVCache",
    message="5: the KV cache of a replica is 91 % full",
    reason_since="2026-01-01T08:00:00Z",
    last_scale_time="2026-01-01T08:00:00Z",
    conditions=set_condition(
        (), ConditionType.SCALING_ACTIVE, ConditionStatus.TRUE, Reason.VALID_METRIC_FOUND, "votes are counted", 1, 0.0
    ),
    history=save_history(new_history(1_790_000_000.25, 4)),
)


def test_a_status_is_stored_as_it_was_written_and_what_is_null_is_removed(control_plane: ControlPlane) -> None:
    path = f"{PATHS['InferenceScaler']}/status"
    named = changed(SCALER, {"/metadata.name": "status"})
    control_plane.api.create(PATHS["InferenceScaler"], named)
    try:
        stored = control_plane.api.merge(f"{path}/status", status_document(A_STATUS), fieldValidation="Strict")
        assert read_status(stored["status"]) == A_STATUS
        assert restore_history(stored["status"]) == new_history(1_790_000_000.25, 4)
        row = control_plane.kubectl("get", "isc", "status", "--no-headers", "-n", "default").split()
        assert row[:7] == ["status", "DryRun", "vllm-llama-70b", "3", "5", "KVCache", row[6]]
        assert row[7] == "True"
        fewer = A_STATUS.model_copy(update={"desired_replicas": None, "accelerators_desired": None})
        stored = control_plane.api.merge(f"{path}/status", status_document(fewer), fieldValidation="Strict")
        assert read_status(stored["status"]) == fewer
    finally:
        control_plane.api.delete(path)


def test_the_status_of_an_accelerator_pool_is_stored(control_plane: ControlPlane) -> None:
    path = f"{PATHS['AcceleratorPool']}/counted"
    created = control_plane.api.create(PATHS["AcceleratorPool"], changed(POOL, {"/metadata.name": "counted"}))
    try:
        pool = parse_accelerator_pool(created)
        assert isinstance(pool, AcceleratorPool)
        nodes = [PoolNode("h100-od", 8, True)]
        status = observe_accelerator_pool(pool, nodes, [PoolScaler("default", "a", 3, 8)], 0.0)
        stored = control_plane.api.merge(f"{path}/status", status_document(status), fieldValidation="Strict")
        assert AcceleratorPoolStatus.model_validate(stored["status"]) == status
        row = control_plane.kubectl("get", "apool", "counted", "--no-headers").split()
        assert row[:7] == ["counted", "Observe", "1", "8", "24", "1", "False"]
    finally:
        control_plane.api.delete(path)
