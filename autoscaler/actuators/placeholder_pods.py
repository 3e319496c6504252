"""Holds nodes ready by a Deployment of pods that do nothing: its count is set, and nothing else of it."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.actuators.actuator import Actuated, ActuationFailed, ReplicaActuator
from autoscaler.actuators.node_holder import NodeHolder
from autoscaler.api.prewarm import PlaceholderRef
from autoscaler.observers.placeholders import Placeholders, PlaceholderSource
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class PlaceholderDeployment:
    """A NodeHolder on a Deployment as it was seen."""

    seen: Placeholders
    actuator: ReplicaActuator
    complaint: ActuationFailed | None = None

    @property
    def name(self) -> str:
        """Deployment NAMESPACE/NAME."""
        return f"Deployment {self.seen.target.namespace}/{self.seen.target.name}"

    @property
    def pods(self) -> int:
        """Its count."""
        return self.seen.replicas

    @property
    def accelerators_per_pod(self) -> int:
        """By its pod template."""
        return self.seen.accelerators_per_replica

    def hold(self, pods: int) -> Actuated | ActuationFailed:
        """Sets its count where it differs."""
        if pods == self.seen.replicas:
            return Actuated(Reason.SUCCEEDED_RESCALE, "")
        return self.actuator.scale(self.seen.target, self.seen.replicas, pods)


class PlaceholderPods:
    """The NodeHolders of method PlaceholderPods."""

    def __init__(self, source: PlaceholderSource, actuator: ReplicaActuator) -> None:
        self._source = source
        self._actuator = actuator

    def of(self, reference: PlaceholderRef) -> NodeHolder | ActuationFailed:
        """The Deployment that is named, or why there is none to be steered."""
        seen = self._source.placeholders(reference)
        if isinstance(seen, str):
            return ActuationFailed(Reason.PLACEHOLDERS_NOT_FOUND, seen)
        return PlaceholderDeployment(seen, self._actuator)
