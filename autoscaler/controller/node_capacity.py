"""Are there nodes for what was decided? Between the decisions of a tick and their writing, limits are brought in step.

Limits grow before replicas do. They come down after nodes have gone, because a plan is never below the nodes that are
there. An AcceleratorPool's ceiling comes back to the decisions of the next tick as an allowance.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from autoscaler.actuators.node_pool_limits import NodePoolLimits
from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool
from autoscaler.api.prewarm import PrewarmMethod
from autoscaler.controller.capacity_problems import fit_problem, readiness_problem, shape_problem
from autoscaler.controller.capacity_splits import SplitMemory, splits_of
from autoscaler.controller.fleet_dollars import PoolWishes, allowed_by, limited_by, share_fleet_dollars
from autoscaler.controller.limits_writer import LimitsWriter
from autoscaler.controller.managed_pool import ManagedPool, as_seen, managed, nodes_of_split, split_ground, states
from autoscaler.controller.node_moves import node_moves_of
from autoscaler.controller.prewarming import Prewarmer, PrewarmPlan
from autoscaler.controller.replica_wish import ReplicaWish, node_demands, share_demand
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.node_pools import NodePoolSeen, NodePoolSource
from autoscaler.observers.replica_places import PlaceSource
from autoscaler.observers.workload import TargetPart
from policies.accelerator_sharing import AcceleratorAllowance, AcceleratorDemand, share_accelerators
from policies.capacity_split import CapacityType, ReplicaSplit
from policies.dollar_sharing import DollarShare
from policies.node_capacity import (
    CapacityOutcome,
    NodeCapacityParameters,
    NodePoolPlan,
    NodePoolState,
    WarmOutcome,
    ceiling_nodes,
    plan_node_capacity,
)
from policies.node_move import NodeMove
from policies.reasons import Reason
from policies.victims import NodesOfSplit

logger = logging.getLogger(__name__)

# A scaler for which nothing can be decided (its target is missing, say) holds up the plan of the others for so long.
UNDECIDED_SECONDS = 60.0
_NO_PRICE = (
    "there is a ceiling in dollars that is for all pools, and this one has no nodeDollarsPerHour: its limits stay as "
    "they are"
)


class AcceleratorPoolLookup(Protocol):
    """The AcceleratorPools as they are known; never blocks on the network."""

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        """The newest known objects; `status` as it was last read."""
        ...


class NodeCapacity(Protocol):
    """What the reconciler asks about accelerators."""

    def allowance(self, key: PoolKey) -> AcceleratorAllowance | None:
        """The most replicas that a scaler may have by the last tick's wishes; None: nothing limits it."""
        ...

    def first_allowances(
        self, wishes: Sequence[ReplicaWish], now_seconds: float
    ) -> Mapping[PoolKey, AcceleratorAllowance]:
        """By the wishes of this very tick, of those that have none by the last one and share a ceiling."""
        ...

    def provide(
        self, wishes: Sequence[ReplicaWish], referring: Mapping[PoolKey, str | None], now_seconds: float
    ) -> Mapping[PoolKey, ReplicaSplit]:
        """Brings limits in step with the wishes of a tick, before they are written; returns how two targets share.

        `referring` has the AcceleratorPool of every scaler that refers to one, also where nothing was decided in this
        tick; None for a scaler whose spec cannot be read now.
        """
        ...

    def nodes_of_split(self, key: PoolKey) -> NodesOfSplit | None:
        """The nodes on demand and on spot behind a scaler, as of the last tick; None where no split is to be kept."""
        ...

    def node_move(self, key: PoolKey) -> NodeMove | None:
        """What the nodes of the last tick say of a move to the other kind; None where there is nothing to be moved."""
        ...

    def forget_all(self) -> None:
        """Drops wishes and allowances: somebody else has decided since."""
        ...


