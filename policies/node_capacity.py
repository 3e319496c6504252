"""How many nodes may each NodePool of an AcceleratorPool have, so that every replica finds a place and no more?

A limit of a Karpenter NodePool is compared with the whole capacity of a node, so a plan speaks of whole nodes. It grows
before replicas do, and never goes below the nodes that are there: those leave first, then the limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from policies.accelerator_sharing import AcceleratorDemand
from policies.reasons import Reason
from policies.wording import counted


class CapacityType(StrEnum):
    """What kind of capacity a NodePool buys, in Karpenter's words."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


@dataclass(frozen=True, slots=True)
class NodePoolState:
    """A NodePool as it is, with its nodes that are not being deleted.

    A pool that is not ready (its NodeClass is missing, say) makes no nodes.
    """

    name: str
    capacity_type: CapacityType
    nodes_in_use: int
    is_ready: bool = True


@dataclass(frozen=True, slots=True)
class NodeCapacityParameters:
    """What the AcceleratorPool says: accelerators of a node, nodes to spare, the most nodes, the least on demand."""

    accelerators_per_node: int
    slack_nodes: int = 1
    ceiling_nodes: int | None = None
    on_demand_floor_percent: int = 100  # of the nodes that replicas need; 100: spot is not used


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
class CapacityOutcome:
    """What came of planning: the plan (None: there could be none), whether the limits say the same, or why not."""

    plan: NodeCapacityPlan | None
    reason: Reason  # LimitsInStep where all is well
    message: str


def plan_node_capacity(
    parameters: NodeCapacityParameters, demands: Iterable[AcceleratorDemand], node_pools: Sequence[NodePoolState]
) -> NodeCapacityPlan:
    """The plan for one AcceleratorPool. Replicas that are wanted and those that still stand both have their place."""
    needed = nodes_for(parameters.accelerators_per_node, demands)
    ceiling = parameters.ceiling_nodes
    allowed = needed if ceiling is None else min(needed, ceiling)
    slack = parameters.slack_nodes if ceiling is None else min(parameters.slack_nodes, ceiling - allowed)
    has_spot = any(pool.capacity_type is CapacityType.SPOT and pool.is_ready for pool in node_pools)
    on_demand, spot = split_nodes(allowed, parameters.on_demand_floor_percent) if has_spot else (allowed, 0)
    plans: list[NodePoolPlan] = []
    on_demand_first = sorted(node_pools, key=lambda pool: pool.capacity_type is not CapacityType.ON_DEMAND)
    for pool in on_demand_first:
        taken = sum(plan.limit_nodes for plan in plans)
        taken += sum(later.nodes_in_use for later in on_demand_first[len(plans) + 1 :])
        room = None if ceiling is None else max(0, ceiling - taken)
        if pool.capacity_type is CapacityType.ON_DEMAND:
            steps = [_needed(needed, allowed, on_demand), _slack(on_demand, slack)]
        else:
            steps = [_needed(needed, allowed, spot)]
        plans.append(_plan_pool(pool, steps, room))
    return NodeCapacityPlan(needed, tuple(plans))


def split_nodes(nodes: int, on_demand_floor_percent: int) -> tuple[int, int]:
    """Whole nodes on demand and on spot: at least so many percent on demand. 20 % of 6 is 2 and 4. Integers only."""
    on_demand = -(-nodes * on_demand_floor_percent // 100)
    return on_demand, nodes - on_demand


def nodes_for(accelerators_per_node: int, demands: Iterable[AcceleratorDemand]) -> int:
    """The nodes that all replicas take, the largest placed first; one larger than a node takes whole nodes.

    First fit in falling order needs no more nodes than any order where sizes divide each other (1, 2, 4, 8).
    """
    replicas_by_size: Counter[int] = Counter()
    whole_nodes = 0
    for demand in demands:
        replicas = max(demand.wanted_replicas, demand.current_replicas)
        size = demand.accelerators_per_replica
        if size >= accelerators_per_node:
            whole_nodes += replicas * -(-size // accelerators_per_node)
        else:
            replicas_by_size[size] += replicas
    nodes_by_free: Counter[int] = Counter()
    for size in sorted(replicas_by_size, reverse=True):
        _place(size, replicas_by_size[size], accelerators_per_node, nodes_by_free)
    return whole_nodes + sum(nodes_by_free.values())


def _place(size: int, replicas: int, accelerators_per_node: int, nodes_by_free: Counter[int]) -> None:
    """Places replicas of one size: the fullest nodes that have room first, then new ones."""
    for free in sorted(free for free in nodes_by_free if free >= size):
        fit = free // size
        nodes = min(nodes_by_free[free], -(-replicas // fit))
        replicas = _fill(size, replicas, free, nodes, nodes_by_free)
        nodes_by_free[free] -= nodes
    new_nodes = -(-replicas // (accelerators_per_node // size))
    _fill(size, replicas, accelerators_per_node, new_nodes, nodes_by_free)


def _fill(size: int, replicas: int, free: int, nodes: int, nodes_by_free: Counter[int]) -> int:
    """Fills so many nodes, the last one perhaps in part; returns the replicas that are left."""
    fit = free // size
    placed = min(replicas, nodes * fit)
    full, rest = divmod(placed, fit)
    nodes_by_free[free - fit * size] += full
    if rest:
        nodes_by_free[free - rest * size] += 1
    return replicas - placed


def _needed(needed: int, allowed: int, share: int) -> PlanStep:
    if allowed == needed:
        message = f"replicas take {counted(needed, 'node')}, {share} of them here"
        return PlanStep("replicas", 0, share, Reason.NODES_NEEDED, message)
    message = f"replicas take {counted(needed, 'node')}, the ceiling leaves {allowed}, {share} of them here"
    return PlanStep("replicas", 0, share, Reason.ACCELERATOR_CEILING, message)


def _slack(nodes: int, slack: int) -> PlanStep:
    return PlanStep("slack", nodes, nodes + slack, Reason.SLACK_NODES, f"{counted(slack, 'node')} to spare")


def _plan_pool(pool: NodePoolState, steps: list[PlanStep], room: int | None) -> NodePoolPlan:
    limit = steps[-1].after
    if room is not None and limit > room:
        message = f"wanted {counted(limit, 'node')}; with the nodes that are there elsewhere the ceiling leaves {room}"
        steps.append(PlanStep("ceiling", limit, room, Reason.ACCELERATOR_CEILING, message))
        limit = room
    if limit < pool.nodes_in_use:
        # A limit below what is there would also block the replacement of a node that drifts or is lost.
        message = f"{counted(pool.nodes_in_use, 'node')} are there; the limit follows when they have gone"
        steps.append(PlanStep("inUse", limit, pool.nodes_in_use, Reason.NODES_IN_USE, message))
        limit = pool.nodes_in_use
    return NodePoolPlan(pool.name, limit, tuple(steps))
