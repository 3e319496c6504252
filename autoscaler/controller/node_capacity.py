"""Are there nodes for what was decided? Between the decisions of a tick and their writing, limits are brought in step.

Limits grow before replicas do. They come down after nodes have gone, because a plan is never below the nodes that are
there. An AcceleratorPool's ceiling comes back to the decisions of the next tick as an allowance.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from autoscaler.actuators.actuator import ActuationFailed
from autoscaler.actuators.node_pool_limits import NodePoolLimits
from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool
from autoscaler.api.node_shape import NodeShape, amount_of
from autoscaler.api.prewarm import PrewarmMethod
from autoscaler.controller.capacity_splits import SplitMemory, splits_of
from autoscaler.controller.managed_pool import ManagedPool, as_seen, managed, nodes_of_split, split_ground, states
from autoscaler.controller.prewarming import Prewarmer, PrewarmPlan
from autoscaler.controller.replica_wish import ReplicaWish, node_demands, share_demand
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.node_pools import NodePoolSeen, NodePoolSource
from autoscaler.observers.workload import TargetPart
from policies.accelerator_sharing import AcceleratorAllowance, AcceleratorDemand, share_accelerators
from policies.capacity_split import ReplicaSplit
from policies.node_capacity import (
    CapacityOutcome,
    NodeCapacityParameters,
    NodePoolPlan,
    NodePoolState,
    WarmOutcome,
    ceiling_nodes,
    plan_node_capacity,
)
from policies.node_packing import NodeRoom
from policies.reasons import Reason
from policies.victims import NodesOfSplit
from policies.wording import duration

logger = logging.getLogger(__name__)

# Somebody who has just set a limit by hand is left alone for so long, as with a count of replicas.
FOREIGN_WRITE_SECONDS = 300.0
# A scaler for which nothing can be decided (its target is missing, say) holds up the plan of the others for so long.
UNDECIDED_SECONDS = 60.0
# Karpenter that has not judged a change for so long is down, or cannot reach the API server.
SILENCE_SECONDS = 30.0
# Each patch makes Karpenter judge the NodePool anew. Raising does not wait; lowering saves nothing by haste.
LOWERING_INTERVAL_SECONDS = 60.0


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

    def forget_all(self) -> None:
        """Drops wishes and allowances: somebody else has decided since."""
        ...


@dataclass(frozen=True, slots=True)
class _LimitsHistory:
    """What is remembered of a NodePool's limits between two ticks."""

    settled: Mapping[str, str]
    written_at_seconds: float | None = None
    contested: Mapping[str, str] | None = None
    contested_since_seconds: float = 0.0


