"""How many nodes may each NodePool of an AcceleratorPool have, so that every replica finds a place and no more?

A limit of a Karpenter NodePool is compared with the whole capacity of a node, so a plan speaks of whole nodes. It grows
before replicas do, and never goes below the nodes that are there: those leave first, then the limit. Spot follows what
is there on demand, so that the floor holds while nodes come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType, split_nodes, spot_beside
from policies.dollar_sharing import NodeCost
from policies.node_packing import NodeRoom, nodes_for
from policies.reasons import Reason
from policies.wording import counted

MICRO_DOLLARS = 1_000_000
"""Prices and ceilings are whole millionths of a dollar, so that sums are exact."""


@dataclass(frozen=True, slots=True)
class NodePoolState:
    """A NodePool as it is, with its nodes that are not being deleted; those that are being deleted cost money too.

    A pool that is not ready (its NodeClass is missing, or there is no such capacity to be had) makes no nodes.
    """

    name: str
    capacity_type: CapacityType
    nodes_in_use: int
    is_ready: bool = True
    nodes_deleting: int = 0


@dataclass(frozen=True, slots=True)
class DollarCeiling:
    """The most that all nodes of the pool may cost an hour, in millionths of a dollar, and what one costs.

    `reason` tells the pool's own ceiling from its share of one that is for all pools.
    """

    ceiling_per_hour: int
    prices: NodeCost
    reason: Reason = Reason.DOLLAR_CEILING


@dataclass(frozen=True, slots=True)
class NodeCapacityParameters:
    """What the AcceleratorPool says: accelerators of a node, nodes to spare, the most nodes, the least on demand."""

    accelerators_per_node: int
    slack_nodes: int = 1
    ceiling_nodes: int | None = None
    on_demand_floor_percent: int = 100  # of the nodes that replicas need; 100: spot is not used
    dollar_ceiling: DollarCeiling | None = None
    room: NodeRoom | None = None  # what replicas may have of a new node; None: its accelerators, nothing else counts

    @property
    def node_room(self) -> NodeRoom:
        """What replicas may have of a new node."""
        return NodeRoom(self.accelerators_per_node) if self.room is None else self.room


@dataclass(frozen=True, slots=True)
class PlanStep:
    """What one rule made of the number of nodes: before and after it, why, and a sentence with the numbers."""

    name: str
    before: int
    after: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class NodePoolPlan:
    """The nodes that the limits of one NodePool are to let it have, and how the number came about."""

    name: str
    limit_nodes: int
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class NodeCapacityPlan:
    """The limits of all NodePools; `needed_nodes` is what all replicas take, packed, without slack."""

    needed_nodes: int
    node_pools: tuple[NodePoolPlan, ...]

    @property
    def limit_nodes(self) -> int:
        """The nodes that all limits together allow."""
        return sum(pool.limit_nodes for pool in self.node_pools)


@dataclass(frozen=True, slots=True)
class WarmOutcome:
    """What came of holding nodes ready: how many and what for, or why none are."""

    reason: Reason  # NodesHeldReady where all is well
    message: str


@dataclass(frozen=True, slots=True)
class CapacityOutcome:
    """What came of planning: the plan (None: there could be none), whether the limits say the same, or why not.

    `warm` is what came of holding nodes ready; None where nobody wants that.
    """

    plan: NodeCapacityPlan | None
    reason: Reason  # LimitsInStep where all is well
    message: str
    warm: WarmOutcome | None = None


@dataclass(frozen=True, slots=True)
class _Ceiling:
    """The most nodes that are allowed together, and what set that."""

    nodes: int
    reason: Reason


def plan_node_capacity(
    parameters: NodeCapacityParameters, demands: Iterable[AcceleratorDemand], node_pools: Sequence[NodePoolState]
) -> NodeCapacityPlan:
    """The plan for one AcceleratorPool. Replicas that are wanted and those that still stand both have their place.

    Demands that are tied to a kind of capacity find their place there; the others are split by the floor. Spot is
    allowed no more nodes than the on-demand nodes of this moment permit, and grows when these have come.
    """
    asked = tuple(demands)
    needs = _needs(parameters.node_room, asked)
    needed = sum(needs.values())
    ceiling = _ceiling(parameters, node_pools)
    allowed = needed if ceiling is None else min(needed, ceiling.nodes)
    slack = parameters.slack_nodes if ceiling is None else min(parameters.slack_nodes, ceiling.nodes - allowed)
    on_demand, spot = _shares(parameters.on_demand_floor_percent, needs, allowed, node_pools)
    limited_by = None if ceiling is None or allowed == needed else ceiling.reason
    tight = _tight(parameters, asked)
    plans: list[NodePoolPlan] = []
    for pool in _on_demand_first(node_pools):
        if pool.capacity_type is CapacityType.ON_DEMAND:
            steps = [_needed(needed, allowed, on_demand, limited_by, tight), _slack(on_demand, slack)]
        else:
            steps = [_needed(needed, allowed, spot, limited_by, tight)]
            steps += _company(spot, parameters.on_demand_floor_percent, node_pools)
        rooms = _rooms(parameters, node_pools, pool, {plan.name: plan.limit_nodes for plan in plans})
        plans.append(_plan_pool(pool, steps, rooms))
    return NodeCapacityPlan(needed, tuple(plans))


def ceiling_nodes(parameters: NodeCapacityParameters, node_pools: Sequence[NodePoolState]) -> int | None:
    """The most nodes that the pool may have by its ceilings, at the prices of this moment; None: there is no ceiling.

    Where spot cannot be bought, what is added costs what a node on demand costs.
    """
    ceiling = _ceiling(parameters, node_pools)
    return None if ceiling is None else ceiling.nodes


def node_cost(prices: NodeCost, on_demand_floor_percent: int, node_pools: Sequence[NodePoolState]) -> NodeCost:
    """What nodes cost, split by the floor. Where spot cannot be bought, no more are on spot than stand there."""
    spot_pools = [pool for pool in node_pools if pool.capacity_type is CapacityType.SPOT]
    can_buy_spot = any(pool.is_ready for pool in spot_pools)
    return replace(
        prices,
        on_demand_floor_percent=on_demand_floor_percent if spot_pools else 100,
        most_spot_nodes=None if can_buy_spot else sum(pool.nodes_in_use for pool in spot_pools),
    )


def _needs(room: NodeRoom, demands: Iterable[AcceleratorDemand]) -> dict[CapacityType | None, int]:
    """Whole nodes by the kind of capacity that demands are tied to; None: they may run on either."""
    tied: dict[CapacityType | None, list[AcceleratorDemand]] = {None: [], **{kind: [] for kind in CapacityType}}
    for demand in demands:
        tied[demand.capacity_type].append(demand)
    return {kind: nodes_for(room, each) for kind, each in tied.items()}


def _shares(
    floor_percent: int, needs: dict[CapacityType | None, int], allowed: int, node_pools: Sequence[NodePoolState]
) -> tuple[int, int]:
    """The nodes on demand and on spot, together no more than allowed."""
    spot_pools = [pool for pool in node_pools if pool.capacity_type is CapacityType.SPOT]
    cap = split_nodes(allowed, floor_percent)[1] if spot_pools else 0
    spot = min(needs[CapacityType.SPOT] + needs[None], cap)
    if not any(pool.is_ready for pool in spot_pools):
        spot = min(spot, sum(pool.nodes_in_use for pool in spot_pools))
    free_on_spot = min(needs[None], max(0, spot - needs[CapacityType.SPOT]))
    on_demand = needs[CapacityType.ON_DEMAND] + needs[None] - free_on_spot
    return min(on_demand, allowed - spot), spot


def _ceiling(parameters: NodeCapacityParameters, node_pools: Sequence[NodePoolState]) -> _Ceiling | None:
    by_count, dollars = parameters.ceiling_nodes, parameters.dollar_ceiling
    found = [] if by_count is None else [_Ceiling(by_count, Reason.ACCELERATOR_CEILING)]
    if dollars is not None:
        found.append(_Ceiling(_affordable(dollars, parameters, node_pools), dollars.reason))
    return min(found, key=lambda each: each.nodes, default=None)


def _affordable(dollars: DollarCeiling, parameters: NodeCapacityParameters, node_pools: Sequence[NodePoolState]) -> int:
    """The most nodes that the dollars pay for, split by the floor."""
    cost = node_cost(dollars.prices, parameters.on_demand_floor_percent, node_pools)
    cheapest = min(map(dollars.prices.price, CapacityType))
    return _largest(lambda nodes: cost.of(nodes) <= dollars.ceiling_per_hour, dollars.ceiling_per_hour // cheapest)


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest number up to `most` that fits; every smaller one fits too, and 0 always does."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def _on_demand_first(node_pools: Sequence[NodePoolState]) -> list[NodePoolState]:
    return sorted(node_pools, key=lambda pool: pool.capacity_type is not CapacityType.ON_DEMAND)


def _rooms(
    parameters: NodeCapacityParameters,
    node_pools: Sequence[NodePoolState],
    pool: NodePoolState,
    planned: dict[str, int],
) -> list[_Ceiling]:
    """What the ceilings leave for a NodePool beside the others: their plan or their nodes, and all that is deleted."""
    others = {each.name: planned.get(each.name, each.nodes_in_use) for each in node_pools if each.name != pool.name}
    rooms = []
    if parameters.ceiling_nodes is not None:
        taken = sum(others.values()) + sum(each.nodes_deleting for each in node_pools)
        rooms.append(_Ceiling(max(0, parameters.ceiling_nodes - taken), Reason.ACCELERATOR_CEILING))
    dollars = parameters.dollar_ceiling
    if dollars is not None:
        spent = sum(
            (others.get(each.name, 0) + each.nodes_deleting) * dollars.prices.price(each.capacity_type)
            for each in node_pools
        )
        left = max(0, dollars.ceiling_per_hour - spent) // dollars.prices.price(pool.capacity_type)
        rooms.append(_Ceiling(left, dollars.reason))
    return rooms


def _needed(needed: int, allowed: int, share: int, limited_by: Reason | None, tight: str) -> PlanStep:
    if limited_by is None:
        message = f"replicas take {counted(needed, 'node')}{tight}, {share} of them here"
        return PlanStep("replicas", 0, share, Reason.NODES_NEEDED, message)
    message = f"replicas take {counted(needed, 'node')}{tight}, the ceiling leaves {allowed}, {share} of them here"
    return PlanStep("replicas", 0, share, limited_by, message)


def _tight(parameters: NodeCapacityParameters, demands: Iterable[AcceleratorDemand]) -> str:
    """Whose replicas share a node with fewer others than its accelerators say, in words; empty where nobody's do."""
    told: dict[str, None] = {}
    for demand in demands:
        fit = parameters.node_room.replicas_of(demand)
        by_accelerators = parameters.accelerators_per_node // demand.accelerators_per_replica
        if 0 < fit < by_accelerators:
            told[f"{fit} of {demand.scaler} a node instead of {by_accelerators}"] = None
    return f" (CPU, memory and DaemonSets leave room for {', '.join(list(told)[:3])})" if told else ""


