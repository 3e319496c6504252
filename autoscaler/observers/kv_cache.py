"""How full is the KV cache of one pod, whose engines tell their share and, elsewhere, their size?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.observers.prometheus_rows import ONLY_ENGINE, EngineKey


@dataclass(frozen=True, slots=True)
class KVCache:
    """Share in use (0-1), tokens in use, tokens that fit. None: not exposed. NaN: exposed, and not to be told."""

    usage: float | None
    used_tokens: float | None
    capacity_tokens: float | None


def kv_cache_of(
    usages: Sequence[tuple[EngineKey, float]],
    capacities: Mapping[EngineKey, float] | None,
    used_tokens: float | None,
    capacity_tokens: float | None,
) -> KVCache:
    """The cache of a pod from its engines' shares.

    `capacities` are sizes by engine as told in labels (vLLM), or None; then `used_tokens` and `capacity_tokens` are
    what the engine counts itself. The pod's share is the mean weighted by size where all sizes are known: 90 % of
    10,000 tokens and 10 % of 30,000 are 30 %. Older vLLM has no engine in its sizes: then all engines have that one.
    """
    if not usages:
        return KVCache(None, used_tokens, capacity_tokens)
    if capacities is None:
        if len(usages) > 1 and used_tokens is not None and capacity_tokens:
            return KVCache(used_tokens / capacity_tokens, used_tokens, capacity_tokens)
        return KVCache(sum(usage for _, usage in usages) / len(usages), used_tokens, capacity_tokens)
    sizes = [capacities.get(engine, capacities.get(ONLY_ENGINE, math.nan)) for engine, _ in usages]
    total = sum(sizes)
    if not total > 0:
        return KVCache(sum(usage for _, usage in usages) / len(usages), math.nan, math.nan)
    used = sum(usage * size for (_, usage), size in zip(usages, sizes, strict=True))
    return KVCache(used / total, used, total)
