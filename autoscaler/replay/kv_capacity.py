"""How many tokens does a replica's KV cache hold? For a profile of one's own, where no log tells the block count.

What is left of the memory that the engine may use, after the weights and its own needs, by the bytes of a token:
2 (keys and values) x layers x KV heads x head dimension x bytes of a number. Llama-2-7B in 16 bit on one 80 GB card:
(0.9 x 79.2 - 12.55 - 1.3) GiB by 524 288 bytes are 117 600 tokens; its log says 7 463 blocks of 16, 119 408.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30
# CUDA context, activations of a step of up to 8192 tokens, CUDA graphs; GiB an accelerator.
OVERHEAD_GIB = 1.3


@dataclass(frozen=True, slots=True)
class CachedModel:
    """What of a model decides: its weights in memory, and what a token leaves behind in each layer."""

    weights_gib: float
    layers: int
    kv_heads: int
    head_dimension: int
    bytes_per_number: int = 2

    @property
    def bytes_per_token(self) -> int:
        """Of all layers together, on all accelerators together."""
        return 2 * self.layers * self.kv_heads * self.head_dimension * self.bytes_per_number


def kv_capacity_tokens(
    model: CachedModel,
    accelerators: int,
    memory_gib: float,
    utilisation: float = 0.9,
    overhead_gib: float = OVERHEAD_GIB,
) -> int:
    """Tokens in the cache of a replica; 0 where the weights leave no room.

    `memory_gib` is what one accelerator reports: 79.2 for a card of 80 GB, 139.8 for an H200. `utilisation` is the
    engine's gpu_memory_utilization. The weights are spread evenly over the accelerators.
    """
    free_gib = utilisation * memory_gib - model.weights_gib / accelerators - overhead_gib
    return max(0, int(free_gib * GIB * accelerators / model.bytes_per_token))