def _slack(nodes: int, slack: int) -> PlanStep:
    return PlanStep("slack", nodes, nodes + slack, Reason.SLACK_NODES, f"{counted(slack, 'node')} to spare")


def _company(spot: int, floor_percent: int, node_pools: Sequence[NodePoolState]) -> list[PlanStep]:
    """The step that keeps spot from running ahead of what is there on demand."""
    there = sum(pool.nodes_in_use for pool in node_pools if pool.capacity_type is CapacityType.ON_DEMAND)
    most = spot_beside(there, floor_percent)
    if most is None or spot <= most:
        return []
    message = f"{counted(there, 'node')} on demand are there, which allows {most} on spot"
    return [PlanStep("floor", spot, most, Reason.ON_DEMAND_FLOOR, message)]


def _plan_pool(pool: NodePoolState, steps: list[PlanStep], rooms: Sequence[_Ceiling]) -> NodePoolPlan:
    limit = steps[-1].after
    for room in rooms:
        if limit > room.nodes:
            message = (
                f"wanted {counted(limit, 'node')}; with the nodes that are there elsewhere or still leaving the "
                f"ceiling leaves {room.nodes}"
            )
            steps.append(PlanStep("ceiling", limit, room.nodes, room.reason, message))
            limit = room.nodes
    if limit < pool.nodes_in_use:
        # A limit below what is there would also block the replacement of a node that drifts or is lost.
        message = f"{counted(pool.nodes_in_use, 'node')} are there; the limit follows when they have gone"
        steps.append(PlanStep("inUse", limit, pool.nodes_in_use, Reason.NODES_IN_USE, message))
        limit = pool.nodes_in_use
    return NodePoolPlan(pool.name, limit, tuple(steps))
