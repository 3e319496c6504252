"""When may nodes of AcceleratorPools with `manageDisruption` be taken away? Told after each tick over all pools.

Budgets are closed while replicas are on their way, and opened again; consolidation is set by the latency class. A
NodePool whose budgets were closed by a process that has crashed since is taken over from its annotation, also where
nobody wants it managed any more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_pool_disruption import NodePoolDisruption
from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.held_budgets import HeldBudgets, read_held
from autoscaler.clock import Clock
from autoscaler.controller.accelerator_pools import AcceleratorPoolSource
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.observers.node_pools import DisruptionSeen
from policies.disruption_hold import DisruptionOutcome, HoldMemory, HoldStep, next_hold_step
from policies.latency_class import CONSOLIDATE_AFTER_SECONDS, ONLY_EMPTY, LatencyClass, in_karpenters_words
from policies.reasons import Reason

logger = logging.getLogger(__name__)

Consolidation = tuple[str, str]
"""(consolidationPolicy, consolidateAfter)"""


class NodeDisruptionKeeper:
    """A Keeper that writes `spec.disruption` of NodePools."""

    def __init__(self, source: AcceleratorPoolSource, disruption: NodePoolDisruption, clock: Clock) -> None:
        self._source = source
        self._disruption = disruption
        self._clock = clock
        self._memories: dict[str, HoldMemory] = {}
        self._set: dict[str, Consolidation] = {}
        self._outcomes: dict[str, DisruptionOutcome] = {}

    def outcome(self, pool: str) -> DisruptionOutcome | None:
        """What the last tick came to for an AcceleratorPool; None where disruption is not managed."""
        return self._outcomes.get(pool)

    def forget_all(self) -> None:
        """Drops what is remembered; the annotations tell the rest."""
        self._memories, self._set, self._outcomes = {}, {}, {}

    def keep(self, reports: Sequence[PoolReport]) -> None:
        """Brings the NodePools of all AcceleratorPools to what their scalers' growth asks for."""
        now_seconds = self._clock.now_seconds()
        pools = [pool for pool in self._source.accelerator_pools() if isinstance(pool, AcceleratorPool)]
        seen = {name: each.disruption for name, each in self._source.node_pools().items() if each.disruption}
        managed = {pool.name: pool for pool in pools if pool.spec.manage_disruption}
        growing = _growing(reports)
        self._outcomes = {}
        for pool in managed.values():
            problems = [
                problem
                for name in pool.spec.node_pools.names
                if name in seen and (problem := self._keep(pool, name, seen[name], pool.name in growing, now_seconds))
            ]
            self._outcomes[pool.name] = _outcome(pool, seen, problems, growing.get(pool.name, ()))
        self._give_back(seen, {name for pool in managed.values() for name in pool.spec.node_pools.names})

    def _keep(
        self, pool: AcceleratorPool, name: str, seen: DisruptionSeen, is_growing: bool, now_seconds: float
    ) -> ActuationFailed | None:
        """One NodePool; the problem where something was not written."""
        held = read_held(seen.held)
        since_seconds = None if held is None else held.since_seconds
        memory = self._memories.get(name, HoldMemory())
        step, self._memories[name] = next_hold_step(is_growing, since_seconds, memory, now_seconds)
        result: Actuated | ActuationFailed | None = None
        if step is HoldStep.CLOSE:
            result = self._disruption.close(name, seen, now_seconds)
        elif step is HoldStep.REOPEN and held is not None:
            result = self._disruption.reopen(name, seen, held)
        elif pool.spec.latency_class is not None:
            result = self._set_consolidation(name, seen, pool.spec.latency_class)
        return _logged(name, result)

    def _set_consolidation(
        self, name: str, seen: DisruptionSeen, latency_class: LatencyClass
    ) -> Actuated | ActuationFailed | None:
        wanted = (ONLY_EMPTY, in_karpenters_words(CONSOLIDATE_AFTER_SECONDS[latency_class]))
        settings = seen.settings
        if settings.policy == ONLY_EMPTY and settings.after_seconds == CONSOLIDATE_AFTER_SECONDS[latency_class]:
            return None
        if self._set.get(name) == wanted:
            message = f"somebody has set the consolidation of NodePool {name} back; it is left alone"
            return ActuationFailed(Reason.COMPETING_WRITER, message)
        result = self._disruption.set_consolidation(name, seen, *wanted)
        if isinstance(result, Actuated):
            self._set[name] = wanted
        return result

    def _give_back(self, seen: Mapping[str, DisruptionSeen], managed: set[str]) -> None:
        """Opens the budgets of NodePools that are not managed any more."""
        for name, disruption in seen.items():
            held: HeldBudgets | None = None if name in managed else read_held(disruption.held)
            if held is not None:
                _logged(name, self._disruption.reopen(name, disruption, held))


def _growing(reports: Sequence[PoolReport]) -> Mapping[str, tuple[str, ...]]:
    """By AcceleratorPool the scalers that are asked to grow, or have replicas that start."""
    found: dict[str, tuple[str, ...]] = {}
    for report in reports:
        if not isinstance(report, Decided) or report.scaler.spec.accelerator_pool_ref is None:
            continue
        counts = report.workload.replicas
        if counts.starting or report.decision.desired_replicas > counts.spec:
            name = report.scaler.spec.accelerator_pool_ref.name
            found[name] = (*found.get(name, ()), f"{report.scaler.namespace}/{report.scaler.name}")
    return found


def _outcome(
    pool: AcceleratorPool,
    seen: Mapping[str, DisruptionSeen],
    problems: Sequence[ActuationFailed],
    growing: Sequence[str],
) -> DisruptionOutcome:
    if problems:
        return DisruptionOutcome(problems[0].reason, "; ".join(each.message for each in problems))
    closed = [name for name in pool.spec.node_pools.names if name in seen and read_held(seen[name].held) is not None]
    if not closed and not growing:
        return DisruptionOutcome(Reason.DISRUPTION_ALLOWED, "the NodePools' own budgets count")
    who = f": {', '.join(growing[:10])}" if growing else ", or has until a moment ago"
    names = ", ".join(closed) or "a moment from now"
    return DisruptionOutcome(
        Reason.POOL_GROWS, f"no node is taken away (budgets closed: {names}), as the pool grows{who}"
    )


def _logged(name: str, result: Actuated | ActuationFailed | None) -> ActuationFailed | None:
    if isinstance(result, Actuated):
        logger.info("disruption written", extra={"node_pool": name, "change": result.message})
        return None
    if isinstance(result, ActuationFailed) and result.reason is not Reason.COMPETING_WRITER:
        logger.warning("disruption was not written", extra={"node_pool": name, "problem": result.message})
    return result
