"""Has a node begun to leave, or gone? Heard of as the watch brings it, so that nobody need wait for the next look."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, reduce_node
from autoscaler.observers.leaving_nodes import departure_of_node


class NodeDepartures:
    """Tells `listener` of nodes that counted and do not any more. One that never counted, as it boots, is no news.

    Called by the watch's own thread: `reduce` for each node as it comes, then `look` at what the store has.
    """

    def __init__(self) -> None:
        self.listener: Callable[[], None] = lambda: None
        self._staying: set[str] = set()
        self._nodes = 0
        self._is_news = False

    def reduce(self, document: dict[str, Any]) -> WatchedNode:
        """The node; that it has begun to leave is told at the next look."""
        node = reduce_node(document)
        if departure_of_node(node) is None:
            self._staying.add(node.name)
        elif node.name in self._staying:
            self._staying.discard(node.name)
            self._is_news = True
        return node

    def look(self, nodes: Collection[WatchedNode]) -> None:
        """All nodes that there are now. Names are compared only where there are fewer than at the last look."""
        if len(nodes) < self._nodes:
            self._is_news |= self._forget_all_but(node.name for node in nodes)
        self._nodes = len(nodes)
        if self._is_news:
            self._is_news = False
            self.listener()

    def _forget_all_but(self, names: Iterable[str]) -> bool:
        """Whether one that counted is gone."""
        before = len(self._staying)
        self._staying.intersection_update(names)
        return len(self._staying) < before
