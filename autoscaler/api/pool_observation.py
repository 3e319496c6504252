"""What does an AcceleratorPool have, and what do InferenceScalers want of it? Counts only; nothing is decided."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolStatus, InvalidAcceleratorPool
from autoscaler.api.conditions import Condition, ConditionStatus, ConditionType, set_condition
from autoscaler.api.node_template import NODE_POOL_LABEL
from policies.capacity_split import CapacityType, is_split_kept, on_demand_beside
from policies.disruption_hold import DisruptionOutcome
from policies.latency_class import ConsolidationSettings, LatencyClass, judge_consolidation
from policies.node_capacity import CapacityOutcome, WarmOutcome
from policies.reasons import Reason
from policies.wording import counted


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A node, the Karpenter NodePool it belongs to (None: none), and the accelerators that pods can have on it."""

    node_pool: str | None
    accelerators: int
    is_ready: bool
    capacity_type: str | None = None  # as its label says; None: it has no such label
    is_deleting: bool = False


class NodesByPool:
    """All nodes by the NodePool they belong to, so that many AcceleratorPools do not look at each of them."""

    def __init__(self, nodes: Iterable[PoolNode]) -> None:
        self._nodes: defaultdict[str | None, list[PoolNode]] = defaultdict(list)
        for node in nodes:
            self._nodes[node.node_pool].append(node)

    def of(self, pool: AcceleratorPool) -> list[PoolNode]:
        """The nodes of its NodePools."""
        return [node for name in pool.spec.node_pools.names for node in self._nodes.get(name, ())]


@dataclass(frozen=True, slots=True)
class NodeCounts:
    """The nodes of an AcceleratorPool by (kind of capacity, whether they are being deleted)."""

    nodes: Mapping[tuple[CapacityType, bool], int]

    def staying(self, capacity_type: CapacityType) -> int:
        """Nodes of a kind that are not being deleted, Ready or not."""
        return self.nodes.get((capacity_type, False), 0)

    def deleting(self, capacity_type: CapacityType) -> int:
        """Nodes of a kind that are being deleted: they still run, and cost."""
        return self.nodes.get((capacity_type, True), 0)


def count_nodes(pool: AcceleratorPool, nodes: Iterable[PoolNode]) -> NodeCounts:
    """The pool's nodes by their own labels. Reserved capacity counts as on demand: it is not taken away.

    A node without the label is of the kind that its NodePool is named for.
    """
    named = pool.spec.node_pools
    kinds: dict[str | None, CapacityType] = {CapacityType.SPOT: CapacityType.SPOT, None: CapacityType.ON_DEMAND}
    counts: Counter[tuple[CapacityType, bool]] = Counter()
    for node in nodes:
        if node.node_pool not in named.names:
            continue
        by_name = CapacityType.SPOT if node.node_pool == named.spot else None
        kind = kinds.get(node.capacity_type or by_name, CapacityType.ON_DEMAND)
        counts[kind, node.is_deleting] += 1
    return NodeCounts(counts)


@dataclass(frozen=True, slots=True)
class PoolScaler:
    """What one InferenceScaler wants of the pool it refers to; None: nothing decided yet, or not known."""

    namespace: str
    name: str
    desired_replicas: int | None
    accelerators_per_replica: int | None

    @property
    def accelerators(self) -> int | None:
        """Accelerators of all desired replicas, None where either number is not known."""
        if self.desired_replicas is None or self.accelerators_per_replica is None:
            return None
        return self.desired_replicas * self.accelerators_per_replica