@dataclass(frozen=True, slots=True)
class _Members:
    """The scalers of a managed pool: those that count, of which some may not be known yet, and those left out."""

    wishing: PoolWishes
    keys: tuple[PoolKey, ...]
    unknown: tuple[PoolKey, ...]
    left_out: tuple[PoolKey, ...]


class NodeCapacityKeeper:
    """A NodeCapacity on AcceleratorPools in mode Manage. `limits` None: nothing is written (a dry run)."""

    def __init__(
        self,
        pools: AcceleratorPoolLookup,
        node_pools: NodePoolSource,
        limits: NodePoolLimits | None,
        own_manager: str,
        prewarmer: Prewarmer | None = None,
        ceiling_per_hour: int | None = None,
        places: PlaceSource | None = None,
    ) -> None:
        """Without a prewarmer no node is held ready. `ceiling_per_hour` is for all pools, in millionths of a dollar.

        Without `places` no replica is moved to nodes of the other kind.
        """
        self._places = places
        self._ceiling_per_hour = ceiling_per_hour
        self._prewarmer = prewarmer
        self._pools = pools
        self._node_pools = node_pools
        self._writer = LimitsWriter(limits, own_manager)
        self._wishes: dict[PoolKey, ReplicaWish] = {}
        self._allowances: dict[PoolKey, AcceleratorAllowance] = {}
        self._outcomes: dict[str, CapacityOutcome] = {}
        self._undecided: dict[PoolKey, float] = {}
        self._splits = SplitMemory()
        self._split_nodes: dict[str, NodesOfSplit] = {}
        self._node_moves: dict[PoolKey, NodeMove] = {}
        self._ticks = 0

    def allowance(self, key: PoolKey) -> AcceleratorAllowance | None:
        """By the wishes of the last tick; None without a ceiling, and until all who share it are known."""
        return self._allowances.get(key)

    def first_allowances(
        self, wishes: Sequence[ReplicaWish], now_seconds: float
    ) -> Mapping[PoolKey, AcceleratorAllowance]:
        """Of the scalers of a new leader, and of new ones. Those of whom nothing is known yet leave theirs to all."""
        fresh = {wish.accelerator_pool for wish in wishes if wish.key not in self._allowances}
        known, managed_pools = self._known()
        is_shared = self._ceiling_per_hour is not None
        if not any(pool.name in fresh and (is_shared or pool.has_ceiling) for pool in managed_pools):
            return {}
        node_pools = {name: each.at(now_seconds) for name, each in self._node_pools.node_pools().items()}
        counted = [wish for wish in wishes if wish.accelerators_per_replica]
        wishing = [
            PoolWishes(as_seen(pool, node_pools), [wish for wish in counted if wish.accelerator_pool == pool.name])
            for pool in managed_pools
        ]
        shares = self._fleet_shares(wishing, known, node_pools)
        found: dict[PoolKey, AcceleratorAllowance] = {}
        for wished in wishing:
            share = shares.get(wished.pool.name)
            pool = wished.pool if share is None else allowed_by(wished.pool, share)
            found |= _allowances(pool, wished.wishes or (), states(pool.node_pools, node_pools))
        return {key: allowance for key, allowance in found.items() if key not in self._allowances}

    def nodes_of_split(self, key: PoolKey) -> NodesOfSplit | None:
        """By the NodePools of the last tick."""
        wish = self._wishes.get(key)
        return None if wish is None else self._split_nodes.get(wish.accelerator_pool)

    def node_move(self, key: PoolKey) -> NodeMove | None:
        """By the nodes of the last tick."""
        return self._node_moves.get(key)

    def outcome(self, pool: str) -> CapacityOutcome | None:
        """What the last tick came to for an AcceleratorPool; None where it is not managed."""
        return self._outcomes.get(pool)

    def provide(
        self, wishes: Sequence[ReplicaWish], referring: Mapping[PoolKey, str | None], now_seconds: float
    ) -> Mapping[PoolKey, ReplicaSplit]:
        """Splits, plans, writes limits, and remembers allowances; a scaler without a wish in this tick keeps its last.

        Returns the counts of the two targets of every scaler that has two and whose AcceleratorPool is there.
        """
        self._ticks += 1
        before = {key: self._wishes[key] for key in referring if key in self._wishes}
        kept = {key: wish for key, wish in before.items() if referring[key] in (None, wish.accelerator_pool)}
        self._wishes = kept | {wish.key: wish for wish in wishes}
        pool_of = dict(referring) | {key: wish.accelerator_pool for key, wish in self._wishes.items()}
        known, managed_pools = self._known()
        has_splits = any(wish.parts for wish in self._wishes.values())
        seen = self._node_pools.node_pools() if managed_pools or has_splits else {}
        node_pools = {name: each.at(now_seconds) for name, each in seen.items()}
        splits = self._split(known, node_pools) if has_splits else {}
        self._split_nodes = {
            pool.name: nodes for pool in known if (nodes := nodes_of_split(pool, node_pools)) is not None
        }
        outcomes: dict[str, CapacityOutcome] = {}
        allowances: dict[PoolKey, AcceleratorAllowance] = {}
        node_moves: dict[PoolKey, NodeMove] = {}
        members = [self._members(as_seen(pool, node_pools), pool_of, now_seconds) for pool in managed_pools]
        shares = self._fleet_shares([member.wishing for member in members], known, node_pools)
        for member in members:
            pool = member.wishing.pool
            if member.wishing.wishes is None:
                outcomes[pool.name] = CapacityOutcome(None, Reason.ACCELERATORS_UNKNOWN, _not_counted(member.unknown))
                allowances |= {key: self._allowances[key] for key in member.keys if key in self._allowances}
                node_moves |= {key: self._node_moves[key] for key in member.keys if key in self._node_moves}
                continue
            if self._ceiling_per_hour is not None and pool.prices is None:
                outcomes[pool.name] = CapacityOutcome(None, Reason.NODE_PRICE_UNKNOWN, _NO_PRICE)
                continue
            share = shares.get(pool.name)
            allowed = pool if share is None else allowed_by(pool, share)
            limited = pool if share is None else limited_by(pool, share, node_pools)
            allowances |= _allowances(allowed, member.wishing.wishes, states(pool.node_pools, node_pools))
            outcome = self._provide_nodes(limited, member.wishing.wishes, splits, node_pools, now_seconds)
            outcomes[pool.name] = _without(outcome, member.left_out) if member.left_out else outcome
            if self._places is not None:
                node_moves |= node_moves_of(limited, member.wishing.wishes, node_pools, self._places, self._ticks)
        if self._prewarmer is not None:
            self._prewarmer.release([pool.name for pool in known if not _holds_places(pool)])
        self._undecided = {key: since for key, since in self._undecided.items() if key in pool_of}
        self._allowances, self._outcomes, self._node_moves = allowances, outcomes, node_moves
        return splits

    def _known(self) -> tuple[list[AcceleratorPool], list[ManagedPool]]:
        """The AcceleratorPools that can be read, and those of them that are managed."""
        known = [pool for pool in self._pools.accelerator_pools() if isinstance(pool, AcceleratorPool)]
        return known, [each for pool in known if (each := managed(pool)) is not None]

    def _members(self, pool: ManagedPool, pool_of: Mapping[PoolKey, str | None], now_seconds: float) -> _Members:
        named = sorted(key for key, name in pool_of.items() if name == pool.name)
        left_out = tuple(key for key in named if self._is_left_out(key, now_seconds))
        keys = tuple(key for key in named if key not in left_out)
        unknown = tuple(key for key in keys if not self._is_counted(key))
        wishes = None if unknown else [self._wishes[key] for key in keys]
        return _Members(PoolWishes(pool, wishes), keys, unknown, left_out)

    def _fleet_shares(
        self, managed: Sequence[PoolWishes], known: Sequence[AcceleratorPool], node_pools: Mapping[str, NodePoolSeen]
    ) -> Mapping[str, DollarShare]:
        """Empty where there is no ceiling that is for all pools together."""
        if self._ceiling_per_hour is None:
            return {}
        return share_fleet_dollars(self._ceiling_per_hour, managed, known, node_pools)

    def _provide_nodes(
        self,
        pool: ManagedPool,
        wishes: Sequence[ReplicaWish],
        splits: Mapping[PoolKey, ReplicaSplit],
        node_pools: Mapping[str, NodePoolSeen],
        now_seconds: float,
    ) -> CapacityOutcome:
        """Limits for replicas and for what is held ready, then the placeholders, which go before replicas come."""
        by_key = {wish.key: node_demands(wish, splits.get(wish.key)) for wish in wishes}
        demands = [demand for each in by_key.values() for demand in each]
        warm = self._plan_warm_nodes(pool, wishes, by_key, node_pools, now_seconds)
        if isinstance(warm, PrewarmPlan):
            demands.append(warm.demand)
        if any(wish.is_moving and wish.moves_to is CapacityType.SPOT for wish in wishes):
            # Room to spare on demand would be taken by what is to go on spot.
            pool = replace(pool, parameters=replace(pool.parameters, slack_nodes=0))
        outcome = self._bring_in_step(pool, demands, node_pools, now_seconds)
        if isinstance(warm, PrewarmPlan) and self._prewarmer is not None:
            return replace(outcome, warm=self._prewarmer.carry_out(warm))
        return outcome if isinstance(warm, PrewarmPlan) else replace(outcome, warm=warm)

    def _plan_warm_nodes(
        self,
        pool: ManagedPool,
        wishes: Sequence[ReplicaWish],
        demands: Mapping[PoolKey, Sequence[AcceleratorDemand]],
        node_pools: Mapping[str, NodePoolSeen],
        now_seconds: float,
    ) -> PrewarmPlan | WarmOutcome | None:
        held = pool.held(node_pools)
        if held is None or self._prewarmer is None:
            return None
        ceiling = ceiling_nodes(pool.parameters, states(pool.node_pools, node_pools))
        by_key = {wish.key: wish for wish in wishes}
        return self._prewarmer.plan(held, demands, by_key, ceiling, now_seconds)

    def asked_for(self, key: PoolKey, parts: Sequence[TargetPart]) -> int | None:
        """The count that two targets as they stand were made for; None where it is not known."""
        return self._splits.asked_for(key, parts)

    def _split(
        self, pools: Sequence[AcceleratorPool], node_pools: Mapping[str, NodePoolSeen]
    ) -> Mapping[PoolKey, ReplicaSplit]:
        splits: dict[PoolKey, ReplicaSplit] = {}
        for pool in pools:
            mine = [wish for wish in self._wishes.values() if wish.accelerator_pool == pool.name]
            splits |= splits_of(split_ground(pool, node_pools), mine)
        for key, split in splits.items():
            self._splits.note(self._wishes[key], split)
        return splits

    def forget_all(self) -> None:
        """Drops wishes and allowances, so that a process that becomes leader again cuts no count by old shares."""
        self._wishes, self._allowances, self._outcomes, self._undecided = {}, {}, {}, {}
        self._node_moves = {}
        self._splits.forget_all()

    def _is_left_out(self, key: PoolKey, now_seconds: float) -> bool:
        """Whether nothing could be decided for a scaler for so long that the others do not wait for it any more."""
        if key in self._wishes:
            self._undecided.pop(key, None)
            return False
        return now_seconds - self._undecided.setdefault(key, now_seconds) >= UNDECIDED_SECONDS

    def _is_counted(self, key: PoolKey) -> bool:
        wish = self._wishes.get(key)
        return wish is not None and wish.accelerators_per_replica is not None

    def _bring_in_step(
        self,
        pool: ManagedPool,
        demands: Sequence[AcceleratorDemand],
        node_pools: Mapping[str, NodePoolSeen],
        now_seconds: float,
    ) -> CapacityOutcome:
        shape, named = pool.shape, pool.node_pools
        if named.on_demand not in node_pools:
            return CapacityOutcome(None, Reason.NODE_POOL_NOT_FOUND, f"there is no NodePool {named.on_demand}")
        plan = plan_node_capacity(pool.parameters, demands, states(named, node_pools))
        problems = [shape_problem(node_pools[each.name], pool.stated or shape) for each in plan.node_pools]
        problems += [fit_problem(demand, pool.parameters.node_room) for demand in demands]
        problems += [self._writer.write(node_pools[each.name], each, shape, now_seconds) for each in plan.node_pools]
        if named.spot is not None and named.spot not in node_pools:
            problems.append((Reason.NODE_POOL_NOT_FOUND, f"there is no NodePool {named.spot}"))
        problems += [readiness_problem(node_pools[each.name]) for each in plan.node_pools]
        problems += [self._writer.silence(node_pools[each.name], now_seconds) for each in plan.node_pools]
        real = [problem for problem in problems if problem is not None]
        if real:
            return CapacityOutcome(plan, real[0][0], "; ".join(message for _, message in real))
        return CapacityOutcome(plan, Reason.LIMITS_IN_STEP, "; ".join(_sentence(each) for each in plan.node_pools))


