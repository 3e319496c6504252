"""The AcceleratorPools of the cluster and the nodes behind them, read from their watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.pool_observation import PoolNode
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_objects import WatchedNode, WatchedNodePool
from autoscaler.observers.node_pools import NodePoolSeen
from policies.launch_breaker import LaunchResult


class ClusterAccelerators:
    """An AcceleratorPoolSource and a NodePoolSource on the watches of AcceleratorPools, NodePools and nodes."""

    def __init__(
        self,
        pools: WatchedKind[dict[str, Any]],
        nodes: WatchedKind[WatchedNode],
        node_pools: WatchedKind[WatchedNodePool],
        launches: Callable[[], Mapping[str, tuple[LaunchResult, ...]]] = dict,
    ) -> None:
        """`launches` gives by NodePool how the last launches ended, where one failed."""
        self._pools = pools
        self._nodes = nodes
        self._node_pools = node_pools
        self._launches = launches
        self._parsed: tuple[int, tuple[AcceleratorPool | InvalidAcceleratorPool, ...]] = (-1, ())

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        """All of them, parsed anew where one has changed: a tick asks more than once.

        Empty before the nodes have been read, or a pool would seem to have none. That stays so where nodes may not be
        read, as in an installation that is confined to some namespaces; the watch logs the missing permission.
        """
        if not self._nodes.has_synced:
            return ()
        version = self._pools.version
        if version != self._parsed[0]:
            self._parsed = (version, tuple(parse_accelerator_pool(document) for document in self._pools.all()))
        return self._parsed[1]

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes."""
        return tuple(
            PoolNode(
                node.node_pool,
                node.accelerators.get(RESOURCE_NAME, 0),
                node.is_ready,
                node.capacity_type,
                node.is_deleting,
            )
            for node in self._nodes.all()
        )

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        """The NodePools with their nodes; empty before both have been read."""
        if not self._nodes.has_synced or not self._node_pools.has_synced:
            return {}
        nodes: defaultdict[str | None, list[WatchedNode]] = defaultdict(list)
        for node in self._nodes.all():
            nodes[node.node_pool].append(node)
        launches = self._launches()
        return {
            pool.name: _seen(pool, nodes[pool.name], launches.get(pool.name, ())) for pool in self._node_pools.all()
        }


def _seen(pool: WatchedNodePool, nodes: Sequence[WatchedNode], launches: tuple[LaunchResult, ...]) -> NodePoolSeen:
    staying = [node for node in nodes if not node.is_deleting]
    # Nodes of one instance type look the same: each capacity once.
    capacities = {tuple(sorted(node.capacity.items())): node.capacity for node in staying}
    return NodePoolSeen(
        name=pool.name,
        limits=pool.limits,
        # The NodePool's own count knows nodes that have not registered yet, and lags by some seconds.
        nodes_in_use=max(len(staying), pool.nodes),
        problem=pool.problem,
        limit_managers=pool.limit_managers,
        capacities=tuple(capacities.values()),
        disruption=pool.disruption,
        is_judged=pool.is_judged,
        launches=launches,
        nodes_deleting=len(nodes) - len(staying),
        taints=pool.taints,
    )
