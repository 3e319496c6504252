"""Which part of a ceiling in dollars an hour may each AcceleratorPool spend, where one ceiling is for all of them?

Minimums first, then what is wanted beyond them, by priority; among equals a node at a time to the pool that has the
least. Whole nodes at their prices, so that no part of a node is granted that nobody can buy. What is standing is paid
for until it has gone: a pool grows into the part of another one only when that one's nodes are away.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.capacity_split import CapacityType, split_nodes


@dataclass(frozen=True, slots=True)
class NodeCost:
    """What nodes of an AcceleratorPool cost an hour in millionths of a dollar, split by its floor.

    `most_spot_nodes` are those on spot that there can be; None: as many as the floor allows.
    """

    on_demand_node: int
    spot_node: int
    on_demand_floor_percent: int = 100
    most_spot_nodes: int | None = None

    def price(self, capacity_type: CapacityType) -> int:
        """What a node of this kind costs an hour."""
        return self.spot_node if capacity_type is CapacityType.SPOT else self.on_demand_node

    def of(self, nodes: int) -> int:
        """So many nodes together; never falls as nodes are added."""
        spot = split_nodes(nodes, self.on_demand_floor_percent)[1]
        spot = spot if self.most_spot_nodes is None else min(spot, self.most_spot_nodes)
        return (nodes - spot) * self.on_demand_node + spot * self.spot_node


@dataclass(frozen=True, slots=True)
class NodeWish:
    """The nodes of a pool with which all of this priority and above have what they want, and others their minimum."""

    priority: int
    nodes: int


@dataclass(frozen=True, slots=True)
class PoolBill:
    """What an AcceleratorPool spends now, and what it wants; millionths of a dollar an hour.

    `standing` are the nodes that stay, `deleting` those that go and still cost; `kept` is spent whatever is decided.
    `wishes` begin with the highest priority. `spare_nodes` (on demand) are wanted after all replicas of all pools, and
    then what one node costs (`moving`) that comes beside all that stands before one of the other kind goes.
    """

    pool: str
    cost: NodeCost
    standing: int
    deleting: int = 0
    minimum_nodes: int = 0
    wishes: tuple[NodeWish, ...] = ()
    spare_nodes: int = 0
    moving: int = 0
    kept: int = 0

    @property
    def rank(self) -> tuple[int, str]:
        """The highest priority first."""
        return -max((wish.priority for wish in self.wishes), default=-(2**31)), self.pool


@dataclass(frozen=True, slots=True)
class DollarShare:
    """What the nodes of a pool may cost an hour: by its limits now, and as far as its replicas may be asked for."""

    limit: int
    allowance: int


def share_dollars(ceiling_per_hour: int, bills: Sequence[PoolBill]) -> Mapping[str, DollarShare]:
    """The share of every pool. Limits together never pay for more than the ceiling, or than what is standing already.

    Minimums are granted also where the ceiling does not pay for them, as they were promised. An allowance holds what is
    left over as well, so that growth needs no second look. Nodes that go bind limits alone: replicas that have been
    asked for wait until these are away, and no count falls and rises again meanwhile.
    """
    ours = ceiling_per_hour - sum(bill.kept for bill in bills)
    now, _ = _granted(ours - sum(bill.deleting for bill in bills), bills)
    soon, left = _granted(ours, bills)
    limits = _limits(ours, bills, now)
    return {bill.pool: DollarShare(limits[bill.pool], bill.cost.of(soon[bill.pool]) + max(0, left)) for bill in bills}


def _granted(dollars_per_hour: int, bills: Sequence[PoolBill]) -> tuple[dict[str, int], int]:
    """The nodes of each pool that so much pays for, and what is left over."""
    granted = {bill.pool: bill.minimum_nodes for bill in bills}
    left = dollars_per_hour - sum(bill.cost.of(bill.minimum_nodes) for bill in bills)
    for priority in sorted({wish.priority for bill in bills for wish in bill.wishes}, reverse=True):
        left = _grant(priority, left, bills, granted)
    return granted, left


def _grant(priority: int, left: int, bills: Sequence[PoolBill], granted: dict[str, int]) -> int:
    """Gives pools the nodes that they want at this priority, as far as it goes; returns what is left."""
    wanted = {
        bill.pool: max((wish.nodes for wish in bill.wishes if wish.priority >= priority), default=0) for bill in bills
    }
    by_name = {bill.pool: bill for bill in bills}
    hungry = [(bill.cost.of(granted[bill.pool]), bill.pool) for bill in bills]
    heapq.heapify(hungry)
    while hungry:
        spent, pool = heapq.heappop(hungry)
        next_spent = by_name[pool].cost.of(granted[pool] + 1)
        if granted[pool] < wanted[pool] and next_spent - spent <= left:
            granted[pool] += 1
            left -= next_spent - spent
            heapq.heappush(hungry, (next_spent, pool))
    return left


def _limits(ceiling_per_hour: int, bills: Sequence[PoolBill], granted: Mapping[str, int]) -> dict[str, int]:
    """What limits may let pools spend beside all that stands: what is granted, then spare nodes and those that move."""
    free = max(0, ceiling_per_hour - sum(bill.standing + bill.deleting for bill in bills))
    limits: dict[str, int] = {}
    for bill in sorted(bills, key=lambda bill: bill.rank):
        wanted = bill.cost.of(granted[bill.pool])
        grown = min(max(0, wanted - bill.standing), free)
        free -= grown
        limits[bill.pool] = bill.standing + grown if wanted > bill.standing else wanted
    for bill in sorted(bills, key=lambda bill: bill.rank):
        paid = max(limits[bill.pool], bill.standing)
        spare = limits[bill.pool] + bill.spare_nodes * bill.cost.on_demand_node
        more = min(max(0, spare - paid), free)
        free -= more
        limits[bill.pool] = min(spare, paid) if more == 0 else paid + more
    for bill in sorted(bills, key=lambda bill: bill.rank):
        if 0 < bill.moving <= free:
            free -= bill.moving
            limits[bill.pool] = max(limits[bill.pool], bill.standing) + bill.moving
    return limits
