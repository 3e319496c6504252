"""`llmd-wva`: llm-d's workload variant autoscaler, saturation analyzer V2 (b08b1c7, internal/engines), then its HPA.

Every 30 s: demand is the tokens in the KV caches and the waiting prompts; a replica holds the lesser of 80 % of its
cache and what it was seen to hold while five requests waited. Up where demand by 0.85 is more than ready and starting
replicas hold, down where demand by 0.70 is less; nothing while replicas start or go. The HPA follows after 120 s either
way.
"""

from __future__ import annotations

import math
from collections import deque

from autoscaler.replay.baselines.hpa_windows import with_windows
from autoscaler.replay.stock_hpa import PoolWorld
from policies.constraints.behavior import ScaleDownRules, ScaleUpRules, ScalingBehavior
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import ProposedReplicas
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile

CACHE_SHARE = 0.80
UP_SHARE = 0.85
DOWN_SHARE = 0.70
QUEUE_THRESHOLD = 5
KEPT_OBSERVATIONS = 10
BATCHED_TOKENS = 8192
SEQUENCES = 256
BEHAVIOR = ScalingBehavior(
    scale_up=ScaleUpRules(stabilization_window_seconds=120), scale_down=ScaleDownRules(stabilization_window_seconds=120)
)


def desired_replicas(
    demand_tokens: float,
    capacity_tokens: float,
    current: int,
    up_share: float = UP_SHARE,
    down_share: float = DOWN_SHARE,
) -> int:
    """From a settled count. 90 000 tokens at 27 000 a replica: 90 000 / 0.85 are 3.92 replicas, so 4."""
    needed = math.ceil(demand_tokens / up_share / capacity_tokens)
    if needed > current:
        return needed
    spare = current - demand_tokens / down_share / capacity_tokens
    return max(1, current - max(0, math.floor(spare)))


class LlmdWVA:
    """The analyzer with what it has observed, then the HPA."""

    interval_seconds = 30.0

    def __init__(self, up_share: float = UP_SHARE, window_seconds: float | None = None) -> None:
        """`window_seconds` is the stabilization window of its HPA, either way."""
        self._behavior = with_windows(BEHAVIOR, window_seconds, window_seconds)
        self._shares = (up_share, up_share * DOWN_SHARE / UP_SHARE)
        self._held: deque[float] = deque(maxlen=KEPT_OBSERVATIONS)
        self._memory = HPAMemory()
        self._wish = 0

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """No change in an outage and without a page."""
        pages = [sample.page for pod in world.pool.pods if (sample := world.pool.pages.newest(pod.name, now_seconds))]
        if world.pool.is_prometheus_out or not pages:
            return None
        capacity = world.pool.setup.profile.kv_capacity_tokens
        finished = sum(page.finished_requests for page in pages)
        inputs = sum(page.finished_prompt_tokens for page in pages) / finished if finished else 0.0
        outputs = sum(page.finished_generation_tokens for page in pages) / finished if finished else 0.0
        self._held.extend(page.kv_cache_usage * capacity for page in pages if page.waiting_requests >= QUEUE_THRESHOLD)
        holds = min(CACHE_SHARE * capacity, self._observed(inputs, outputs, capacity))
        demand = sum(page.kv_cache_usage * capacity + page.waiting_requests * inputs for page in pages)
        pods, replicas = world.pods, world.pool.replicas
        is_settled = replicas.ready == replicas.spec and not replicas.terminating
        if is_settled or not self._wish:
            self._wish = desired_replicas(demand, holds, pods.spec, *self._shares)
        spec = HPASpec(1, 10**6, (ProposedReplicas(self._wish),), Tolerance(0.1, 0.1), self._behavior)
        outcome = reconcile(spec, pods, self._memory, now_seconds)
        self._memory = outcome.memory
        return outcome.replicas

    def _observed(self, inputs: float, outputs: float, capacity: int) -> float:
        if self._held:
            return sum(self._held) / len(self._held)
        if not outputs:
            return CACHE_SHARE * capacity
        sequences = min(BATCHED_TOKENS * outputs / (inputs + outputs), SEQUENCES)
        return sequences * (inputs + outputs / 2.0)
