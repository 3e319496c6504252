"""The entire input of one decision: serializable, so that a recorded one can be decided again."""

from __future__ import annotations

from dataclasses import dataclass

from policies.history import ScalingHistory
from policies.observation import MetricsObservation, ObservationUnavailable, ReplicaCounts
from policies.parameters import ScalingParameters


@dataclass(frozen=True, slots=True)
class DecisionInput:
    """What `decide` sees. `now_seconds` is unix time; nothing in the core reads another clock."""

    now_seconds: float
    parameters: ScalingParameters
    replicas: ReplicaCounts
    metrics: MetricsObservation | ObservationUnavailable
    history: ScalingHistory
