"""Holds nodes ready, and hands them over in the step in which replicas are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from autoscaler.actuators.actuator import ActuationFailed
from autoscaler.actuators.node_holder import BufferHolders, HeldPool, NodeHolder, PlaceholderHolders
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.metrics import PoolKey
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType
from policies.node_capacity import WarmOutcome
from policies.prewarming import WarmNodes, expected_replicas, warm_nodes
from policies.reasons import Reason
from policies.wording import counted


@dataclass(frozen=True, slots=True)
class PrewarmPlan:
    """The places that are to be held, and the room that they need."""

    holder: NodeHolder
    warm: WarmNodes
    pods: int

    @property
    def demand(self) -> AcceleratorDemand:
        """Their place on nodes. Those that are given up go at once, so that they are not counted any more."""
        return AcceleratorDemand(self.holder.name, self.pods, 0, 0, self.holder.accelerators_per_pod)

    @property
    def sentence(self) -> str:
        """What is held ready, and for what."""
        warm = self.warm
        because = f"{warm.expected} for what is expected, {warm.spare} to spare"
        return f"{counted(warm.nodes, 'node')} held ready by {self.holder.name} ({because})"


class Prewarmer:
    """Steers what holds nodes ready. `is_dry_run`: nothing is written, and what would be is said."""

    def __init__(self, placeholders: PlaceholderHolders, buffers: BufferHolders | None, *, is_dry_run: bool) -> None:
        """Without `buffers` there can be no CapacityBuffer."""
        self._placeholders = placeholders
        self._buffers = buffers
        self._is_dry_run = is_dry_run

    def plan(
        self,
        pool: HeldPool,
        demands: Mapping[PoolKey, Collection[AcceleratorDemand]],
        wishes: Mapping[PoolKey, ReplicaWish],
        ceiling_nodes: int | None,
        now_seconds: float,
    ) -> PrewarmPlan | WarmOutcome:
        """The places for this tick, from what the scalers of the AcceleratorPool expect; or why there are none."""
        holder = self._holder(pool, now_seconds)
        if isinstance(holder, ActuationFailed):
            return WarmOutcome(holder.reason, holder.message)
        each_node, prewarm = pool.accelerators_per_node, pool.prewarm
        flat: list[AcceleratorDemand] = []
        expected: list[int] = []
        for key, each in demands.items():
            foreseen = _expected(wishes[key], prewarm.lead_seconds)
            for demand in each:
                flat.append(demand)
                # Of two targets the one on demand: what is on spot comes when it is there.
                expected.append(0 if demand.capacity_type is CapacityType.SPOT else foreseen - _elsewhere(each, demand))
        warm = warm_nodes(pool.room, flat, expected, prewarm.spare_nodes or 0, ceiling_nodes)
        return PrewarmPlan(holder, warm, warm.nodes * max(1, each_node // holder.accelerators_per_pod))

    def carry_out(self, plan: PrewarmPlan) -> WarmOutcome:
        """Writes what differs, and says what stands then."""
        holder = plan.holder
        if self._is_dry_run and plan.pods != holder.pods:
            message = f"{holder.name} would be set from {holder.pods} to {plan.pods}"
            return WarmOutcome(Reason.DRY_RUN, message)
        result = None if self._is_dry_run else holder.hold(plan.pods)
        problem = result if isinstance(result, ActuationFailed) else holder.complaint
        if problem is not None:
            return WarmOutcome(problem.reason, problem.message)
        return WarmOutcome(Reason.NODES_HELD_READY, plan.sentence)

    def release(self, pools: Collection[str]) -> None:
        """Lets go of what we have made for AcceleratorPools (by name) that do not want it any more."""
        if self._buffers is not None and not self._is_dry_run:
            self._buffers.release(pools)

    def _holder(self, pool: HeldPool, now_seconds: float) -> NodeHolder | ActuationFailed:
        if pool.prewarm.placeholder_ref is not None:
            return self._placeholders.of(pool.prewarm.placeholder_ref)
        if self._buffers is None:
            return ActuationFailed(Reason.NODES_NOT_HELD, "there is nobody to make CapacityBuffers")
        return self._buffers.of(pool, now_seconds)


def _expected(wish: ReplicaWish, lead_seconds: float) -> int:
    if wish.decision_input is None or not wish.will_be_written:
        return 0
    return expected_replicas(wish.decision_input, lead_seconds)


def _elsewhere(demands: Collection[AcceleratorDemand], demand: AcceleratorDemand) -> int:
    """The replicas of the same pool that have their place by another demand."""
    return sum(other.wanted_replicas for other in demands if other is not demand)
