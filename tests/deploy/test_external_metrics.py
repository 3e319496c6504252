"""The overlay of the metrics API grants what its table says, and lets nobody but the HPA controller read."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from autoscaler.controller.published_metrics import METRIC_NAMES
from autoscaler.external_metrics.settings import MetricsApiSettings

DEPLOY = Path(__file__).parents[2] / "deploy"
OVERLAY = DEPLOY / "overlays" / "external-metrics"
PAGE = (DEPLOY / "external-metrics.md").read_text()
DOCUMENTS: list[dict[str, Any]] = [
    document
    for path in sorted(OVERLAY.glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
    if document and document["kind"] != "Kustomization"
]
CONTROLLER = {"kind": "ServiceAccount", "name": "tokenscaler", "namespace": "tokenscaler-system"}
HPA_CONTROLLER = {"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler", "namespace": "kube-system"}
READERS = "tokenscaler-metrics-readers"

Grants = dict[tuple[str, str, str, str], set[str]]


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for document in DOCUMENTS if document["kind"] in kinds]


def table_of_the_page() -> Grants:
    lines = PAGE.splitlines()
    begin = lines.index("| role | group | resources | verbs | why |") + 2
    grants: Grants = {}
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        role, group, resource, verbs, why = (cell.strip() for cell in line.strip("|").split("|"))
        assert why
        plural, _, name = resource.partition(" ")
        grants[role, "" if group == "core" else group, plural, name.strip("()")] = set(verbs.split(", "))
    return grants


def grants_of_the_roles() -> Grants:
    grants: Grants = defaultdict(set)
    for role in of_kind("Role", "ClusterRole"):
        for rule in role["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        grants[role["metadata"]["name"], group, resource, name] |= set(rule["verbs"])
    return dict(grants)


def test_the_controllers_roles_grant_exactly_what_the_table_says() -> None:
    granted = {key: verbs for key, verbs in grants_of_the_roles().items() if key[0] != READERS}
    assert granted == table_of_the_page()


def test_the_hpa_controller_is_the_only_reader() -> None:
    assert grants_of_the_roles()[READERS, "external.metrics.k8s.io", "*", ""] == {"get", "list"}
    subjects = {each["roleRef"]["name"]: each["subjects"] for each in of_kind("RoleBinding", "ClusterRoleBinding")}
    assert subjects.pop(READERS) == [HPA_CONTROLLER]
    assert all(bound == [CONTROLLER] for bound in subjects.values())
    assert set(subjects) == {key[0] for key in table_of_the_page()} | {"extension-apiserver-authentication-reader"}


def test_service_and_api_service_lead_to_what_the_controller_serves() -> None:
    (service,), (api_service,) = of_kind("Service"), of_kind("APIService")
    names = MetricsApiSettings(host="", port=0, service_namespace=service["metadata"]["namespace"]).names
    assert names[0] == f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    assert api_service["spec"]["service"] == {
        "namespace": service["metadata"]["namespace"],
        "name": service["metadata"]["name"],
        "port": service["spec"]["ports"][0]["port"],
    }
    # Or nobody would verify us, and whoever sits between could say any count.
    assert "insecureSkipTLSVerify" not in api_service["spec"]


def test_every_metric_is_explained() -> None:
    assert [name for name in METRIC_NAMES if f"`{name}`" not in PAGE] == []
