"""Are the limits of a NodePool as the plan says? Written where they differ, unless somebody else has just set them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace

from autoscaler.actuators.actuator import ActuationFailed
from autoscaler.actuators.node_pool_limits import NodePoolLimits
from autoscaler.api.node_shape import NodeShape, amount_of
from autoscaler.observers.node_pools import NodePoolSeen
from policies.node_capacity import NodePoolPlan
from policies.reasons import Reason
from policies.wording import duration

logger = logging.getLogger(__name__)

# Somebody who has just set a limit by hand is left alone for so long, as with a count of replicas.
FOREIGN_WRITE_SECONDS = 300.0
# Karpenter that has not judged a change for so long is down, or cannot reach the API server.
SILENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LimitsHistory:
    """What is remembered of a NodePool's limits between two ticks."""

    settled: Mapping[str, str]
    unjudged_since_seconds: float | None = None  # the first of our writes that nobody has looked at, as far as is known
    contested: Mapping[str, str] | None = None
    contested_since_seconds: float = 0.0


class LimitsWriter:
    """Writes limits, and remembers of each NodePool what it needs to tell our writes from others'.

    `limits` None: nothing is written (a dry run).
    """

    def __init__(self, limits: NodePoolLimits | None, own_manager: str) -> None:
        self._limits = limits
        self._own_manager = own_manager
        self._histories: dict[str, LimitsHistory] = {}

    def write(
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
                Reason.COMPETING_WRITER,
                f'"{who}" has just set the limits of NodePool {seen.name}; they are left alone',
            )
        if self._limits is None:
            return Reason.DRY_RUN, f"NodePool {seen.name} would be limited to {plan.limit_nodes} nodes"
        result = self._limits.write(seen.name, seen.limits, limits)
        if isinstance(result, ActuationFailed):
            logger.warning("limits were not written", extra={"node_pool": seen.name, "problem": result.message})
            return result.reason, result.message
        logger.info("limits written", extra={"node_pool": seen.name, "change": result.message})
        # While nobody looks a further write is no news: where load moves, there would be one every half minute.
        is_first = seen.is_judged or history.unjudged_since_seconds is None
        self._histories[seen.name] = LimitsHistory(limits, now_seconds if is_first else history.unjudged_since_seconds)
        return None

    def silence(self, seen: NodePoolSeen, now_seconds: float) -> tuple[Reason, str] | None:
        """That nobody has looked at limits that we wrote: Karpenter judges every change within a second or two."""
        since_seconds = self._histories[seen.name].unjudged_since_seconds
        if seen.is_judged or since_seconds is None or now_seconds - since_seconds < SILENCE_SECONDS:
            return None
        ago = duration(now_seconds - since_seconds)
        message = (
            f"nobody has looked at the limits of NodePool {seen.name} that were written {ago} ago: is Karpenter up?"
        )
        return Reason.KARPENTER_SILENT, message

    def _judge(self, seen: NodePoolSeen, now_seconds: float) -> LimitsHistory:
        """Whether somebody else has just changed the limits: they are neither what stood there nor what we wrote."""
        before = self._histories.get(seen.name)
        if before is None:
            return LimitsHistory(seen.limits)
        is_ours = bool(seen.limit_managers) and seen.limit_managers[-1] == self._own_manager
        if _same(seen.limits, before.settled) or is_ours:
            return replace(before, settled=seen.limits, contested=None)
        is_known = before.contested is not None and _same(seen.limits, before.contested)
        since = before.contested_since_seconds if is_known else now_seconds
        if now_seconds - since >= FOREIGN_WRITE_SECONDS:
            return LimitsHistory(seen.limits, before.unjudged_since_seconds)
        return replace(before, contested=seen.limits, contested_since_seconds=since)


def _same(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether limits mean the same: 1024Gi is 1Ti."""
    return one.keys() == other.keys() and all(_amount(one[key]) == _amount(other[key]) for key in one)


def _amount(quantity: str) -> object:
    amount = amount_of(quantity)
    return quantity if amount is None else amount
