"""What of a replica's profile does a simulation read in every step? The coefficients, and what follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from autoscaler.replay.replica_profile import ReplicaProfile


@dataclass(frozen=True, slots=True)
class StepLaw:
    """A profile's numbers under the profile's names: slots are read twice as fast as the fields of a pydantic model."""

    step_overhead_seconds: float
    seconds_per_sequence: float
    weight_read_seconds: float
    expert_read_seconds: float
    active_expert_share: float
    seconds_per_prefill_token: float
    seconds_per_decode_token: float
    seconds_per_context_token: float
    seconds_per_attended_pair: float
    kv_capacity_tokens: int
    block_tokens: int
    half_block: float  # what a sequence leaves empty of its last block, on average
    maximum_sequences: int
    maximum_batched_tokens: int
    longest_request_tokens: int
    reserves_whole_answer: bool
    weights_squared: float  # of a dense model; 0 where it depends on the step
    shortest_step_seconds: float  # no step of at least one sequence takes less
    decode_step_seconds: tuple[float, ...]  # of a step without prompts, apart from its context, by sequences

    def weight_seconds(self, tokens: float) -> float:
        """Reading the weights that a step of so many tokens needs: of the experts those that any token chooses."""
        return _weight_seconds(self.weight_read_seconds, self.expert_read_seconds, self.active_expert_share, tokens)


@lru_cache(maxsize=64)
def step_law(profile: ReplicaProfile) -> StepLaw:
    """The law of a profile, made once."""

    def without_prompts(decoding: int) -> float:
        weights = _weight_seconds(
            profile.weight_read_seconds, profile.expert_read_seconds, profile.active_expert_share, decoding
        )
        matrices = math.hypot(weights, profile.seconds_per_decode_token * decoding)
        return profile.step_overhead_seconds + profile.seconds_per_sequence * decoding + matrices

    return StepLaw(
        step_overhead_seconds=profile.step_overhead_seconds,
        seconds_per_sequence=profile.seconds_per_sequence,
        weight_read_seconds=profile.weight_read_seconds,
        expert_read_seconds=profile.expert_read_seconds,
        active_expert_share=profile.active_expert_share,
        seconds_per_prefill_token=profile.seconds_per_prefill_token,
        seconds_per_decode_token=profile.seconds_per_decode_token,
        seconds_per_context_token=profile.seconds_per_context_token,
        seconds_per_attended_pair=profile.seconds_per_attended_pair,
        kv_capacity_tokens=profile.kv_capacity_tokens,
        block_tokens=profile.block_tokens,
        half_block=profile.block_tokens / 2,
        maximum_sequences=profile.maximum_sequences,
        maximum_batched_tokens=profile.maximum_batched_tokens,
        longest_request_tokens=profile.longest_request_tokens,
        reserves_whole_answer=profile.reserves_whole_answer,
        weights_squared=0.0 if profile.expert_read_seconds else profile.weight_read_seconds**2,
        shortest_step_seconds=profile.step_overhead_seconds
        + profile.seconds_per_sequence
        + profile.weight_read_seconds,
        decode_step_seconds=tuple(map(without_prompts, range(profile.maximum_sequences + 1))),
    )


def _weight_seconds(dense_seconds: float, expert_seconds: float, active_share: float, tokens: float) -> float:
    """Of all experts those that none of the tokens chooses are not read."""
    if not expert_seconds:
        return dense_seconds
    return dense_seconds + expert_seconds * (1.0 - math.pow(1.0 - active_share, tokens))
