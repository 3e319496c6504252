"""The right to make CapacityBuffers reaches no further than the controller's own namespace, and no pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

OVERLAY = Path(__file__).parents[2] / "deploy" / "overlays" / "capacity-buffers"


def test_what_is_granted_is_what_is_sent_and_in_one_namespace() -> None:
    documents = yaml.safe_load_all((OVERLAY / "role_capacity_buffers.yaml").read_text())
    by_kind: dict[str, dict[str, Any]] = {document["kind"]: document for document in documents}
    assert set(by_kind) == {"Role", "RoleBinding"}
    assert {each["metadata"]["namespace"] for each in by_kind.values()} == {"tokenscaler-system"}
    granted = {(rule["apiGroups"][0], *rule["resources"]): rule["verbs"] for rule in by_kind["Role"]["rules"]}
    assert granted == {
        ("autoscaling.x-k8s.io", "capacitybuffers"): ["list", "watch", "create", "patch", "delete"],
        ("", "podtemplates"): ["create", "patch", "delete"],
    }
    binding = by_kind["RoleBinding"]
    assert binding["roleRef"]["name"] == by_kind["Role"]["metadata"]["name"]
    assert [subject["name"] for subject in binding["subjects"]] == ["tokenscaler"]


def test_the_overlay_holds_what_a_managed_pool_needs_as_well() -> None:
    resources = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text())["resources"]
    assert resources == ["../node-pools", "role_capacity_buffers.yaml"]
