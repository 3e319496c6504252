"""Writes a count through the target's scale subresource: once, and only while nobody else can be writing."""

from __future__ import annotations

import math
from collections.abc import Callable

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.clock import Clock
from autoscaler.kubernetes_gateway.api_failure import (
    ApiFailure,
    Conflict,
    Forbidden,
    NotFound,
    ServerError,
    Throttled,
    Timeout,
    Unreachable,
)
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.observers.workload import ScaleTarget
from policies.reasons import Reason

# A server that asks for more is down or misconfigured, and the next tick should find that out.
LONGEST_PAUSE_SECONDS = 120.0


class ScaleSubresourceActuator:
    """Merge-patches `spec.replicas` of `/scale`, with the resourceVersion that the decision was made on.

    `fence` says whether this process may still write; it is asked immediately before the request. A conflict is not
    retried: the target has changed, so the next tick decides anew. After a 429 nothing is sent before the time that
    the server asked for has passed. `written` is told each count that the server has, or may have, taken.
    """

    def __init__(
        self, connection: ApiConnection, fence: Callable[[], bool], clock: Clock, written: WrittenCounts | None = None
    ) -> None:
        self._connection = connection
        self._fence = fence
        self._clock = clock
        self._written = written or WrittenCounts()
        self._paused_until_seconds = -math.inf

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Writes `to_replicas`, or says why not: every failure leaves the target as it is, except that after
        Unreachable or Timeout it is not known whether the server has acted; the next tick sees it.
        """
        change = f"{target.kind} {target.namespace}/{target.name}: {from_replicas} -> {to_replicas}"
        paused_seconds = self._paused_until_seconds - self._clock.monotonic_seconds()
        if paused_seconds > 0.0:
            message = f"{change} not sent: the API server asked to wait another {paused_seconds:.1f} s"
            return ActuationFailed(Reason.THROTTLED, message, paused_seconds)
        body = {"metadata": {"resourceVersion": target.resource_version}, "spec": {"replicas": to_replicas}}
        if not self._fence():
            return ActuationFailed(Reason.NOT_LEADER, f"{change} not sent: this process does not hold the lease")
        result = self._connection.patch(target.path, body)
        if not isinstance(result, ApiFailure) or isinstance(result, Unreachable | Timeout | ServerError):
            self._written.note(target, to_replicas)
        if isinstance(result, ApiFailure):
            return self._failed(change, result)
        return Actuated(Reason.SUCCEEDED_RESCALE, change)

    def _failed(self, change: str, failure: ApiFailure) -> ActuationFailed:
        message = f"{change} failed: {failure.message}"
        match failure:
            case Conflict():
                return ActuationFailed(Reason.CONFLICT, message)
            case Throttled(retry_after_seconds=seconds):
                pause_seconds = min(seconds or 0.0, LONGEST_PAUSE_SECONDS)
                self._paused_until_seconds = self._clock.monotonic_seconds() + pause_seconds
                return ActuationFailed(Reason.THROTTLED, message, seconds)
            case Forbidden():
                return ActuationFailed(Reason.FORBIDDEN, message)
            case NotFound():
                return ActuationFailed(Reason.TARGET_NOT_FOUND, message)
            case _:
                return ActuationFailed(Reason.FAILED_UPDATE_SCALE, message)