def observe_accelerator_pool(
    pool: AcceleratorPool,
    nodes: Sequence[PoolNode],
    scalers: Iterable[PoolScaler],
    now_seconds: float,
    outcome: CapacityOutcome | None = None,
    consolidation: Mapping[str, ConsolidationSettings] | None = None,
    disruption: DisruptionOutcome | None = None,
) -> AcceleratorPoolStatus:
    """The pool's next status. `nodes` may hold other pools' nodes too; `scalers` are those that refer to this pool.

    `outcome` is what came of planning its NodePools' limits; None where they are not managed. `consolidation` is what
    NodePools say of their nodes' end, by name, and `disruption` what came of managing it; None where nobody does.
    Scalers of which a number is not known are not counted, and a condition names them: the sum is then too small.
    """
    ready = [node for node in nodes if node.node_pool in pool.spec.node_pools.names and node.is_ready]
    present = sum(node.accelerators for node in ready)
    referring = sorted(scalers, key=lambda scaler: (scaler.namespace, scaler.name))
    wanted = sum(scaler.accelerators or 0 for scaler in referring)
    judged = [
        _accepted(),
        _nodes_found(pool, len(ready)),
        _scalers_counted(referring),
        _sufficient(wanted, present),
    ]
    counts = count_nodes(pool, nodes)
    if pool.spec.split is not None:
        judged.append(_split_kept(counts, pool.spec.split.floor_percent))
    if outcome is not None:
        judged.append(_in_step(outcome))
    if outcome is not None and outcome.warm is not None:
        judged.append(_held_ready(outcome.warm))
    if pool.spec.latency_class is not None:
        judged.append(_consolidation_fits(pool, pool.spec.latency_class, consolidation or {}))
    if disruption is not None:
        status = ConditionStatus.TRUE if disruption.is_allowed else ConditionStatus.FALSE
        judged.append((ConditionType.DISRUPTION_ALLOWED, status, disruption.reason, disruption.message))
    plan = None if outcome is None else outcome.plan
    return AcceleratorPoolStatus(
        observed_generation=pool.generation,
        nodes=len(ready),
        on_demand_nodes=counts.staying(CapacityType.ON_DEMAND),
        spot_nodes=counts.staying(CapacityType.SPOT),
        accelerators_present=present,
        accelerators_wanted=wanted,
        scalers=len(referring),
        nodes_needed=None if plan is None else plan.needed_nodes,
        limit_nodes=None if plan is None else plan.limit_nodes,
        conditions=_conditions(pool, judged, now_seconds),
    )


def refuse_accelerator_pool(pool: InvalidAcceleratorPool, now_seconds: float) -> AcceleratorPoolStatus:
    """The status of a pool whose spec is not taken: no counts, and what is wrong with it."""
    judged = [(ConditionType.SPEC_ACCEPTED, ConditionStatus.FALSE, Reason.SPEC_INVALID, "; ".join(pool.problems))]
    return AcceleratorPoolStatus(observed_generation=pool.generation, conditions=_conditions(pool, judged, now_seconds))


# Kept as they were where they are not judged anew.
ALWAYS_JUDGED = (
    ConditionType.SPEC_ACCEPTED,
    ConditionType.NODES_FOUND,
    ConditionType.SCALERS_COUNTED,
    ConditionType.ACCELERATORS_SUFFICIENT,
)

_Judgement = tuple[ConditionType, ConditionStatus, Reason, str]


def _accepted() -> _Judgement:
    return ConditionType.SPEC_ACCEPTED, ConditionStatus.TRUE, Reason.SPEC_ACCEPTED, "the spec is valid"


def _nodes_found(pool: AcceleratorPool, ready: int) -> _Judgement:
    where = " or ".join(f"{NODE_POOL_LABEL}={name}" for name in pool.spec.node_pools.names)
    if ready:
        return ConditionType.NODES_FOUND, ConditionStatus.TRUE, Reason.NODES_FOUND, f"{ready} Ready nodes with {where}"
    return ConditionType.NODES_FOUND, ConditionStatus.FALSE, Reason.NO_NODES, f"no Ready node with {where}"


