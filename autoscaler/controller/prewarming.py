"""Holds nodes ready by placeholder pods, and hands them over in the step in which replicas are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.actuators.actuator import ActuationFailed, ReplicaActuator
from autoscaler.api.prewarm import Prewarm
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.placeholders import Placeholders, PlaceholderSource
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType
from policies.prewarming import WarmNodes, expected_replicas, warm_nodes
from policies.reasons import Reason
from policies.wording import counted


@dataclass(frozen=True, slots=True)
class PrewarmPlan:
    """The placeholders that are to stand, and the room that they need."""

    placeholders: Placeholders
    warm: WarmNodes
    count: int
    accelerators_per_node: int

    @property
    def demand(self) -> AcceleratorDemand:
        """Their place on nodes. Those that are given up go at once, so that they are not counted any more."""
        target = self.placeholders.target
        return AcceleratorDemand(
            f"{target.namespace}/{target.name}", self.count, 0, 0, self.placeholders.accelerators_per_replica
        )

    @property
    def sentence(self) -> str:
        """What is held ready, and for what."""
        warm = self.warm
        because = f"{warm.expected} for what is expected, {warm.spare} to spare"
        return f"{counted(warm.nodes, 'node')} held ready by placeholders ({because})"


@dataclass(frozen=True, slots=True)
class PrewarmProblem:
    """Why no node is held ready."""

    reason: Reason
    message: str


class Prewarmer:
    """Steers placeholder Deployments. `actuator` None: nothing is written (a dry run)."""

    def __init__(self, source: PlaceholderSource, actuator: ReplicaActuator | None) -> None:
        self._source = source
        self._actuator = actuator

    def plan(
        self,
        prewarm: Prewarm,
        accelerators_per_node: int,
        demands: Mapping[PoolKey, Sequence[AcceleratorDemand]],
        wishes: Mapping[PoolKey, ReplicaWish],
        ceiling_nodes: int | None,
    ) -> PrewarmPlan | PrewarmProblem | None:
        """The placeholders for this tick, from what the pools of the AcceleratorPool expect; None: none are wanted."""
        if prewarm.placeholder_ref is None:
            return None
        placeholders = self._source.placeholders(prewarm.placeholder_ref)
        if isinstance(placeholders, str):
            return PrewarmProblem(Reason.PLACEHOLDERS_NOT_FOUND, placeholders)
        flat: list[AcceleratorDemand] = []
        expected: list[int] = []
        for key, each in demands.items():
            foreseen = _expected(wishes[key], prewarm.lead_seconds)
            for demand in each:
                flat.append(demand)
                # Of two targets the one on demand: what is on spot comes when it is there.
                expected.append(0 if demand.capacity_type is CapacityType.SPOT else foreseen - _elsewhere(each, demand))
        warm = warm_nodes(accelerators_per_node, flat, expected, prewarm.spare_nodes, ceiling_nodes)
        count = warm.nodes * max(1, accelerators_per_node // placeholders.accelerators_per_replica)
        return PrewarmPlan(placeholders, warm, count, accelerators_per_node)

    def carry_out(self, plan: PrewarmPlan) -> PrewarmProblem | None:
        """Writes the count where it differs; the problem if it then still does."""
        before = plan.placeholders.replicas
        if plan.count == before:
            return None
        target = plan.placeholders.target
        if self._actuator is None:
            message = f"Deployment {target.namespace}/{target.name} would be set from {before} to {plan.count}"
            return PrewarmProblem(Reason.DRY_RUN, message)
        result = self._actuator.scale(target, before, plan.count)
        return PrewarmProblem(result.reason, result.message) if isinstance(result, ActuationFailed) else None


def _expected(wish: ReplicaWish, lead_seconds: float) -> int:
    if wish.decision_input is None or not wish.will_be_written:
        return 0
    return expected_replicas(wish.decision_input, lead_seconds)


def _elsewhere(demands: Sequence[AcceleratorDemand], demand: AcceleratorDemand) -> int:
    """The replicas of the same pool that have their place by another demand."""
    return sum(other.wanted_replicas for other in demands if other is not demand)
