"""On a real Karpenter: a node that could be saved stays while the replica there loads, and goes when it is Ready.

Takes six minutes, of which most is Karpenter's own patience: played by `make proof-karpenter`, no part of a test run.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.controller_process import ControllerProcess
from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.node_pools import node_pool, nodes_of
from tests.cluster.harness.policies import quick_policy
from tests.servers.process import wait_until
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200)]

DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# Karpenter looks for nodes to save every 10 s and makes sure for 15 s: it could do so twice over while a replica loads.
LOADS_IN = "75s"


def test_a_node_is_saved_only_when_its_replica_has_loaded(karpenter_plane, start_fleet, start_controller) -> None:
    plane = karpenter_plane
    fleet = _two_nodes_of_which_one_could_go(plane, start_fleet, start_controller, is_protected=True)
    loading = _loading(fleet)
    assert loading["metadata"]["annotations"][DO_NOT_DISRUPT].endswith("s"), "and no longer than a start may take"
    name, node = loading["metadata"]["name"], loading["spec"]["nodeName"]

    # Karpenter says of a node once in two minutes what holds it back, and has said that it is too young: so by deeds.
    while not _is_ready(fleet, name):
        assert not _is_leaving(plane, node), "not while the replica loads"
        wait_until(lambda: True, "a look", 1, poll_seconds=1)
    wait_until(lambda: _is_leaving(plane, node), "Karpenter saves the node", 120)
    wait_until(lambda: node not in nodes_of(plane, "od"), "it is gone", 120)
    fleet.wait_ready(2, timeout_seconds=200)
    assert len(nodes_of(plane, "od")) == 1


def test_without_protection_the_start_is_thrown_away(karpenter_plane, start_fleet, start_controller) -> None:
    plane = karpenter_plane
    fleet = _two_nodes_of_which_one_could_go(plane, start_fleet, start_controller, is_protected=False)
    loading = _loading(fleet)
    name, node = loading["metadata"]["name"], loading["spec"]["nodeName"]
    wait_until(lambda: _is_leaving(plane, node), "Karpenter saves the node", 120)
    assert not _is_ready(fleet, name), "while the replica still loads"


def _two_nodes_of_which_one_could_go(
    plane: ControlPlane, start_fleet: Any, start_controller: Any, *, is_protected: bool
) -> Fleet:
    """A node that stays in any case, with room by now; on another one there is a replica that has begun to load."""
    pool = node_pool("od", "on-demand", limits={"nvidia.com/gpu": "24"}, weight=10)
    pool["spec"]["disruption"] |= {"consolidationPolicy": "WhenEmptyOrUnderutilized"}
    plane.apply(pool, _pod("anchor", accelerators=2, stays=True), _pod("filler", accelerators=4))
    fleet: Fleet = start_fleet(replicas=1, on=plane, accelerators=2, loads_in=LOADS_IN)
    assert len(nodes_of(plane, "od")) == 1, "all of it on one node, which is full"
    fleet.create_scaler(quick_policy() | {"protectLoadingReplicas": is_protected})
    fleet.set_load(PoolLoad(running=1, waiting=4))
    controller: ControllerProcess = start_controller(fleet)
    controller.wait_deciding(records=3)
    fleet.set_load(PoolLoad(running=2, waiting=8))
    fleet.wait_replicas(2)

    def is_there() -> bool:
        placed = [pod for pod in fleet.pods() if pod["spec"].get("nodeName")]
        marked = [pod for pod in placed if DO_NOT_DISRUPT in pod["metadata"]["annotations"]]
        return len(placed) == 2 and len(marked) == int(is_protected)

    wait_until(is_there, "the second replica loads on a node of its own", 60)
    assert len(nodes_of(plane, "od")) == 2
    plane.api.delete("/api/v1/namespaces/default/pods/filler")
    return fleet


def _pod(name: str, *, accelerators: int, stays: bool = False) -> dict[str, Any]:
    """Somebody else's, which belongs to nothing."""
    limits = {"nvidia.com/gpu": str(accelerators)}
    annotations = {DO_NOT_DISRUPT: "true"} if stays else {}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    container = {"name": name, "image": name, "resources": {"limits": limits}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def _loading(fleet: Fleet) -> dict[str, Any]:
    return next(pod for pod in fleet.pods() if not _ready(pod))


def _is_ready(fleet: Fleet, name: str) -> bool:
    return any(_ready(pod) for pod in fleet.pods() if pod["metadata"]["name"] == name)


def _ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _is_leaving(plane: ControlPlane, node: str) -> bool:
    """Whether Karpenter has begun to take the node away, or has done so."""
    found = plane.api.find(f"/api/v1/nodes/{node}")
    if found is None or "deletionTimestamp" in found["metadata"]:
        return True
    return any(taint["key"] == "karpenter.sh/disrupted" for taint in found["spec"].get("taints", ()))
