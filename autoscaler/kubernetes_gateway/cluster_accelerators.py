"""The AcceleratorPools of the cluster and the nodes behind them, read from their watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.pool_observation import PoolNode
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode


class ClusterAccelerators:
    """An AcceleratorPoolSource on the watches of AcceleratorPools and nodes."""

    def __init__(self, pools: WatchedKind[dict[str, Any]], nodes: WatchedKind[WatchedNode]) -> None:
        self._pools = pools
        self._nodes = nodes

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        """All of them; there are few, so they are parsed at each call.

        Empty before the nodes have been read, or a pool would seem to have none. That stays so where nodes may not be
        read, as in an installation that is confined to some namespaces; the watch logs the missing permission.
        """
        if not self._nodes.has_synced:
            return ()
        return tuple(parse_accelerator_pool(document) for document in self._pools.all())

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes."""
        return tuple(
            PoolNode(node.node_pool, node.accelerators.get(RESOURCE_NAME, 0), node.is_ready)
            for node in self._nodes.all()
        )