def _scalers_counted(scalers: Sequence[PoolScaler]) -> _Judgement:
    unknown = [scaler for scaler in scalers if scaler.accelerators is None]
    if not unknown:
        message = f"all {len(scalers)} InferenceScalers are counted"
        return ConditionType.SCALERS_COUNTED, ConditionStatus.TRUE, Reason.SCALERS_COUNTED, message
    parts = [
        f"{scaler.namespace}/{scaler.name} ("
        + ("nothing decided yet" if scaler.desired_replicas is None else "set acceleratorsPerReplica")
        + ")"
        for scaler in unknown[:10]
    ]
    message = f"{len(unknown)} of {len(scalers)} InferenceScalers are not counted: {', '.join(parts)}"
    return ConditionType.SCALERS_COUNTED, ConditionStatus.FALSE, Reason.ACCELERATORS_UNKNOWN, message


def _sufficient(wanted: int, present: int) -> _Judgement:
    message = f"{wanted} accelerators wanted, {present} present"
    if wanted <= present:
        return ConditionType.ACCELERATORS_SUFFICIENT, ConditionStatus.TRUE, Reason.ACCELERATORS_SUFFICIENT, message
    return ConditionType.ACCELERATORS_SUFFICIENT, ConditionStatus.FALSE, Reason.ACCELERATORS_SHORT, message


def _split_kept(counts: NodeCounts, floor_percent: int) -> _Judgement:
    on_demand, spot = counts.staying(CapacityType.ON_DEMAND), counts.staying(CapacityType.SPOT)
    message = f"{on_demand} of {counted(on_demand + spot, 'node')} on demand, {floor_percent} % at least"
    if is_split_kept(on_demand, spot, floor_percent):
        return ConditionType.SPLIT_KEPT, ConditionStatus.TRUE, Reason.SPLIT_KEPT, message
    needed = on_demand_beside(spot, floor_percent)
    message += f": {spot} on spot need {needed} beside them"
    return ConditionType.SPLIT_KEPT, ConditionStatus.FALSE, Reason.SPLIT_BROKEN, message


def _in_step(outcome: CapacityOutcome) -> _Judgement:
    is_in_step = outcome.reason is Reason.LIMITS_IN_STEP
    status = ConditionStatus.TRUE if is_in_step else ConditionStatus.FALSE
    return ConditionType.LIMITS_IN_STEP, status, outcome.reason, outcome.message


def _held_ready(warm: WarmOutcome) -> _Judgement:
    status = ConditionStatus.TRUE if warm.reason is Reason.NODES_HELD_READY else ConditionStatus.FALSE
    return ConditionType.NODES_HELD_READY, status, warm.reason, warm.message


def _consolidation_fits(
    pool: AcceleratorPool, latency_class: LatencyClass, consolidation: Mapping[str, ConsolidationSettings]
) -> _Judgement:
    accelerators = 1 if pool.spec.node_shape is None else pool.spec.node_shape.accelerators
    problems = [
        f"NodePool {name}: {each.field} is {each.value} ({each.costs}); wanted: {each.wanted}"
        for name in pool.spec.node_pools.names
        if name in consolidation
        for each in judge_consolidation(latency_class, consolidation[name], accelerators)
    ]
    if problems:
        return (
            ConditionType.CONSOLIDATION_FITS,
            ConditionStatus.FALSE,
            Reason.CONSOLIDATION_UNFIT,
            ". ".join(problems),
        )
    message = f"nodes go as suits {latency_class.value}"
    return ConditionType.CONSOLIDATION_FITS, ConditionStatus.TRUE, Reason.CONSOLIDATION_FITS, message


def _conditions(
    pool: AcceleratorPool | InvalidAcceleratorPool, judged: Sequence[_Judgement], now_seconds: float
) -> tuple[Condition, ...]:
    kinds = {kind for kind, *_ in judged} | set(ALWAYS_JUDGED)
    # A pool that is no longer managed says nothing of limits.
    conditions = tuple(each for each in _present_conditions(pool.status) if each.type in kinds)
    for kind, status, reason, message in judged:
        conditions = set_condition(conditions, kind, status, reason, message, pool.generation, now_seconds)
    return conditions


def _present_conditions(status: Mapping[str, Any]) -> tuple[Condition, ...]:
    try:
        return AcceleratorPoolStatus.model_validate(status).conditions
    except ValidationError:
        return ()  # written by another version: begin anew
