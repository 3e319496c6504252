"""Which pods are on nodes that are about to go."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedPod, reduce_node, reduce_pod
from autoscaler.observers.leaving_nodes import Departure, LeavingNodes

NOW = 1_900_000_000.0
MINUTE_AGO, NOW_TEXT = "2030-03-17T17:45:40Z", "2030-03-17T17:46:40Z"


def a_node(
    name: str = "a", *, taint: str | None = None, is_ready: bool = True, is_deleting: bool = False
) -> WatchedNode:
    return reduce_node(
        {
            "metadata": {"name": name} | ({"deletionTimestamp": NOW_TEXT} if is_deleting else {}),
            "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]} if taint else {},
            "status": {"conditions": [{"type": "Ready", "status": "True" if is_ready else "Unknown"}]},
        }
    )


def a_pod(node: str | None = "a", *, is_ready: bool = True, placed_at: str = MINUTE_AGO) -> WatchedPod:
    conditions: list[dict[str, Any]] = [{"type": "Ready", "status": str(is_ready)}]
    if node is not None:
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": placed_at})
    pod = reduce_pod(
        {
            "metadata": {"namespace": "n", "name": "p", "creationTimestamp": placed_at},
            "spec": {"nodeName": node} if node else {},
            "status": {"conditions": conditions},
        }
    )
    assert pod is not None
    return pod


@pytest.mark.parametrize(
    ("nodes", "pod", "departure"),
    [
        pytest.param([a_node()], a_pod(), None, id="a node that stays"),
        pytest.param(
            [a_node(taint="karpenter.sh/disrupted")], a_pod(), Departure.NOTICED, id="Karpenter drains the node"
        ),
        pytest.param(
            [a_node(taint="aws-node-termination-handler/spot-itn")],
            a_pod(),
            Departure.NOTICED,
            id="the termination handler has had a spot notice",
        ),
        pytest.param(
            [a_node(taint="aws-node-termination-handler/rebalance-recommendation")],
            a_pod(),
            None,
            id="a recommendation to rebalance is no notice",
        ),
        pytest.param([a_node(taint="nvidia.com/gpu")], a_pod(), None, id="a taint that says nothing of its end"),
        pytest.param([a_node(is_deleting=True)], a_pod(), Departure.DELETING, id="the node is being deleted"),
        pytest.param([a_node(is_ready=False)], a_pod(), Departure.NOT_READY, id="the node is not heard of"),
        pytest.param([a_node("b")], a_pod(), Departure.GONE, id="the node was deleted at once"),
        pytest.param([a_node("b")], a_pod(is_ready=False), Departure.GONE, id="with a pod that was still loading"),
        pytest.param(
            [a_node("b")],
            a_pod(is_ready=False, placed_at=NOW_TEXT),
            None,
            id="a pod that was placed on a node which is not known yet",
        ),
        pytest.param([a_node("b")], a_pod(None), None, id="a pod that waits for a node"),
        pytest.param(None, a_pod(), None, id="nodes that cannot be read"),
        pytest.param(
            [*(a_node(str(each), is_ready=False) for each in range(2)), a_node(is_ready=False), a_node("b")],
            a_pod(),
            None,
            id="three of four nodes that are not heard of are a broken network",
        ),
        pytest.param(
            [a_node(is_ready=False), a_node("b", is_ready=False)],
            a_pod(),
            Departure.NOT_READY,
            id="two of two are not",
        ),
        pytest.param(
            [*(a_node(str(each), is_ready=False) for each in range(3)), a_node(is_deleting=True)],
            a_pod(),
            Departure.DELETING,
            id="a node that is being deleted in a broken network",
        ),
    ],
)
def test_pods_on_leaving_nodes_are_told(
    nodes: list[WatchedNode] | None, pod: WatchedPod, departure: Departure | None
) -> None:
    leaving = LeavingNodes(nodes, NOW)

    assert leaving.departure_of(pod) is departure
    assert leaving.takes_away(pod) is (departure is not None)
