"""The roles in deploy/base grant what the table in deploy/README.md says, to the controller's account, and no more."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"
FILES = sorted((DEPLOY / "base").glob("*.yaml"))
DOCUMENTS: list[dict[str, Any]] = [
    document for path in FILES for document in yaml.safe_load_all(path.read_text()) if document
]
WRITE_LABEL = {"tokenscaler.io/permission": "write"}

# role -> {(group, resource, name): verbs}
Grants = dict[str, dict[tuple[str, str, str], frozenset[str]]]


def table_of_the_readme() -> Grants:
    lines = (DEPLOY / "README.md").read_text().splitlines()
    begin = lines.index("| role | group | resources | verbs | why |") + 2
    grants: Grants = defaultdict(dict)
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        role, group, resources, verbs, why = (cell.strip() for cell in line.strip("|").split("|"))
        assert why
        for resource in resources.split(", "):
            plural, _, name = resource.partition(" ")
            key = ("" if group == "core" else group, plural, name.strip("()"))
            grants[role][key] = frozenset(verbs.split(", "))
    return dict(grants)


def grants_of_the_roles() -> Grants:
    grants: Grants = defaultdict(dict)
    for role in roles():
        for rule in role["rules"]:
            assert rule.keys() <= {"apiGroups", "resources", "resourceNames", "verbs"}
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for name in rule.get("resourceNames", [""]):
                        key = (group, resource, name)
                        assert key not in grants[role["metadata"]["name"]], f"{key} is granted twice"
                        grants[role["metadata"]["name"]][key] = frozenset(rule["verbs"])
    return dict(grants)


def roles() -> list[dict[str, Any]]:
    return [document for document in DOCUMENTS if document["kind"] in {"Role", "ClusterRole"}]


def bindings() -> list[dict[str, Any]]:
    return [document for document in DOCUMENTS if document["kind"] in {"RoleBinding", "ClusterRoleBinding"}]


def test_roles_grant_exactly_what_the_table_says() -> None:
    assert grants_of_the_roles() == table_of_the_readme()


def test_every_role_is_bound_to_the_controllers_account_alone() -> None:
    account = {"kind": "ServiceAccount", "name": "tokenscaler", "namespace": "tokenscaler-system"}
    assert {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings()} == {
        (role["kind"], role["metadata"]["name"]) for role in roles()
    }
    for binding in bindings():
        assert binding["subjects"] == [account]


@pytest.mark.parametrize("role", [pytest.param(role, id=role["metadata"]["name"]) for role in roles()])
def test_what_can_write_is_labelled_so_that_the_dry_run_leaves_it_out(role: dict[str, Any]) -> None:
    verbs = {verb for rule in role["rules"] for verb in rule["verbs"]}
    (binding,) = (each for each in bindings() if each["roleRef"]["name"] == role["metadata"]["name"])
    is_labelled = [each["metadata"].get("labels") == WRITE_LABEL for each in (role, binding)]
    assert is_labelled == [not verbs <= {"get", "list", "watch"}] * 2


def test_every_file_of_the_base_is_listed() -> None:
    listed = yaml.safe_load((DEPLOY / "base" / "kustomization.yaml").read_text())["resources"]
    assert sorted(listed) == [path.name for path in FILES if path.name != "kustomization.yaml"]


def test_the_controller_runs_with_little() -> None:
    (deployment,) = (document for document in DOCUMENTS if document["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["ports"] == [{"name": "http", "containerPort": 8080}]
    assert container["livenessProbe"]["httpGet"] == {"path": "/healthz", "port": "http"}
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
