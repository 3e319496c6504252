"""What is told of a NodePool by its document, its nodes, its NodeClaims and the DaemonSets that run there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from autoscaler.api.pod_requests import PodRequests
from autoscaler.kubernetes_gateway.cluster_accelerators import ClusterAccelerators
from autoscaler.kubernetes_gateway.watched_launches import LaunchNotes
from autoscaler.kubernetes_gateway.watched_objects import reduce_daemon_set, reduce_node, reduce_node_pool
from autoscaler.observers.node_pools import NodePoolSeen

LABELS = {"karpenter.sh/nodepool": "od"}
WHOLE = {"nvidia.com/gpu": "8", "cpu": "192"}
LEFT = {"nvidia.com/gpu": "8", "cpu": "191450m"}
NODE_POOL = {
    "metadata": {"name": "od"},
    "spec": {"template": {"spec": {"taints": [{"key": "x", "effect": "NoExecute"}]}}},
    "status": {"nodes": 5},  # as Karpenter counted some seconds ago
}


@dataclass
class FakeKind:
    """A kind whose objects have been read."""

    objects: Sequence[Any]
    has_synced: bool = True
    version: int = field(default=0)

    def all(self) -> Sequence[Any]:
        return self.objects


def a_node(name: str = "n1", deleting: bool = False, capacity: dict[str, str] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "labels": LABELS}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "status": {"capacity": capacity or WHOLE, "allocatable": LEFT}}


def a_claim(name: str = "c1", deleting: bool = False, node: str | None = None) -> dict[str, Any]:
    launched = {"type": "Launched", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"conditions": [launched], "capacity": WHOLE | {"cpu": "190"}, "allocatable": LEFT | {"cpu": "180"}}
    status |= {} if node is None else {"nodeName": node}
    metadata: dict[str, Any] = {"name": name, "labels": LABELS}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {}, "status": status}


def a_daemon(cpu: str, **pod: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": "d"}, "spec": {"template": {"spec": {"containers": [container], **pod}}}}


def seen(
    nodes: Sequence[dict[str, Any]] = (),
    claims: Sequence[dict[str, Any]] | None = (),
    daemons: Sequence[dict[str, Any]] = (),
) -> NodePoolSeen:
    notes = LaunchNotes()
    known = None if claims is None else [each for claim in claims if (each := notes.reduce_node_claim(claim))]
    found = ClusterAccelerators(
        cast("Any", FakeKind(())),
        cast("Any", FakeKind([reduce_node(node) for node in nodes])),
        cast("Any", FakeKind([reduce_node_pool(NODE_POOL)])),
        node_claims=lambda: known,
        daemon_sets=lambda: [reduce_daemon_set(daemon) for daemon in daemons],
    ).node_pools()
    return found["od"]


def test_nodes_of_one_type_are_told_once_and_the_first_by_their_claims() -> None:
    assert seen().capacities == ()
    coming = seen(claims=[a_claim()])
    assert (coming.capacities, coming.allocatables) == ((WHOLE | {"cpu": "190"},), (LEFT | {"cpu": "180"},))
    there = seen([a_node(), a_node("n2")], [a_claim()])
    assert (there.capacities, there.allocatables) == ((WHOLE,), (LEFT,))


def test_a_capacity_below_what_pods_may_have_is_no_capacity() -> None:
    assert seen([a_node(capacity={"nvidia.com/gpu": "1", "cpu": "192"})]).capacities == (WHOLE,)


@pytest.mark.parametrize(
    ("nodes", "claims", "leaving"),
    [
        pytest.param([a_node(), a_node("n2", deleting=True)], [], 1, id="a node that is being deleted"),
        pytest.param([a_node()], [a_claim(deleting=True)], 1, id="an instance whose node has gone before its claim"),
        pytest.param([a_node(deleting=True)], [a_claim(deleting=True)], 1, id="both are one instance"),
        pytest.param([a_node()], [a_claim()], 0, id="none"),
    ],
)
def test_what_still_costs_is_counted(nodes: list[dict[str, Any]], claims: list[dict[str, Any]], leaving: int) -> None:
    assert seen(nodes, claims).nodes_deleting == leaving


@pytest.mark.parametrize(
    ("nodes", "claims", "in_use"),
    [
        pytest.param([a_node()], [a_claim(node="n1"), a_claim("c2")], 2, id="one that has not registered is coming"),
        pytest.param([a_node()], [a_claim(node="n1"), a_claim("c2", deleting=True)], 1, id="one that goes does not"),
        pytest.param([a_node()], [a_claim(node="n1"), a_claim("c2", node="n2")], 1, id="nor one whose node is gone"),
        pytest.param([a_node(deleting=True)], [a_claim(node="n1")], 0, id="nor one whose node is being deleted"),
        pytest.param([a_node(), a_node("n2")], [a_claim(node="n1")], 2, id="a node is there before its claim says so"),
        pytest.param([a_node()], None, 5, id="without NodeClaims Karpenter's own count is all that there is"),
    ],
)
def test_the_nodes_that_are_there_or_coming_are_in_use(
    nodes: list[dict[str, Any]], claims: list[dict[str, Any]] | None, in_use: int
) -> None:
    assert seen(nodes, claims).nodes_in_use == in_use


def test_daemon_sets_that_run_on_its_nodes_take_their_part() -> None:
    tolerant = {"tolerations": [{"operator": "Exists"}]}
    daemons = [
        a_daemon("500m", **tolerant),
        a_daemon("1", **tolerant),
        a_daemon("4"),
        a_daemon("8", **tolerant, nodeSelector={"karpenter.sh/nodepool": "other"}),
    ]
    assert seen(daemons=daemons).daemons == PodRequests(cpu_millis=1500)
