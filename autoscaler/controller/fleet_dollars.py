"""What may the nodes of each AcceleratorPool cost, where one ceiling in dollars an hour is for all of them together?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.controller.managed_pool import ManagedPool, split_in_use, states
from autoscaler.controller.replica_wish import ReplicaWish, share_demand
from autoscaler.observers.node_pools import NodePoolSeen
from policies.capacity_split import CapacityType
from policies.dollar_sharing import DollarShare, NodeCost, NodeWish, PoolBill, share_dollars
from policies.node_capacity import DollarCeiling, NodePoolState, ceiling_nodes, node_cost
from policies.node_move import nodes_beyond_floor, spot_nodes_beyond_floor
from policies.node_packing import nodes_for
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class PoolWishes:
    """A managed AcceleratorPool, and what its scalers wish for; None: not all are known, and it stays as it is."""

    pool: ManagedPool
    wishes: Sequence[ReplicaWish] | None


def share_fleet_dollars(
    ceiling_per_hour: int,
    managed: Iterable[PoolWishes],
    all_pools: Iterable[AcceleratorPool],
    node_pools: Mapping[str, NodePoolSeen],
) -> Mapping[str, DollarShare]:
    """The share of every managed pool whose prices are known, in millionths of a dollar.

    What pools that are only observed spend is taken off first, where their prices are known.
    """
    bills = list(_bills(managed, node_pools))
    ours = {bill.pool for bill in bills}
    for pool in all_pools:
        prices = pool.spec.node_dollars_per_hour
        if pool.name not in ours and prices is not None:
            standing, deleting = _spent(prices.node_cost, states(pool.spec.node_pools, node_pools))
            bills.append(PoolBill(pool.name, prices.node_cost, 0, deleting, kept=standing))  # nobody lowers it
    return share_dollars(ceiling_per_hour, bills)


def limited_by(pool: ManagedPool, share: DollarShare, node_pools: Mapping[str, NodePoolSeen]) -> ManagedPool:
    """The pool with its share for a ceiling of its limits, where its own ceiling is no lower."""
    assert pool.prices is not None
    deleting = _spent(pool.prices, states(pool.node_pools, node_pools))[1]
    return _with_ceiling(pool, pool.prices, share.limit + deleting)


def allowed_by(pool: ManagedPool, share: DollarShare) -> ManagedPool:
    """The pool with its share for a ceiling of what its replicas may ask for, where its own ceiling is no lower."""
    assert pool.prices is not None
    return _with_ceiling(pool, pool.prices, share.allowance)


def _with_ceiling(pool: ManagedPool, prices: NodeCost, dollars_per_hour: int) -> ManagedPool:
    own = pool.parameters.dollar_ceiling
    if own is not None and own.ceiling_per_hour <= dollars_per_hour:
        return pool
    shared = DollarCeiling(dollars_per_hour, prices, Reason.SHARED_DOLLAR_CEILING)
    return replace(pool, parameters=replace(pool.parameters, dollar_ceiling=shared))


def _bills(managed: Iterable[PoolWishes], node_pools: Mapping[str, NodePoolSeen]) -> Iterator[PoolBill]:
    for each in managed:
        pool = each.pool
        if pool.prices is None:
            continue
        seen = states(pool.node_pools, node_pools)
        cost = node_cost(pool.prices, pool.parameters.on_demand_floor_percent, seen)
        standing, deleting = _spent(pool.prices, seen)
        bill = PoolBill(pool.name, cost, standing, deleting)
        if each.wishes is None:
            yield replace(bill, minimum_nodes=sum(state.nodes_in_use for state in seen))
            continue
        own_ceiling = ceiling_nodes(pool.parameters, seen)
        levels = sorted({wish.priority for wish in each.wishes}, reverse=True)
        spare = pool.parameters.slack_nodes + (0 if pool.prewarm is None else pool.prewarm.spare_nodes or 0)
        yield replace(
            bill,
            minimum_nodes=_nodes(pool, each.wishes, None),
            wishes=tuple(
                NodeWish(level, nodes if own_ceiling is None else min(nodes, own_ceiling))
                for level in levels
                for nodes in (_nodes(pool, each.wishes, level),)
            ),
            spare_nodes=spare,
            moving=_moving(pool, pool.prices, seen),
        )


def _moving(pool: ManagedPool, prices: NodeCost, seen: Sequence[NodePoolState]) -> int:
    """One node at a time is moved, where one is of the kind that it should not be: what the other one costs."""
    split = split_in_use(pool.parameters.on_demand_floor_percent, seen)
    if not pool.has_split or split is None:
        return 0
    can_buy = {state.capacity_type: state.is_ready for state in seen}
    if spot_nodes_beyond_floor(split):
        return prices.on_demand_node if can_buy[CapacityType.ON_DEMAND] else 0
    return prices.spot_node if nodes_beyond_floor(split) and can_buy[CapacityType.SPOT] else 0


def _nodes(pool: ManagedPool, wishes: Iterable[ReplicaWish], level: int | None) -> int:
    """Nodes where all from this priority on have what they want and the others their minimum; None: all the minimum."""
    demands = []
    for wish in wishes:
        demand = share_demand(wish)
        wanted = demand.wanted_replicas if level is not None and wish.priority >= level else demand.minimum_replicas
        demands.append(replace(demand, wanted_replicas=max(wanted, demand.minimum_replicas), current_replicas=0))
    return nodes_for(pool.parameters.node_room, demands)


def _spent(prices: NodeCost, node_pools: Iterable[NodePoolState]) -> tuple[int, int]:
    """What nodes cost that stay, and those that are being deleted."""
    standing = deleting = 0
    for each in node_pools:
        price = prices.price(each.capacity_type)
        standing += each.nodes_in_use * price
        deleting += each.nodes_deleting * price
    return standing, deleting