def _holds_places(pool: AcceleratorPool) -> bool:
    """Whether we make a CapacityBuffer for it."""
    return pool.spec.held_ready is not None and pool.spec.held_ready.method is PrewarmMethod.CAPACITY_BUFFER


def _allowances(
    pool: ManagedPool, wishes: Sequence[ReplicaWish], states: Sequence[NodePoolState]
) -> Mapping[PoolKey, AcceleratorAllowance]:
    # Whole nodes: a ceiling of 20 accelerators on nodes of 8 holds 16.
    nodes = ceiling_nodes(pool.parameters, states)
    if nodes is None:
        return {}
    accelerators = nodes * pool.parameters.accelerators_per_node
    names = {f"{namespace}/{name}": (namespace, name) for namespace, name in (wish.key for wish in wishes)}
    demands = [_as_packed(share_demand(wish), pool.parameters) for wish in wishes]
    is_shared = pool.parameters.dollar_ceiling is not None and (
        pool.parameters.dollar_ceiling.reason is Reason.SHARED_DOLLAR_CEILING
    )
    where = f"{pool.name} (within the dollars an hour of all pools)" if is_shared else pool.name
    shared = share_accelerators(accelerators, demands, where)
    return {names[name]: allowance for name, allowance in shared.items()}


def _as_packed(demand: AcceleratorDemand, parameters: NodeCapacityParameters) -> AcceleratorDemand:
    """With the accelerators that a replica keeps from others, where CPU or memory leave room for fewer on a node."""
    each, fit = parameters.accelerators_per_node, parameters.node_room.replicas_of(demand)
    if not 0 < fit < each // demand.accelerators_per_replica:
        return demand
    return replace(demand, accelerators_per_replica=-(-each // fit))


def _without(outcome: CapacityOutcome, left_out: Sequence[PoolKey]) -> CapacityOutcome:
    names = ", ".join("/".join(key) for key in left_out[:10])
    reason = Reason.ACCELERATORS_UNKNOWN if outcome.reason is Reason.LIMITS_IN_STEP else outcome.reason
    message = f"planned without {names}, for which nothing can be decided; {outcome.message}"
    return replace(outcome, reason=reason, message=message)


def _not_counted(keys: Sequence[PoolKey]) -> str:
    names = ", ".join("/".join(key) for key in keys[:10])
    return f"not planned before these are known (decided once, acceleratorsPerReplica): {names}"


def _sentence(plan: NodePoolPlan) -> str:
    return f"{plan.name}: {plan.limit_nodes} nodes ({'; '.join(step.message for step in plan.steps)})"
