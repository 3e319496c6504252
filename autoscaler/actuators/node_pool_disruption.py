"""Writes when a NodePool's nodes may be taken away, and nothing else of it: not if that has changed since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_pool_writes import PATH, reason_of
from autoscaler.api.held_budgets import ANNOTATION, HeldBudgets, closed_over, reopened, write_held
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.observers.node_pools import DisruptionSeen
from policies.reasons import Reason

Operation = dict[str, Any]

_BUDGETS = "/spec/disruption/budgets"
# In a JSON pointer "/" is written "~1".
_HELD = f"/metadata/annotations/{ANNOTATION.replace('/', '~1')}"


class NodePoolDisruption(Protocol):
    """Writes one NodePool's `spec.disruption`; where that fails, the next tick tries again with what it sees."""

    def close(self, name: str, seen: DisruptionSeen, now_seconds: float) -> Actuated | ActuationFailed:
        """No node may be taken away; the budgets that stand there are kept in an annotation."""
        ...

    def reopen(self, name: str, seen: DisruptionSeen, held: HeldBudgets) -> Actuated | ActuationFailed:
        """The budgets are what they were before, and the annotation is gone."""
        ...

    def set_consolidation(self, name: str, seen: DisruptionSeen, policy: str, after: str) -> Actuated | ActuationFailed:
        """Which nodes are taken away, and how long after their last pod."""
        ...


class KarpenterNodePoolDisruption:
    """A NodePoolDisruption on the API server. `fence` says whether this process may still write."""

    def __init__(self, connection: ApiConnection, fence: Callable[[], bool]) -> None:
        self._connection = connection
        self._fence = fence

    def close(self, name: str, seen: DisruptionSeen, now_seconds: float) -> Actuated | ActuationFailed:
        """Closes the budgets that were seen, and no others."""
        text = write_held(seen.budgets, now_seconds)
        keep: Operation = {"op": "add", "path": _HELD, "value": text}
        if not seen.has_annotations:
            keep = {"op": "add", "path": "/metadata/annotations", "value": {ANNOTATION: text}}
        budgets: Operation = {"op": "add", "path": _BUDGETS, "value": closed_over(seen.budgets)}
        return self._write(name, "disruption budgets closed", [_as_seen(seen), budgets, keep])

    def reopen(self, name: str, seen: DisruptionSeen, held: HeldBudgets) -> Actuated | ActuationFailed:
        """Writes back what was held, or keeps what somebody else has written since."""
        operations: list[Operation] = [
            _as_seen(seen),
            {"op": "add", "path": _BUDGETS, "value": reopened(seen.budgets, held)},
            {"op": "remove", "path": _HELD},
        ]
        return self._write(name, "disruption budgets as before", operations)

    def set_consolidation(self, name: str, seen: DisruptionSeen, policy: str, after: str) -> Actuated | ActuationFailed:
        """Writes both fields together."""
        operations: list[Operation] = [
            {"op": "test", "path": "/spec/disruption/consolidateAfter", "value": seen.consolidate_after},
            {"op": "add", "path": "/spec/disruption/consolidateAfter", "value": after},
            {"op": "add", "path": "/spec/disruption/consolidationPolicy", "value": policy},
        ]
        return self._write(name, f"consolidation {policy} after {after}", operations)

    def _write(self, name: str, change: str, operations: list[Operation]) -> Actuated | ActuationFailed:
        what = f"NodePool {name}: {change}"
        if not self._fence():
            return ActuationFailed(Reason.NOT_LEADER, f"{what}: not sent, this process does not hold the lease")
        result = self._connection.patch_by_operations(PATH.format(name=name), operations)
        if not isinstance(result, ApiFailure):
            return Actuated(Reason.DISRUPTION_SET, what)
        reason = reason_of(result, Reason.DISRUPTION_NOT_SET)
        return ActuationFailed(reason, f"{what}: {result.message}")


def _as_seen(seen: DisruptionSeen) -> Operation:
    return {"op": "test", "path": _BUDGETS, "value": list(seen.budgets)}
