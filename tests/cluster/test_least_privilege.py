"""The roles in deploy/base are enough, and none of their verbs is too many."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import PATIENCE, wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

BASE_DIRECTORY = Path(__file__).parents[2] / "deploy" / "base"
SIDE_BY_SIDE = 5
ACCELERATOR_POOL = {
    "apiVersion": "tokenscaler.io/v1alpha1",
    "kind": "AcceleratorPool",
    "metadata": {"name": "h100"},
    "spec": {"mode": "Observe", "nodePools": {"onDemand": "h100-od"}},
}


@dataclass(frozen=True, slots=True)
class _Grant:
    """One verb on one resource."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"

    @property
    def rule(self) -> dict[str, Any]:
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}


def _roles() -> Iterator[Mapping[str, Any]]:
    for file in sorted(BASE_DIRECTORY.glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] in ("Role", "ClusterRole"):
                yield document


def _grants() -> tuple[_Grant, ...]:
    found = {
        _Grant(group, resource, verb): None
        for role in _roles()
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    return tuple(found)


def test_no_grant_is_a_wildcard() -> None:
    assert [grant for grant in _grants() if "*" in (grant.group, grant.resource, grant.verb)] == []


def test_exactly_the_shipped_grants_are_enough(control_plane: ControlPlane, start_fleet, start_controller) -> None:
    control_plane.install_crd("leaderworkerset")
    control_plane.install_crd("scaledobject")
    control_plane.install_karpenter_crds()
    fleet = start_fleet(replicas=1)
    fleet.create_scaler(quick_policy())
    rules = [grant.rule for grant in _grants()]
    kubeconfig = control_plane.create_service_account(fleet.namespace, "exact", rules)
    controller = start_controller(fleet, kubeconfig=kubeconfig)
    controller.wait_deciding(records=2)
    _exercise(fleet)
    wait_until(lambda: bool(fleet.events()), "an Event", 30)
    controller.stop()

    account = f"system:serviceaccount:{fleet.namespace}:exact"
    refused = {
        (event.verb, event.resource)
        for event in control_plane.audit_events()
        if event.user == account and event.code == 403
    }
    assert refused == set()


def test_without_any_one_verb_it_fails_and_says_so(control_plane: ControlPlane, start_fleet, start_controller) -> None:
    control_plane.install_crd("leaderworkerset")
    control_plane.install_crd("scaledobject")
    control_plane.install_karpenter_crds()
    silent: list[str] = []
    unused: list[str] = []
    for batch in _batches(_grants()):
        for grant, user_saw_403, it_said_so in _try_without(control_plane, start_fleet, start_controller, batch):
            if not user_saw_403:
                unused.append(str(grant))
            elif not it_said_so:
                silent.append(str(grant))
    assert not unused, f"these are granted and were never used: {unused}"
    assert not silent, f"without these the API server refused, and neither log nor readiness said so: {silent}"


def _batches(grants: Sequence[_Grant]) -> Iterator[Sequence[_Grant]]:
    # An AcceleratorPool is of the whole cluster: another controller beside would write its status first.
    alone = [grant for grant in grants if grant.resource == "acceleratorpools/status"]
    others = [grant for grant in grants if grant not in alone]
    for first in range(0, len(others), SIDE_BY_SIDE):
        yield others[first : first + SIDE_BY_SIDE]
    for grant in alone:
        yield [grant]


def _try_without(
    control_plane: ControlPlane, start_fleet: Any, start_controller: Any, batch: Sequence[_Grant]
) -> Iterator[tuple[_Grant, bool, bool]]:
    fleets = [start_fleet(replicas=1, kind=_kind_for(grant), scraped=False) for grant in batch]
    pools_path = "/apis/tokenscaler.io/v1alpha1/acceleratorpools"
    if any(grant.resource == "acceleratorpools/status" for grant in batch):
        control_plane.api.create(pools_path, ACCELERATOR_POOL)
    controllers = []
    for grant, fleet in zip(batch, fleets, strict=True):
        fleet.create_scaler(quick_policy())
        rules = [other.rule for other in _grants() if other != grant]
        kubeconfig = control_plane.create_service_account(fleet.namespace, "less", rules)
        controllers.append(start_controller(fleet, f"less-{fleet.namespace}", kubeconfig=kubeconfig))
    for fleet in fleets:
        fleet.set_load(PoolLoad(running=24, waiting=12))
    deadline = time.monotonic() + PATIENCE * 45
    seen: dict[_Grant, bool] = {}
    while time.monotonic() < deadline and not all(seen.get(grant) for grant in batch):
        events = control_plane.audit_events()
        for grant, fleet in zip(batch, fleets, strict=True):
            account = f"system:serviceaccount:{fleet.namespace}:less"
            seen[grant] = any(
                event.user == account and event.code == 403 and _is_of(event.verb, event.resource, grant)
                for event in events
            )
        time.sleep(1)
    for grant, controller in zip(batch, controllers, strict=True):
        # A refused renewal of the lease, for one, is said at the end: it is released by the same verb.
        said = wait_said(controller.log_text, "forbidden")
        controller.kill()
        fleets[batch.index(grant)].scale(0)
        yield grant, seen[grant], said
    control_plane.api.delete(f"{pools_path}/{ACCELERATOR_POOL['metadata']['name']}")


def _kind_for(grant: _Grant) -> str:
    """The kind of target with which the grant is used."""
    if grant.group.startswith("leaderworkerset"):
        return "LeaderWorkerSet"
    return "StatefulSet" if grant.resource.startswith("statefulsets") else "Deployment"


def wait_said(read: Any, word: str, timeout_seconds: float = 5) -> bool:
    try:
        wait_until(lambda: word in read().lower(), word, timeout_seconds)
    except TimeoutError:
        return False
    return True


def _is_of(verb: str, resource: str, grant: _Grant) -> bool:
    # Kubernetes tells the first list of a reflector from its watch; both are refused by their own verb.
    return verb == grant.verb and resource == grant.resource


def _exercise(fleet: Fleet) -> None:
    fleet.set_load(PoolLoad(running=24, waiting=12))
    fleet.wait_replicas(3)
    fleet.wait_condition("ScalingActive", "True")
