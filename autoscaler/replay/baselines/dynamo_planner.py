"""`dynamo-planner`: NVIDIA Dynamo's planner, aggregated (ai-dynamo/dynamo 2026, components/src/dynamo/planner).

Two loops. Throughput, every 180 s: the requests of the last interval (its constant predictor) by what one engine serves
within its objectives, as profiled before; the result is a lower bound. Load, every 5 s, one replica at a time: up where
the estimated token gap of every engine is above the objective, down where it would still be below 80 % of it with one
replica less; nothing while a change is under way. It reads the engines' own events, without a scrape between.
"""

from __future__ import annotations

import math

from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.replica_work import requests_per_second, step_seconds
from autoscaler.replay.serving_counters import ServingSnapshot
from autoscaler.replay.stock_hpa import PoolWorld

THROUGHPUT_SECONDS = 180.0
LOAD_SECONDS = 5.0
DOWN_SENSITIVITY = 0.8


def replicas_for(requests: float, seconds: float, engine_requests_per_second: float) -> int:
    """Engines for the rate of one interval. 900 requests in 180 s at 2 a second: 3."""
    return max(1, math.ceil(requests / seconds / engine_requests_per_second))


def step(
    gaps: list[float], objective: float, current: int, least: int, down_sensitivity: float = DOWN_SENSITIVITY
) -> int:
    """The load loop's next count from the estimated token gap of each engine.

    With one replica less each of the others has N / (N - 1) of the load, and the gap grows at least as much.
    """
    if gaps and min(gaps) > objective:
        return current + 1
    if current > least and gaps:
        grown = max(gaps) * current / (current - 1)
        if grown < down_sensitivity * objective:
            return current - 1
    return max(current, least)


class DynamoPlanner:
    """Both loops, on one clock."""

    interval_seconds = LOAD_SECONDS

    def __init__(
        self,
        profile: ReplicaProfile,
        objectives: LatencyObjectives,
        correction: float = 1.0,
        down_sensitivity: float = DOWN_SENSITIVITY,
    ) -> None:
        """`correction` is a factor on what the profile says an engine serves."""
        self._profile = profile
        self._objectives = objectives
        self._correction = correction
        self._down_sensitivity = down_sensitivity
        self._counted_at = -math.inf
        self._counted = (0, 0, 0)
        self._least = 1
        self._lengths = (1.0, 1.0)  # mean tokens of prompts and answers

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """The larger of both loops' wishes."""
        if now_seconds - self._counted_at >= THROUGHPUT_SECONDS:
            self._update_least(world, now_seconds)
        current, replicas = world.pool.spec_replicas, world.pool.replicas
        if replicas.ready != replicas.spec or replicas.terminating:
            return max(current, self._least)
        gaps = [self._gap_seconds(page) for page in world.pool.pages_now()]
        objective = self._objectives.inter_token_latency_seconds
        return step(gaps, objective, current, self._least, self._down_sensitivity)

    def _update_least(self, world: PoolWorld, now_seconds: float) -> None:
        outcomes = world.pool.outcomes
        newest = (outcomes.arrived, outcomes.finished, outcomes.finished_tokens)
        arrived, finished, _ = (new - old for new, old in zip(newest, self._counted, strict=True))
        if math.isfinite(self._counted_at) and arrived:
            pages = world.pool.pages_now()
            done = sum(page.finished_requests for page in pages)
            if done and finished:
                inputs = sum(page.finished_prompt_tokens for page in pages) / done
                outputs = sum(page.finished_generation_tokens for page in pages) / done
                self._lengths = (inputs, outputs)
                served = requests_per_second(self._profile, inputs, outputs, self._objectives) * self._correction
                self._least = replicas_for(arrived, now_seconds - self._counted_at, served)
        self._counted_at, self._counted = now_seconds, newest

    def _gap_seconds(self, page: ServingSnapshot) -> float:
        """By the step-time law that its regression approaches, for what runs and waits there."""
        in_flight = max(1, page.running_requests + page.waiting_requests)
        return step_seconds(self._profile, in_flight, *self._lengths)
