"""How fast may a pool grow and shrink? The parameters of the HorizontalPodAutoscaler's `behavior`, field for field.

Names, bounds and defaulting (per field and per direction) are those of autoscaling/v2 in Kubernetes 1.37; ours are the
default tolerance, and what a pool gets that states nothing at all (`UNHURRIED_BEHAVIOR`). `stabilization.py`,
`rate_limit.py` and `tolerance.py` are the rules that use them.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from policies.hpa.metric_proposal import MAXIMUM_INT32
from policies.parameter_model import ParameterModel


class PolicyType(StrEnum):
    """Whether a policy's value counts replicas (`Pods` is HPA's word) or percent of the count a period ago."""

    PODS = "Pods"
    PERCENT = "Percent"


class SelectPolicy(StrEnum):
    """Which of several policies rules: the one that allows the largest change, the smallest, or no change at all."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


class ScalingPolicy(ParameterModel):
    """At most so much change in so much time."""

    type: PolicyType = Field(description="Pods: value is a number of replicas. Percent: of the count a period ago.")
    value: int = Field(gt=0, le=MAXIMUM_INT32, description="Largest change in one period, in replicas or percent.")
    period_seconds: int = Field(ge=1, le=1800, description="The period in seconds that the change is counted over.")


class ScaleUpRules(ParameterModel):
    """How a pool may grow."""

    stabilization_window_seconds: int = Field(
        default=0,
        ge=0,
        le=3600,
        description="Growth takes the lowest recommendation of so many seconds. Default 0, as in autoscaling/v2.",
    )
    select_policy: SelectPolicy = Field(
        default=SelectPolicy.MAX,
        description="Max (default): the policy that allows the most. Min: the least. Disabled: never grow.",
    )
    policies: tuple[ScalingPolicy, ...] = Field(
        default=(
            ScalingPolicy(type=PolicyType.PODS, value=4, period_seconds=15),
            ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=15),
        ),
        min_length=1,
        max_length=16,
        description="Rates of growth. Default 4 Pods or 100 Percent in 15 s, as in autoscaling/v2.",
    )
    tolerance: float = Field(
        default=0.05,
        ge=0,
        le=10,
        description=(
            "Share above the present count below which nothing is done. Default 0.05: a queue that grows costs more "
            "than a replica too many (autoscaling/v2 has 0.1)."
        ),
    )


class ScaleDownRules(ParameterModel):
    """How a pool may shrink."""

    stabilization_window_seconds: int = Field(
        default=300,
        ge=0,
        le=3600,
        description=(
            "Shrinking takes the highest recommendation of so many seconds, or of the cold start if that is longer. "
            "Default 300, as in autoscaling/v2."
        ),
    )
    select_policy: SelectPolicy = Field(
        default=SelectPolicy.MAX,
        description="Max (default): the policy that allows the most. Min: the least. Disabled: never shrink.",
    )
    policies: tuple[ScalingPolicy, ...] = Field(
        default=(ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=15),),
        min_length=1,
        max_length=16,
        description="Rates of shrinking. Default 100 Percent in 15 s, as in autoscaling/v2.",
    )
    tolerance: float = Field(
        default=0.10,
        ge=0,
        le=1,
        description="Share below the present count above which nothing is done. Default 0.1, as in autoscaling/v2.",
    )


class ScalingBehavior(ParameterModel):
    """Both directions; a direction or a field that is left out has its default."""

    scale_up: ScaleUpRules = ScaleUpRules()
    scale_down: ScaleDownRules = ScaleDownRules()


# Of a pool that states none and names no vote. In simulation, on a recorded hour whose load comes in waves, 300 s and
# any rate turned round five times an hour, this once, for some 5 % more accelerator-hours.
UNHURRIED_BEHAVIOR = ScalingBehavior(
    scale_down=ScaleDownRules(
        stabilization_window_seconds=600,
        policies=(ScalingPolicy(type=PolicyType.PERCENT, value=20, period_seconds=120),),
    )
)
