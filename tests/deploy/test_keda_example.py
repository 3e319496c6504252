"""The ScaledObject that is shipped asks for what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from autoscaler.external_metrics.values import DESIRED_REPLICAS
from autoscaler.keda_external_scaler.trigger import Trigger, read_trigger

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAY = DEPLOY / "overlays" / "keda-external-scaler"


def documents(path: Path) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(path.read_text())}


SCALED_OBJECT = documents(OVERLAY / "scaled-object.yaml")["ScaledObject"]


def test_its_trigger_is_the_decided_count_of_the_first_policy() -> None:
    metadata, spec = SCALED_OBJECT["metadata"], SCALED_OBJECT["spec"]
    policy = documents(DEPLOY / "examples" / "first-policy.yaml")["InferenceScaler"]

    (trigger,) = spec["triggers"]

    assert read_trigger(metadata["namespace"], metadata["name"], trigger["metadata"]) == Trigger(
        policy["metadata"]["namespace"], policy["metadata"]["name"], DESIRED_REPLICAS, 1.0, 0.0
    )
    assert spec["scaleTargetRef"]["name"] == policy["spec"]["scaleTargetRef"]["name"]
    assert spec["minReplicaCount"] <= policy["spec"]["minReplicas"]
    assert spec["maxReplicaCount"] >= policy["spec"]["maxReplicas"]


def test_its_address_is_the_service_of_the_overlay() -> None:
    service = documents(OVERLAY / "service.yaml")["Service"]
    (trigger,) = SCALED_OBJECT["spec"]["triggers"]

    (port,) = service["spec"]["ports"]
    address = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc:{port['port']}"
    assert trigger["metadata"]["scalerAddress"] == address
    assert trigger["metadata"]["enableTLS"] == "true"
    assert (
        trigger["authenticationRef"]["name"]
        == documents(OVERLAY / "scaled-object.yaml")["TriggerAuthentication"]["metadata"]["name"]
    )


def test_its_hpa_adds_no_delay_of_its_own() -> None:
    behavior = SCALED_OBJECT["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]

    for direction in ("scaleUp", "scaleDown"):
        assert behavior[direction]["stabilizationWindowSeconds"] == 0
        assert float(behavior[direction]["tolerance"]) == 0
    assert behavior["scaleUp"]["policies"][0]["value"] >= SCALED_OBJECT["spec"]["maxReplicaCount"]
