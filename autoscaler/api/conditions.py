"""Status conditions in the form of metav1.Condition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from pydantic import Field

from policies.parameter_model import ParameterModel
from policies.reasons import Reason

# What the schema says beside the Python type.
DATE_TIME: dict[str, Any] = {"format": "date-time"}
CONDITION_LIST: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}

MAXIMUM_MESSAGE_CHARACTERS = 32_768


class ConditionType(StrEnum):
    """What a condition speaks of. Words of the HorizontalPodAutoscaler where it has them."""

    SPEC_ACCEPTED = "SpecAccepted"
    TARGET_FOUND = "TargetFound"
    METRICS_AVAILABLE = "MetricsAvailable"
    ABLE_TO_SCALE = "AbleToScale"
    SCALING_ACTIVE = "ScalingActive"
    SCALING_LIMITED = "ScalingLimited"
    SELECTOR_UNAMBIGUOUS = "SelectorUnambiguous"
    REPLICAS_WORK = "ReplicasWork"
    ROUTING_BALANCED = "RoutingBalanced"
    BURSTS_SERVED = "BurstsServed"
    COLD_STARTS_IN_TIME = "ColdStartsInTime"
    CAPACITY_LEARNED = "CapacityLearned"
    FORECAST_REACHES = "ForecastReaches"
    NODES_AVAILABLE = "NodesAvailable"
    ON_SPOT_AGAIN = "OnSpotAgain"
    # Of an AcceleratorPool.
    NODES_FOUND = "NodesFound"
    SCALERS_COUNTED = "ScalersCounted"
    ACCELERATORS_SUFFICIENT = "AcceleratorsSufficient"
    LIMITS_IN_STEP = "LimitsInStep"
    NODES_HELD_READY = "NodesHeldReady"
    SPLIT_KEPT = "SplitKept"
    CONSOLIDATION_FITS = "ConsolidationFits"
    DISRUPTION_ALLOWED = "DisruptionAllowed"


class ConditionStatus(StrEnum):
    """Whether it holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ParameterModel):
    """One condition; `lastTransitionTime` is when its status last changed."""

    type: ConditionType
    status: ConditionStatus
    reason: str = Field(min_length=1, max_length=1024, description="One word for machines.")
    message: str = Field(default="", max_length=MAXIMUM_MESSAGE_CHARACTERS, description="A sentence for a person.")
    last_transition_time: str = Field(description="When its status last changed.", json_schema_extra=DATE_TIME)
    observed_generation: int = Field(default=0, ge=0, description="Generation of the spec it was judged by.")


def set_condition(
    conditions: Sequence[Condition],
    kind: ConditionType,
    status: ConditionStatus,
    reason: Reason,
    message: str,
    observed_generation: int,
    now_seconds: float,
) -> tuple[Condition, ...]:
    """The conditions with this one set; its transition time is kept unless its status changes."""
    before = next((condition for condition in conditions if condition.type is kind), None)
    changed = before is None or before.status is not status
    condition = Condition(
        type=kind,
        status=status,
        reason=reason.value,
        message=message[:MAXIMUM_MESSAGE_CHARACTERS],
        last_transition_time=rfc3339(now_seconds) if changed or before is None else before.last_transition_time,
        observed_generation=observed_generation,
    )
    if before is None:
        return (*conditions, condition)
    return tuple(condition if each.type is kind else each for each in conditions)


def rfc3339(unix_seconds: float) -> str:
    """The moment in whole seconds, UTC, as Kubernetes writes it."""
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
