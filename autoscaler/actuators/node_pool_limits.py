"""Writes the limits of a NodePool, and nothing else of it: not if they have changed since they were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_pool_writes import PATH, reason_of
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.connection import ApiConnection
from policies.reasons import Reason


class NodePoolLimits(Protocol):
    """Writes one NodePool's limits; at most once a tick."""

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated | ActuationFailed:
        """Replaces the limits `before` by `after`; where that fails, the next tick tries again with what it sees."""
        ...


class KarpenterNodePoolLimits:
    """A NodePoolLimits on the API server. `fence` says whether this process may still write.

    A JSON patch whose `test` is on the limits alone: Karpenter renews a NodePool's status every few seconds, so that
    a resourceVersion would be outdated more often than not, and Argo CD, Flux or Helm may own the rest of the object.
    """

    def __init__(self, connection: ApiConnection, fence: Callable[[], bool]) -> None:
        self._connection = connection
        self._fence = fence

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated | ActuationFailed:
        """Writes, or says why not. Limits that are absent are added; keys that are the same are left alone."""
        change = f"NodePool {name}: {_in_words(before)} -> {_in_words(after)}"
        if not self._fence():
            return ActuationFailed(Reason.NOT_LEADER, f"{change} not sent: this process does not hold the lease")
        result = self._connection.patch_by_operations(PATH.format(name=name), _operations(before, after))
        if not isinstance(result, ApiFailure):
            return Actuated(Reason.LIMITS_IN_STEP, change)
        reason = reason_of(result, Reason.LIMITS_NOT_WRITTEN)
        return ActuationFailed(reason, f"{change} failed: {result.message}")


def _operations(before: Mapping[str, str], after: Mapping[str, str]) -> list[dict[str, object]]:
    if not before:
        return [{"op": "add", "path": "/spec/limits", "value": dict(after)}]
    changed: list[dict[str, object]] = [
        # In a JSON pointer "/" is written "~1".
        {"op": "add", "path": f"/spec/limits/{key.replace('~', '~0').replace('/', '~1')}", "value": amount}
        for key, amount in after.items()
        if before.get(key) != amount
    ]
    return [{"op": "test", "path": "/spec/limits", "value": dict(before)}, *changed]


def _in_words(limits: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {amount}" for key, amount in sorted(limits.items())) or "no limits"
