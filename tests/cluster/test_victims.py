"""A real ReplicaSet takes the pods that were marked, so that whole nodes become empty."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cluster.harness.fleet import Fleet
from tests.cluster.harness.policies import quick_policy
from tests.servers.vllm_exporters import PoolLoad

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def _by_node(fleet: Fleet) -> Counter[str]:
    """Pods of each node, terminating ones left out."""
    pods = [pod for pod in fleet.pods() if "deletionTimestamp" not in pod["metadata"]]
    return Counter(pod["spec"]["nodeName"] for pod in pods)


def test_nodes_with_one_replica_become_empty(own_control_plane, start_fleet, start_controller) -> None:
    """Four nodes with room for two each: six replicas lie 2, 2, 1, 1. By itself a ReplicaSet takes from the pairs."""
    fleet: Fleet = start_fleet(replicas=6, on=own_control_plane, accelerators=4)
    before = _by_node(fleet)
    assert sorted(before.values()) == [1, 1, 2, 2]
    fleet.create_scaler(quick_policy() | {"scaleDownVictims": "WholeNodes"})
    fleet.set_load(PoolLoad(running=6, waiting=24))
    start_controller(fleet).wait_deciding(records=3)

    fleet.set_load(PoolLoad(running=4, waiting=16))
    fleet.wait_ready(4, timeout_seconds=150)
    assert _by_node(fleet) == {node: pods for node, pods in before.items() if pods == 2}
