"""`llmd-slo`: llm-d's SLO-aware KEDA law (llm-d/llm-d guides/workload-autoscaling/README.slo-aware.md).

s is the mean over 45 s of the larger of p90 TTFT by its objective and p90 time per token by its own, at most 2; c is
the share of the provisioned replicas that are ready. Up from s c = 0.55, down from s = 0.40; at most double (or 4) a
minute after 30 s of wishing, one replica less in 120 s after 180 s.
"""

from __future__ import annotations

import math

from autoscaler.replay.baselines.hpa_windows import with_windows
from autoscaler.replay.baselines.peer import SlidingMean
from autoscaler.replay.promql_reading import read_promql
from autoscaler.replay.simulated_prometheus import single_value
from autoscaler.replay.stock_hpa import PoolWorld
from policies.constraints.behavior import (
    PolicyType,
    ScaleDownRules,
    ScaleUpRules,
    ScalingBehavior,
    ScalingPolicy,
)
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import ProposedReplicas
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile

UP_LIMIT = 0.55
DOWN_LIMIT = 0.40
MEAN_SECONDS = 45.0
MOST_STRESS = 2.0
TIME_TO_FIRST_TOKEN = read_promql(
    "histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[1m])))"
)
TIME_PER_TOKEN = read_promql("histogram_quantile(0.9, sum by (le) (rate(vllm:inter_token_latency_seconds_bucket[1m])))")
BEHAVIOR = ScalingBehavior(
    scale_up=ScaleUpRules(
        stabilization_window_seconds=30,
        policies=(
            ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=60),
            ScalingPolicy(type=PolicyType.PODS, value=4, period_seconds=60),
        ),
    ),
    scale_down=ScaleDownRules(
        stabilization_window_seconds=180,
        policies=(ScalingPolicy(type=PolicyType.PODS, value=1, period_seconds=120),),
    ),
)


def desired_replicas(stress: float, ready_share: float, current: int, up: float, down: float) -> int:
    """The law's wish. Stress 0.9 with 4 of 5 ready: 5 + ceil(5 (0.72 / 0.55 - 1)) = 7."""
    if stress * ready_share > up:
        return current + math.ceil(current * (stress * ready_share / up - 1.0))
    if stress < down:
        return current - math.floor(current * (1.0 - stress / down))
    return current


class LlmdSLO:
    """The law, then the HPA's behaviour."""

    interval_seconds = 15.0

    def __init__(
        self,
        first_token_objective: float,
        token_objective: float,
        up: float = UP_LIMIT,
        down_window_seconds: float | None = None,
    ) -> None:
        self._behavior = with_windows(BEHAVIOR, down_seconds=down_window_seconds)
        self._objectives = (first_token_objective, token_objective)
        self._up, self._down = up, up * DOWN_LIMIT / UP_LIMIT
        self._stress = SlidingMean(MEAN_SECONDS)
        self._memory = HPAMemory()

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """No change in an outage, and while nothing is served."""
        if world.pool.is_prometheus_out:
            return None
        values = [
            single_value(world.prometheus.ask(query, now_seconds)) for query in (TIME_TO_FIRST_TOKEN, TIME_PER_TOKEN)
        ]
        stresses = [
            value / objective
            for value, objective in zip(values, self._objectives, strict=True)
            if value is not None and math.isfinite(value)
        ]
        if not stresses:
            return None
        stress = self._stress.add(now_seconds, min(max(stresses), MOST_STRESS))
        pods = world.pods
        ready_share = pods.ready / pods.spec if pods.spec else 1.0
        wish = desired_replicas(stress, ready_share, pods.spec, self._up, self._down)
        spec = HPASpec(1, 10**6, (ProposedReplicas(wish),), Tolerance(0.0, 0.0), self._behavior)
        outcome = reconcile(spec, pods, self._memory, now_seconds)
        self._memory = outcome.memory
        return outcome.replicas
