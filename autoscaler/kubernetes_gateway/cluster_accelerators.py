"""The AcceleratorPools of the cluster and the nodes behind them, read from their watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from autoscaler.api.pool_observation import PoolNode
from autoscaler.kubernetes_gateway.watched_kind import WatchedKind
from autoscaler.kubernetes_gateway.watched_launches import WatchedNodeClaim
from autoscaler.kubernetes_gateway.watched_objects import WatchedDaemonSet, WatchedNode, WatchedNodePool
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
        node_claims: Callable[[], Iterable[WatchedNodeClaim] | None] = lambda: None,
        daemon_sets: Callable[[], Sequence[WatchedDaemonSet]] = tuple,
    ) -> None:
        """`launches` gives by NodePool how the last launches ended, where one failed.

        `node_claims` None: they are not read, or not to be read.
        """
        self._pools = pools
        self._nodes = nodes
        self._node_pools = node_pools
        self._launches = launches
        self._node_claims = node_claims
        self._daemon_sets = daemon_sets
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
        known = self._node_claims()
        claims: defaultdict[str, list[WatchedNodeClaim]] = defaultdict(list)
        for claim in known or ():
            if not claim.reason:
                claims[claim.node_pool].append(claim)
        launches, daemon_sets = self._launches(), self._daemon_sets()
        return {
            pool.name: replace(
                _seen(pool, nodes[pool.name], None if known is None else claims[pool.name]),
                launches=launches.get(pool.name, ()),
                daemons=_daemons(pool, daemon_sets),
            )
            for pool in self._node_pools.all()
        }


def _seen(
    pool: WatchedNodePool, nodes: Sequence[WatchedNode], known_claims: Sequence[WatchedNodeClaim] | None
) -> NodePoolSeen:
    staying, claims = [node for node in nodes if not node.is_deleting], known_claims or ()
    # What a NodeClaim says is the provider's estimate: it counts until there are nodes.
    described = [each for each in (staying or claims) if not each.is_deleting]
    leaving_claims = sum(claim.is_deleting for claim in claims)
    return NodePoolSeen(
        name=pool.name,
        limits=pool.limits,
        nodes_in_use=max(len(staying), _ordered(pool, staying, known_claims)),
        problem=pool.problem,
        limit_managers=pool.limit_managers,
        capacities=_each_once(each.capacity for each in described),
        allocatables=_each_once(each.allocatable for each in described),
        disruption=pool.disruption,
        is_judged=pool.is_judged,
        # An instance costs until its NodeClaim has gone, also where its Node object went before.
        nodes_deleting=max(len(nodes) - len(staying), leaving_claims),
        taints=pool.template.taints,
    )


def _ordered(pool: WatchedNodePool, staying: Sequence[WatchedNode], claims: Sequence[WatchedNodeClaim] | None) -> int:
    """The nodes that are there or coming. A NodeClaim outlives a node that is gone from one moment to the next.

    The NodePool's own count lags by some seconds: beside a node on demand that was just lost it would let spot grow.
    """
    if claims is None:
        return pool.nodes
    names = {node.name for node in staying}
    return sum(not claim.is_deleting and (claim.node is None or claim.node in names) for claim in claims)


def _each_once(resources: Iterable[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """Nodes of one instance type look the same."""
    return tuple({tuple(each.items()): each for each in resources}.values())


def _daemons(pool: WatchedNodePool, daemon_sets: Iterable[WatchedDaemonSet]) -> PodRequests:
    """What DaemonSets take of each node of the NodePool."""
    return sum((each.requests for each in daemon_sets if pool.template.admits(each.placement)), NO_REQUESTS)
