"""How long does one step of an inference engine take? A law with few coefficients, and what it makes of a load.

One step that computes P prompt tokens and decodes D sequences holding K tokens of context takes
`overhead + per_sequence x D + sqrt(weights^2 + (per_prefill x P + per_decode x D)^2) + per_context x K + per_pair x Q`,
where Q sums chunk length x mean context over the prompt chunks. The root of squares joins reading the weights, which
small batches wait for, and computing, which large ones wait for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

# Prompt tokens that an engine puts into one step at most: the default of vLLM and TensorRT-LLM on large accelerators.
STEP_PROMPT_TOKENS = 8192.0


@dataclass(frozen=True, slots=True)
class StepTimeLaw:
    """The coefficients of one kind of replica, in seconds; of a mixture of experts also what reading all of them takes,
    and which share of them one token wakes.
    """

    name: str
    overhead: float
    per_sequence: float
    weights: float
    per_prefill: float
    per_decode: float
    per_context: float
    per_pair: float
    experts: float = 0.0
    active_expert_share: float = 0.0

    def matrix_seconds(self, prompt_tokens: float, decoding: float) -> float:
        """Reading weights and computing, of one step."""
        weights = self.weights
        if self.experts:
            weights += self.experts * (1.0 - (1.0 - self.active_expert_share) ** (prompt_tokens + decoding))
        computing = self.per_prefill * prompt_tokens + self.per_decode * decoding
        return math.sqrt(weights * weights + computing * computing)

    def terms(self, load: StepLoad) -> tuple[float, float, float]:
        """The mean step's time in three parts, which a pool may have in proportions of its own: what every step takes
        with so many sequences, what their contexts take, and what the prompts add.
        """
        decoding, computed_tokens = load.decoding, load.prompt_tokens
        alone = self.matrix_seconds(0.0, decoding)
        # A prompt adds to the steps that compute it, of which there is one for every 8192 tokens.
        steps = max(1.0, computed_tokens / STEP_PROMPT_TOKENS)
        added = steps * (self.matrix_seconds(computed_tokens / steps, decoding) - alone)
        attended = self.per_pair * computed_tokens * (load.cached_tokens + computed_tokens / 2)
        return (
            self.overhead + alone,
            self.per_sequence * decoding + self.per_context * decoding * load.context_tokens,
            load.prompts * (added + attended),
        )


class StepLoad(NamedTuple):
    """The mean step of a replica: sequences that decode, context of each, and prompts that begin, by their tokens."""

    decoding: float
    context_tokens: float
    prompts: float
    prompt_tokens: float  # computed, of one prompt
    cached_tokens: float = 0.0  # of one prompt
