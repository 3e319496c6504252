"""Writes nothing and says what would have been written."""

from __future__ import annotations

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.observers.workload import ScaleTarget
from policies.reasons import Reason


class DryRunActuator:
    """Never touches the network: it is not even given a connection."""

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Always `Actuated` with reason DryRun."""
        change = f"{target.kind} {target.namespace}/{target.name}: {from_replicas} -> {to_replicas}"
        return Actuated(Reason.DRY_RUN, f"{change} not written: dry run")
