"""Where replicas are, and which on-demand nodes count for nothing: what fills them goes, or gives way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedPod
from autoscaler.observers.replica_places import Places, PoolNodes, ReplicaPlaces
from autoscaler.observers.workload import LivePod, ScaleTarget

TARGET = ScaleTarget("inference", "Deployment", "llama", "", "", "")


def a_node(name: str, *, node_pool: str = "od", capacity_type: str = "on-demand", **more: Any) -> WatchedNode:
    made = WatchedNode(name, node_pool, capacity_type, {}, is_ready=True, is_cordoned=False)
    return replace(made, **more)


def a_pod(name: str, node: str | None, *, owner: str = "ReplicaSet/llama-1", **more: Any) -> WatchedPod:
    kind, controller = owner.split("/")
    made = WatchedPod("inference", name, {"pod-template-hash": "1"}, 0.0, True, 0.0, None, is_terminating=False)
    return replace(made, owner=(kind, controller), node=node, **more)


def places(nodes: Iterable[WatchedNode], pods: Iterable[WatchedPod]) -> Places:
    by_name = {("inference", pod.name): pod for pod in pods}
    watched = SimpleNamespace(get=by_name.get, all=lambda: list(by_name.values()), version=1)
    cluster = SimpleNamespace(pods=watched, nodes=None, nodes_by_name=lambda: {node.name: node for node in nodes})
    live = [LivePod(name, name, True, 0.0) for (_, name), pod in by_name.items() if not pod.is_terminating]
    return ReplicaPlaces(cast(WatchedCluster, cluster), lambda *_: None).places_of(TARGET, live)


NODES = [a_node("a"), a_node("b"), a_node("s", node_pool="spot", capacity_type="spot")]
MINE = [a_pod("mine", "a"), a_pod("also-mine", "s")]


@pytest.mark.parametrize(
    ("beside", "empty"),
    [
        pytest.param([], 1, id="nothing is there"),
        pytest.param([a_pod("exporter", "b", owner="DaemonSet/exporter")], 1, id="a DaemonSet's pod goes with it"),
        pytest.param([a_pod("other", "b", owner="ReplicaSet/other-1")], 0, id="a pod of others keeps it"),
        pytest.param([a_pod("going", "b", is_terminating=True)], 1, id="a replica that is ending keeps it no longer"),
        pytest.param(
            [a_pod("place", "b", owner="ReplicaSet/places-1", gives_way=True)], 1, id="a placeholder gives way"
        ),
    ],
)
def test_on_demand_nodes_that_nothing_fills(beside: list[WatchedPod], empty: int) -> None:
    assert places(NODES, [*MINE, *beside]).empty_on_demand == empty


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(a_node("b", is_deleting=True), id="it goes already"),
        pytest.param(a_node("b", node_pool="other"), id="it is of a NodePool that none of them runs on"),
        pytest.param(a_node("b", node_pool="spot", capacity_type="spot"), id="it is on spot"),
    ],
)
def test_other_empty_nodes_are_none_of_them(node: WatchedNode) -> None:
    assert places([NODES[0], node], MINE).empty_on_demand == 0


def test_the_nodes_of_a_node_pool_whoever_fills_them() -> None:
    nodes = [*NODES, a_node("t", node_pool="spot", capacity_type="spot")]
    nodes += [a_node("u", node_pool="spot", capacity_type="spot", is_deleting=True)]
    pods = {("inference", pod.name): pod for pod in [a_pod("other", "s", owner="ReplicaSet/other-1"), a_pod("x", "u")]}
    watched = SimpleNamespace(get=pods.get, all=lambda: list(pods.values()), version=1)
    cluster = SimpleNamespace(pods=watched, nodes=None, nodes_by_name=lambda: {node.name: node for node in nodes})
    source = ReplicaPlaces(cast(WatchedCluster, cluster), lambda *_: None)
    assert source.nodes_of("spot") == PoolNodes(frozenset({"s"}), 1)
    assert source.nodes_of("od") == PoolNodes(frozenset(), 2)
    assert source.nodes_of("none such") == PoolNodes(frozenset(), 0)


def test_where_each_replica_is() -> None:
    found = places(NODES, [*MINE, a_pod("place", "a", owner="ReplicaSet/places-1", gives_way=True), a_pod("new", None)])
    assert [(each.name, each.node, each.is_on_spot, each.others_on_node) for each in found.replicas] == [
        ("mine", "a", False, 1),
        ("also-mine", "s", True, 0),
        ("new", None, False, 0),
    ]


def test_a_replica_that_has_begun_to_end_since_is_nobody_elses() -> None:
    pods = [a_pod("mine", "a", is_terminating=True)]
    watched = SimpleNamespace(get=lambda _: pods[0], all=lambda: pods, version=1)
    cluster = SimpleNamespace(pods=watched, nodes=None, nodes_by_name=lambda: {"a": NODES[0]})
    live = [LivePod("mine", "mine", True, 0.0)]
    found = ReplicaPlaces(cast(WatchedCluster, cluster), lambda *_: None).places_of(TARGET, live)
    assert [each.others_on_node for each in found.replicas] == [0]


def test_what_has_changed_since_is_looked_at_again() -> None:
    pods = {("inference", "mine"): a_pod("mine", "a")}
    watched = SimpleNamespace(get=pods.get, all=lambda: list(pods.values()), version=1)
    cluster = SimpleNamespace(pods=watched, nodes=None, nodes_by_name=lambda: {node.name: node for node in NODES})
    source, live = ReplicaPlaces(cast(WatchedCluster, cluster), lambda *_: None), [LivePod("mine", "mine", True, 0.0)]
    assert source.places_of(TARGET, live).empty_on_demand == 1
    pods["inference", "other"] = a_pod("other", "b", owner="ReplicaSet/other-1")
    watched.version = 2
    assert source.places_of(TARGET, live).empty_on_demand == 0
