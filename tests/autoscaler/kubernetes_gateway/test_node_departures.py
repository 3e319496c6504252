from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kubernetes_gateway.node_departures import NodeDepartures
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode


def node(name: str, *, ready: bool = True, deleting: bool = False, taint: str | None = None) -> dict[str, Any]:
    return {
        "metadata": {"name": name} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
        "spec": {"taints": [] if taint is None else [{"key": taint}]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


class Watch:
    """Two nodes that count; `told` is how often the listener was told of a departure."""

    def __init__(self) -> None:
        self.told = 0
        self.departures = NodeDepartures()
        self.departures.listener = self.hear
        self.nodes: dict[str, WatchedNode] = {}
        self.put(node("a"))
        self.put(node("b"))

    def hear(self) -> None:
        self.told += 1

    def put(self, document: dict[str, Any]) -> None:
        self.nodes[document["metadata"]["name"]] = self.departures.reduce(document)
        self.departures.look(tuple(self.nodes.values()))

    def remove(self, name: str) -> None:
        del self.nodes[name]
        self.departures.look(tuple(self.nodes.values()))


@pytest.mark.parametrize(
    ("document", "told"),
    [
        pytest.param(node("a"), 0, id="as before"),
        pytest.param(node("c"), 0, id="one more"),
        pytest.param(node("a", ready=False), 1, id="not Ready any more"),
        pytest.param(node("a", deleting=True), 1, id="being deleted"),
        pytest.param(node("a", taint="karpenter.sh/disrupted"), 1, id="noticed"),
        pytest.param(node("a", taint="team"), 0, id="a taint of somebody's own"),
        pytest.param(node("c", ready=False), 0, id="one that boots never counted"),
    ],
)
def test_what_is_news_of_a_node(document: dict[str, Any], told: int) -> None:
    watch = Watch()
    watch.put(document)
    watch.put(document)
    assert watch.told == told


def test_a_node_that_is_gone_without_a_word_is_news() -> None:
    watch = Watch()
    watch.remove("a")
    assert watch.told == 1


def test_the_end_of_one_that_had_left_is_not() -> None:
    watch = Watch()
    watch.put(node("a", deleting=True))
    watch.remove("a")
    assert watch.told == 1


def test_one_that_comes_back_can_leave_again() -> None:
    watch = Watch()
    for ready in (False, True, False):
        watch.put(node("a", ready=ready))
    assert watch.told == 2


def test_nobody_listens() -> None:
    watch = Watch()
    watch.departures.listener = NodeDepartures().listener
    watch.remove("a")
    assert watch.told == 0
