"""What deploy/ has is taken by a real API server as it is, and gives the permissions that it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.servers.process import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE = "tokenscaler-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:tokenscaler"
READ_VERBS = {"get", "list", "watch"}


def permissions(control_plane: ControlPlane) -> dict[str, set[str]]:
    """What the account may do in the controller's namespace, by resource.group (without what everybody may)."""
    listed = control_plane.kubectl("auth", "can-i", "--list", "--no-headers", f"--as={ACCOUNT}", f"-n{NAMESPACE}")
    found: dict[str, set[str]] = {}
    for line in listed.splitlines():
        resource, verbs = line.split()[0], line[line.rindex("[") + 1 : line.rindex("]")].split()
        if not resource.startswith(("selfsubject", "[")):
            found.setdefault(resource, set()).update(verbs)
    return found


def test_the_base_is_applied_and_grants_its_roles(own_control_plane: ControlPlane) -> None:
    own_control_plane.kubectl("apply", "--server-side", "--validate=strict", "-k", DEPLOY / "base")
    found = permissions(own_control_plane)
    assert found["deployments.apps/scale"] == {"patch"}
    assert found["inferencescalers.tokenscaler.io/status"] == {"patch"}
    assert found["inferencescalers.tokenscaler.io"] == {"list", "watch"}
    assert found["leases.coordination.k8s.io"] == {"create", "get", "update"}
    assert "secrets" not in found
    in_other_namespaces = own_control_plane.kubectl(
        "auth", "can-i", "--list", "--no-headers", f"--as={ACCOUNT}", "-ndefault"
    )
    assert "leases" not in in_other_namespaces
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/tokenscaler"
    # The fake nodes run it, so this says: admitted under the restricted Pod Security Standard, and scheduled.
    wait_until(lambda: own_control_plane.api.get(path)["status"].get("readyReplicas") == 2, "2 pods", 60)


def test_the_dry_run_may_write_nothing(own_control_plane: ControlPlane) -> None:
    own_control_plane.kubectl("apply", "--server-side", "--validate=strict", "-k", DEPLOY / "overlays" / "dry-run")
    found = permissions(own_control_plane)
    assert found["pods"] == {"list", "watch"}
    assert {resource: verbs for resource, verbs in found.items() if not verbs <= READ_VERBS} == {}
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/tokenscaler"
    (container,) = own_control_plane.api.get(path)["spec"]["template"]["spec"]["containers"]
    assert "--dry-run" in container["args"]


def test_the_examples_are_applied(own_control_plane: ControlPlane) -> None:
    own_control_plane.create_namespace("inference")
    own_control_plane.kubectl("apply", "--server-side", "--validate=strict", "-f", DEPLOY / "examples")
    scalers = own_control_plane.kubectl("get", "isc", "-n", "inference", "--no-headers").splitlines()
    names = {"agents", "agents-in-bursts", "llama-8b", "queue-depth"}
    names |= {f"llama-70b{part}" for part in ("", "-decode", "-prefill", "-split")}
    assert {line.split()[0] for line in scalers} == names
    assert own_control_plane.kubectl("get", "apool", "--no-headers").split()[0] == "h100-interactive"
