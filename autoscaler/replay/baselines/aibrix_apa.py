"""`aibrix-apa`: AIBrix's adaptive pod autoscaler (vllm-project/aibrix e3e10f9, pkg/controller/podautoscaler).

Every 10 s it reads one gauge of every pod, KV-cache usage with a target of 0.5 as in its examples; tolerance 10 %
either way, at most double or half in a step, shrinking after a cooldown of 300 s. The cooldown is taken as its
documentation describes it (the largest wish of the window counts); the code of that revision takes the smallest.
"""

from __future__ import annotations

import math

from autoscaler.replay.stock_hpa import PoolWorld

TARGET_KV_USAGE = 0.5
TOLERANCE = 0.1
MAXIMUM_RATE = 2.0
DOWN_COOLDOWN_SECONDS = 300.0


def desired_pods(mean: float, target: float, current: int) -> int:
    """One step from the mean over the pods that answered. 0.75 at 0.5 with 10 pods: 15."""
    ratio = mean / target
    if ratio > 1.0 + TOLERANCE:
        return min(math.ceil(current * ratio), math.ceil(MAXIMUM_RATE * current))
    if ratio < 1.0 - TOLERANCE:
        return max(math.ceil(current * ratio), math.floor(current / MAXIMUM_RATE))
    return current


class AIBrixAPA:
    """The rule with its cooldown."""

    interval_seconds = 10.0

    def __init__(
        self, target_kv_usage: float = TARGET_KV_USAGE, down_cooldown_seconds: float = DOWN_COOLDOWN_SECONDS
    ) -> None:
        self._target = target_kv_usage
        self._cooldown_seconds = down_cooldown_seconds
        self._wishes: list[tuple[float, int]] = []

    def desired(self, world: PoolWorld, now_seconds: float) -> int | None:
        """Reads the pods directly; no change without any that answers."""
        usages = [page.kv_cache_usage for page in world.pool.pages_now()]
        if not usages:
            return None
        current = world.pool.spec_replicas
        wish = desired_pods(sum(usages) / len(usages), self._target, current)
        self._wishes = [each for each in self._wishes if each[0] > now_seconds - self._cooldown_seconds]
        self._wishes.append((now_seconds, wish))
        return wish if wish >= current else min(current, max(count for _, count in self._wishes))
