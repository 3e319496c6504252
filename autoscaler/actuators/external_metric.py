"""Writes nothing: the count is served, and a HorizontalPodAutoscaler that reads it writes it."""

from __future__ import annotations

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.observers.workload import ScaleTarget
from policies.reasons import Reason


class ExternalMetricActuator:
    """Never touches the network: it is not even given a connection."""

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Always `Actuated` with reason ExternalMetric."""
        change = f"{target.kind} {target.namespace}/{target.name}: {from_replicas} -> {to_replicas}"
        return Actuated(Reason.EXTERNAL_METRIC, f"{change} is served for an HPA to write")
