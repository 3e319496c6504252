"""How much of a load can one replica serve within its objectives? By the step-time law, without simulating anything."""

from __future__ import annotations

import math

import numpy as np

from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.trace import FloatArray
from autoscaler.replay.trace_load import LoadBins

# Of the KV cache: beyond this a replica preempts.
FULL_SHARE = 0.9


def requests_per_second(
    profile: ReplicaProfile, input_tokens: float, output_tokens: float, objectives: LatencyObjectives
) -> float:
    """The rate at which a replica's mean token gap is the objective, for requests of these mean lengths.

    In a steady state with D sequences each step decodes D tokens and computes D x input / output prompt tokens; the
    largest D is sought at which such a step takes no longer than the objective and the cache holds the sequences. Never
    0: a replica that meets the objective with no sequence at all has the rate of one.
    """
    inputs, outputs = max(input_tokens, 1.0), max(output_tokens, 1.0)
    held_tokens = inputs + outputs / 2.0
    most = min(float(profile.maximum_sequences), FULL_SHARE * profile.kv_capacity_tokens / held_tokens)
    low, high = min(1.0, most), most
    if step_seconds(profile, high, inputs, outputs) > objectives.inter_token_latency_seconds:
        for _ in range(40):
            middle = (low + high) / 2.0
            if step_seconds(profile, middle, inputs, outputs) <= objectives.inter_token_latency_seconds:
                low = middle
            else:
                high = middle
    else:
        low = high
    return low / (outputs * step_seconds(profile, low, inputs, outputs))


def work(profile: ReplicaProfile, load: LoadBins, objectives: LatencyObjectives) -> FloatArray:
    """Replicas' worth of work in each bin: its rate by the rate that one replica serves at those lengths."""
    served = np.ones_like(load.requests_per_second)
    for place in np.flatnonzero(load.requests_per_second):
        served[place] = requests_per_second(
            profile, float(load.input_tokens[place]), float(load.output_tokens[place]), objectives
        )
    return load.requests_per_second / served


def step_seconds(profile: ReplicaProfile, sequences: float, inputs: float, outputs: float) -> float:
    """A step of so many sequences in a steady state: what it decodes, and its share of their prompts."""
    prefill_tokens = sequences * inputs / outputs
    computing = profile.seconds_per_prefill_token * prefill_tokens + profile.seconds_per_decode_token * sequences
    weights = profile.weight_read_seconds
    if profile.expert_read_seconds:
        unread = (1.0 - profile.active_expert_share) ** (prefill_tokens + sequences)
        weights += profile.expert_read_seconds * (1.0 - unread)
    return (
        profile.step_overhead_seconds
        + profile.seconds_per_sequence * sequences
        + math.hypot(weights, computing)
        + profile.seconds_per_context_token * sequences * (inputs + outputs / 2.0)
        + profile.seconds_per_attended_pair * prefill_tokens * inputs / 2.0
    )
