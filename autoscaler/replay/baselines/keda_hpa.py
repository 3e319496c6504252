"""`keda-hpa`: KEDA 2.21 with its HPA on the tokens that are processed in a second, 180 000 a replica.

Behaviour as in the preset `agents`: may double every 30 s, gives back 4 replicas a minute after ten minutes; fallback
of 8 replicas where that is more than there are.
"""

from __future__ import annotations

from autoscaler.replay.baselines.hpa_windows import with_windows
from autoscaler.replay.keda import Fallback, FallbackBehavior, PrometheusTrigger, ScaledObject
from autoscaler.replay.promql_reading import read_promql
from policies.constraints.behavior import (
    PolicyType,
    ScaleDownRules,
    ScaleUpRules,
    ScalingBehavior,
    ScalingPolicy,
)

TOKENS_PER_REPLICA_PER_SECOND = 180_000.0
QUERY = "sum(rate(vllm:prompt_tokens_total[1m])) + sum(rate(vllm:generation_tokens_total[1m]))"
BEHAVIOR = ScalingBehavior(
    scale_up=ScaleUpRules(policies=(ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=30),)),
    scale_down=ScaleDownRules(
        stabilization_window_seconds=600,
        policies=(ScalingPolicy(type=PolicyType.PODS, value=4, period_seconds=60),),
    ),
)


def keda_hpa(
    minimum: int,
    maximum: int,
    threshold: float = TOKENS_PER_REPLICA_PER_SECOND,
    down_window_seconds: float | None = None,
) -> ScaledObject:
    """The ScaledObject."""
    return ScaledObject(
        name="keda-hpa",
        triggers=(PrometheusTrigger(read_promql(QUERY), threshold),),
        minimum=minimum,
        maximum=maximum,
        fallback=Fallback(3, 8, FallbackBehavior.CURRENT_IF_HIGHER),
        behavior=with_windows(BEHAVIOR, down_seconds=down_window_seconds),
    )