class NodeCapacityKeeper:
    """A NodeCapacity on AcceleratorPools in mode Manage. `limits` None: nothing is written (a dry run)."""

    def __init__(
        self,
        pools: AcceleratorPoolLookup,
        node_pools: NodePoolSource,
        limits: NodePoolLimits | None,
        own_manager: str,
        prewarmer: Prewarmer | None = None,
    ) -> None:
        """Without a prewarmer no node is held ready."""
        self._prewarmer = prewarmer
        self._pools = pools
        self._node_pools = node_pools
        self._limits = limits
        self._own_manager = own_manager
        self._wishes: dict[PoolKey, ReplicaWish] = {}
        self._allowances: dict[PoolKey, AcceleratorAllowance] = {}
        self._histories: dict[str, _LimitsHistory] = {}
        self._outcomes: dict[str, CapacityOutcome] = {}
        self._undecided: dict[PoolKey, float] = {}
        self._splits = SplitMemory()
        self._split_nodes: dict[str, NodesOfSplit] = {}

    def allowance(self, key: PoolKey) -> AcceleratorAllowance | None:
        """By the wishes of the last tick; None without a ceiling, and until all who share it are known."""
        return self._allowances.get(key)

    def first_allowances(
        self, wishes: Sequence[ReplicaWish], now_seconds: float
    ) -> Mapping[PoolKey, AcceleratorAllowance]:
        """Of the scalers of a new leader, and of new ones. Those of whom nothing is known yet leave theirs to all."""
        fresh = {wish.accelerator_pool for wish in wishes if wish.key not in self._allowances}
        known = [pool for pool in self._pools.accelerator_pools() if isinstance(pool, AcceleratorPool)]
        sharing = [each for pool in known if pool.name in fresh and (each := managed(pool)) and each.has_ceiling]
        if not sharing:
            return {}
        node_pools = {name: each.at(now_seconds) for name, each in self._node_pools.node_pools().items()}
        found: dict[PoolKey, AcceleratorAllowance] = {}
        for pool in sharing:
            mine = [each for each in wishes if each.accelerator_pool == pool.name and each.accelerators_per_replica]
            found |= _allowances(as_seen(pool, node_pools), mine, states(pool.node_pools, node_pools))
        return {key: allowance for key, allowance in found.items() if key not in self._allowances}

    def nodes_of_split(self, key: PoolKey) -> NodesOfSplit | None:
        """By the NodePools of the last tick."""
        wish = self._wishes.get(key)
        return None if wish is None else self._split_nodes.get(wish.accelerator_pool)

    def outcome(self, pool: str) -> CapacityOutcome | None:
        """What the last tick came to for an AcceleratorPool; None where it is not managed."""
        return self._outcomes.get(pool)

    def provide(
        self, wishes: Sequence[ReplicaWish], referring: Mapping[PoolKey, str | None], now_seconds: float
    ) -> Mapping[PoolKey, ReplicaSplit]:
        """Splits, plans, writes limits, and remembers allowances; a scaler without a wish in this tick keeps its last.

        Returns the counts of the two targets of every scaler that has two and whose AcceleratorPool is there.
        """
        before = {key: self._wishes[key] for key in referring if key in self._wishes}
        kept = {key: wish for key, wish in before.items() if referring[key] in (None, wish.accelerator_pool)}
        self._wishes = kept | {wish.key: wish for wish in wishes}
        pool_of = dict(referring) | {key: wish.accelerator_pool for key, wish in self._wishes.items()}
        known = [pool for pool in self._pools.accelerator_pools() if isinstance(pool, AcceleratorPool)]
        managed_pools = [each for pool in known if (each := managed(pool)) is not None]
        has_splits = any(wish.parts for wish in self._wishes.values())
        seen = self._node_pools.node_pools() if managed_pools or has_splits else {}
        node_pools = {name: each.at(now_seconds) for name, each in seen.items()}
        splits = self._split(known, node_pools) if has_splits else {}
        self._split_nodes = {
            pool.name: nodes for pool in known if (nodes := nodes_of_split(pool, node_pools)) is not None
        }
        outcomes: dict[str, CapacityOutcome] = {}
        allowances: dict[PoolKey, AcceleratorAllowance] = {}
        for stated in managed_pools:
            pool = as_seen(stated, node_pools)
            named = sorted(key for key, name in pool_of.items() if name == pool.name)
            left_out = [key for key in named if self._is_left_out(key, now_seconds)]
            members = [key for key in named if key not in left_out]
            unknown = [key for key in members if not self._is_counted(key)]
            if unknown:
                outcomes[pool.name] = CapacityOutcome(None, Reason.ACCELERATORS_UNKNOWN, _not_counted(unknown))
                allowances |= {key: self._allowances[key] for key in members if key in self._allowances}
                continue
            mine = [self._wishes[key] for key in members]
            allowances |= _allowances(pool, mine, states(pool.node_pools, node_pools))
            outcome = self._provide_nodes(pool, mine, splits, node_pools, now_seconds)
            outcomes[pool.name] = _without(outcome, left_out) if left_out else outcome
        if self._prewarmer is not None:
            self._prewarmer.release([pool.name for pool in known if not _holds_places(pool)])
        self._undecided = {key: since for key, since in self._undecided.items() if key in pool_of}
        self._allowances, self._outcomes = allowances, outcomes
        return splits

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
            self._splits.note(key, self._wishes[key].desired, split)
        return splits

    def forget_all(self) -> None:
        """Drops wishes and allowances, so that a process that becomes leader again cuts no count by old shares."""
        self._wishes, self._allowances, self._outcomes, self._undecided = {}, {}, {}, {}
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
        problems = [_shape_problem(node_pools[each.name], pool.stated or shape) for each in plan.node_pools]
        problems += [self._write(node_pools[each.name], each, shape, now_seconds) for each in plan.node_pools]
        if named.spot is not None and named.spot not in node_pools:
            problems.append((Reason.NODE_POOL_NOT_FOUND, f"there is no NodePool {named.spot}"))
        problems += [_readiness(node_pools[each.name]) for each in plan.node_pools]
        problems += [self._silence(node_pools[each.name], now_seconds) for each in plan.node_pools]
        real = [problem for problem in problems if problem is not None]
        if real:
            return CapacityOutcome(plan, real[0][0], "; ".join(message for _, message in real))
        return CapacityOutcome(plan, Reason.LIMITS_IN_STEP, "; ".join(_sentence(each) for each in plan.node_pools))

    def _write(
        self, seen: NodePoolSeen, plan: NodePoolPlan, shape: NodeShape, now_seconds: float
    ) -> tuple[Reason, str] | None:
        """Writes limits that differ from the plan's; the problem if they then still differ."""
        history = self._judge(seen, now_seconds)
        self._histories[seen.name] = history
        limits = shape.limits_for(plan.limit_nodes, seen.limits)
        if _same(limits, seen.limits):
            return None
        if history.contested is not None:
            who = seen.limit_managers[-1] if seen.limit_managers else "somebody"
            return (
        problems += [_fit_problem(demand, pool.parameters.node_room) for demand in demands]
                Reason.COMPETING_WRITER,
                f'"{who}" has just set the limits of NodePool {seen.name}; they are left alone',
            )
        last = history.written_at_seconds
        is_raised = plan.limit_nodes > (shape.whole_nodes(seen.limits) or 0)
        if not is_raised and last is not None and now_seconds - last < LOWERING_INTERVAL_SECONDS:
            return None
        if self._limits is None:
            return Reason.DRY_RUN, f"NodePool {seen.name} would be limited to {plan.limit_nodes} nodes"
        result = self._limits.write(seen.name, seen.limits, limits)
        if isinstance(result, ActuationFailed):
            logger.warning("limits were not written", extra={"node_pool": seen.name, "problem": result.message})
            return result.reason, result.message
        logger.info("limits written", extra={"node_pool": seen.name, "change": result.message})
        self._histories[seen.name] = _LimitsHistory(limits, now_seconds)
        return None

    def _silence(self, seen: NodePoolSeen, now_seconds: float) -> tuple[Reason, str] | None:
        """That nobody has looked at limits that we wrote: Karpenter judges every change within a second or two."""
        written_at_seconds = self._histories[seen.name].written_at_seconds
        if seen.is_judged or written_at_seconds is None or now_seconds - written_at_seconds < SILENCE_SECONDS:
            return None
        ago = duration(now_seconds - written_at_seconds)
        message = (
            f"nobody has looked at the limits of NodePool {seen.name} that were written {ago} ago: is Karpenter up?"
        )
        return Reason.KARPENTER_SILENT, message

    def _judge(self, seen: NodePoolSeen, now_seconds: float) -> _LimitsHistory:
        """Whether somebody else has just changed the limits: they are neither what stood there nor what we wrote."""
        before = self._histories.get(seen.name)
        if before is None:
            return _LimitsHistory(seen.limits)
        is_ours = bool(seen.limit_managers) and seen.limit_managers[-1] == self._own_manager
        if _same(seen.limits, before.settled) or is_ours:
            return replace(before, settled=seen.limits, contested=None)
        is_known = before.contested is not None and _same(seen.limits, before.contested)
        since = before.contested_since_seconds if is_known else now_seconds
        if now_seconds - since >= FOREIGN_WRITE_SECONDS:
            return _LimitsHistory(seen.limits, before.written_at_seconds)
        return replace(before, contested=seen.limits, contested_since_seconds=since)


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
    shared = share_accelerators(accelerators, demands, pool.name)
    return {names[name]: allowance for name, allowance in shared.items()}


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether limits mean the same: 1024Gi is 1Ti."""
    return one.keys() == other.keys() and all(_amount(one[key]) == _amount(other[key]) for key in one)


def _amount(quantity: str) -> object:
    amount = amount_of(quantity)
    return quantity if amount is None else amount


def _shape_problem(seen: NodePoolSeen, shape: NodeShape) -> tuple[Reason, str] | None:
    unknown = shape.unknown_keys(seen.limits)
    if unknown:
        message = (
            f"NodePool {seen.name} limits {', '.join(unknown)}, and nodeShape does not say what a node takes of it"
        )
        return Reason.NODE_SHAPE_CONTRADICTED, message
    contradictions = {text for capacity in seen.capacities for text in shape.contradictions(capacity)}
    if contradictions:
        message = f"NodePool {seen.name}: {'; '.join(sorted(contradictions))}; limits are set for what nodes bring"
        return Reason.NODE_SHAPE_CONTRADICTED, message
    return None
def _as_packed(demand: AcceleratorDemand, parameters: NodeCapacityParameters) -> AcceleratorDemand:
    """With the accelerators that a replica keeps from others, where CPU or memory leave room for fewer on a node."""
    each, fit = parameters.accelerators_per_node, parameters.node_room.replicas_of(demand)
    if not 0 < fit < each // demand.accelerators_per_replica:
        return demand
    return replace(demand, accelerators_per_replica=-(-each // fit))




def _readiness(seen: NodePoolSeen) -> tuple[Reason, str] | None:
    if seen.makes_nodes:
        return None
    if seen.launch_problem is not None:
        return seen.launch_problem.reason, f"NodePool {seen.name} makes no nodes: {seen.launch_problem.message}"
    return Reason.NODE_POOL_NOT_READY, f"NodePool {seen.name} makes no nodes: {seen.problem}"


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
def _fit_problem(demand: AcceleratorDemand, room: NodeRoom) -> tuple[Reason, str] | None:
    """That a replica fits on no node of the pool, so that the limits are none of its troubles."""
    is_wanted = demand.wanted_replicas or demand.current_replicas
    if not is_wanted or room.replicas_of(demand) or demand.accelerators_per_replica > room.accelerators:
        return None
    asked, left = [], []
    if room.cpu_millis is not None and demand.cpu_millis > room.cpu_millis:
        asked.append(f"{demand.cpu_millis / 1000:g} CPUs")
        left.append(f"{room.cpu_millis / 1000:g}")
    if room.memory_bytes is not None and demand.memory_bytes > room.memory_bytes:
        asked.append(f"{demand.memory_bytes / 2**30:.1f} GiB of memory")
        left.append(f"{room.memory_bytes / 2**30:.1f} GiB")
    message = (
        f"a replica of {demand.scaler} fits on no node: it asks for {' and '.join(asked)}, and beside the system and "
        f"DaemonSets a node leaves {' and '.join(left)}"
    )
    return Reason.REPLICA_FITS_NO_NODE, message


