"""How many tokens does a KV cache hold, by the labels of vLLM's cache_config_info?"""

from __future__ import annotations

from collections.abc import Mapping

# Labels that tell the capacity; the set of all labels changes from release to release.
GEOMETRY_LABELS = ("kv_cache_size_tokens", "num_gpu_blocks", "block_size")


def capacity_tokens(labels: Mapping[str, str]) -> float | None:
    """Capacity in tokens; None where it cannot be told ("None" in a label, as some releases write), never zero.

    `kv_cache_size_tokens` counts first: on models that mix kinds of attention, blocks x block size is not the
    capacity. num_gpu_blocks="7281", block_size="16" -> 116,496.
    """
    stated = _count(labels.get("kv_cache_size_tokens"))
    if stated is not None:
        return stated
    blocks, block_tokens = _count(labels.get("num_gpu_blocks")), _count(labels.get("block_size"))
    return blocks * block_tokens if blocks is not None and block_tokens is not None else None


def _count(text: str | None) -> float | None:
    try:
        number = float(text) if text else 0.0
    except ValueError:
        return None
    return number if 0.0 < number < float("inf") else None
