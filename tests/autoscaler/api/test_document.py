from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.api.document import rfc3339_seconds
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler, parse_inference_scaler
from tests.autoscaler.api.objects import ACCEPTED, REFUSED, SCALER, ObjectCase, changed


def parse_kind(case: ObjectCase) -> Any:
    is_pool = case.document["kind"] == "AcceleratorPool"
    return parse_accelerator_pool(case.document) if is_pool else parse_inference_scaler(case.document)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.sentence) for case in ACCEPTED])
def test_accepted(case: ObjectCase) -> None:
    parsed = parse_kind(case)
    assert isinstance(parsed, InferenceScaler | AcceleratorPool), parsed.problems


@pytest.mark.parametrize("case", [pytest.param(case, id=case.sentence) for case in REFUSED])
def test_refused_with_the_field_and_what_is_wanted(case: ObjectCase) -> None:
    parsed = parse_kind(case)
    assert not isinstance(parsed, InferenceScaler | AcceleratorPool)
    assert len(parsed.problems) == 1
    assert case.field is not None
    assert case.field in parsed.problems[0]
    assert case.says in parsed.problems[0]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"/metadata.name": "Llama"}, "metadata.name", id="a name in capitals"),
        pytest.param({"/metadata.name": None}, "metadata.name is missing", id="no name"),
        pytest.param({"/metadata.name": "a" * 254}, "at most 253", id="a name that is too long"),
        pytest.param({"/metadata.namespace": "a.b"}, "metadata.namespace", id="a namespace with a dot"),
        pytest.param({"/metadata": "x"}, "metadata.name is missing", id="metadata that is a text"),
        pytest.param(
            {"/kind": "ScaledObject"}, 'kind is "ScaledObject"; it must be InferenceScaler', id="another kind"
        ),
        pytest.param({"/apiVersion": "tokenscaler.io/v1"}, "it must be tokenscaler.io/v1alpha1", id="another version"),
        pytest.param(
            {"behavior.scaleUp.tolerance": float("nan")},
            "spec.behavior.scaleUp.tolerance",
            id="not a number, as YAML can say it",
        ),
        pytest.param(
            {"signals.waitingRequests.perReplica": float("inf")},
            "spec.signals.waitingRequests.perReplica",
            id="an infinite number, as YAML can say it",
        ),
    ],
)
def test_what_a_file_can_say_and_an_api_server_never_hands_out(changes: dict[str, Any], problem: str) -> None:
    parsed = parse_inference_scaler(changed(SCALER, changes))
    assert isinstance(parsed, InvalidInferenceScaler)
    assert problem in "; ".join(parsed.problems)


def test_a_whole_number_written_as_4_0_in_yaml_is_an_integer_as_kubectl_has_it() -> None:
    parsed = parse_inference_scaler(changed(SCALER, {"minReplicas": 4.0}))
    assert isinstance(parsed, InferenceScaler)
    assert parsed.spec.min_replicas == 4


def test_every_problem_is_told_at_once() -> None:
    parsed = parse_inference_scaler(
        changed(SCALER, {"/kind": "X", "maxReplicas": "16", "mode": "Off", "engin": "vllm"})
    )
    assert isinstance(parsed, InvalidInferenceScaler)
    assert sorted(parsed.problems) == [
        'kind is "X"; it must be InferenceScaler',
        "spec.engin is not a known field; did you mean engine?",
        'spec.maxReplicas is "16"; it must be a whole number',
        "spec.mode is \"Off\"; it must be 'DryRun', 'ScaleUpOnly', 'Scale' or 'ExternalMetric'",
    ]


def test_a_refused_object_keeps_who_it_is_and_its_status() -> None:
    metadata = {"name": "a", "namespace": "b", "uid": "u", "generation": 7}
    parsed = parse_inference_scaler({"metadata": metadata, "status": {"desiredReplicas": 4}})
    assert isinstance(parsed, InvalidInferenceScaler)
    assert (parsed.key, parsed.uid, parsed.generation) == (("b", "a"), "u", 7)
    assert parsed.status == {"desiredReplicas": 4}


def test_an_accepted_object_says_who_it_is() -> None:
    metadata = {"name": "a", "uid": "u", "generation": 7, "creationTimestamp": "2026-11-30T06:00:00Z"}
    parsed = parse_inference_scaler(SCALER | {"metadata": metadata})
    assert isinstance(parsed, InferenceScaler)
    assert (parsed.key, parsed.uid, parsed.generation) == (("default", "a"), "u", 7)
    assert parsed.created_at_seconds == rfc3339_seconds("2026-11-30T06:00:00+00:00")


def test_the_parameters_of_a_decision_are_the_specs_own() -> None:
    parsed = parse_inference_scaler(changed(SCALER, {"signals.kvCache.headroomPercent": 20}))
    assert isinstance(parsed, InferenceScaler)
    dumped = parsed.spec.parameters.model_dump()
    assert dumped == {name: value for name, value in parsed.spec.model_dump().items() if name in dumped}
    assert "engine" not in dumped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("2026-11-30T00:00:00Z", 1_795_996_800.0, id="whole seconds"),
        pytest.param("2026-11-30T00:00:00.250000Z", 1_795_996_800.25, id="microseconds"),
        pytest.param("2026-11-30T02:00:00+02:00", 1_795_996_800.0, id="another zone"),
        pytest.param("yesterday", None, id="no time"),
        pytest.param(None, None, id="absent"),
    ],
)
def test_times_as_kubernetes_writes_them(text: str | None, expected: float | None) -> None:
    assert rfc3339_seconds(text) == expected
