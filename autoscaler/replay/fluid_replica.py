"""What do so many replicas do with a steady flow of requests? Arithmetic of rates, without single requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_work import FULL_SHARE
from autoscaler.replay.step_law import StepLaw
from autoscaler.replay.trace import INPUT_SPREAD

_HALVINGS = 24
# By what share of it the number of running requests may be off.
_LEAST_ERROR = 1e-8
# Attention of a prompt grows with the square of its length, and prompts are not all of the mean length.
_MEAN_OF_SQUARES = math.exp(INPUT_SPREAD**2)


@dataclass(frozen=True, slots=True)
class ReplicaLimits:
    """Requests a second of one replica: within the objectives, and at most, with a batch as large as it holds."""

    within_objectives: float
    at_most: float


@dataclass(frozen=True, slots=True)
class Served:
    """What came of a stretch of time: requests served, those that wait at its end, and how long it was short."""

    requests: float
    backlog: float
    short_seconds: float


def replica_limits(
    law: StepLaw, input_tokens: float, output_tokens: float, objectives: LatencyObjectives
) -> ReplicaLimits:
    """By `token_gap_seconds`, for requests of these mean lengths; the first is never above the second.

    Never 0: a replica that is too slow with a single sequence has the rate of one.
    """
    most = _most_sequences(law, input_tokens, output_tokens)
    objective = objectives.inter_token_latency_seconds
    sequences = most
    if token_gap_seconds(law, most, input_tokens, output_tokens) > objective:
        low, sequences = 0.0, most
        for _ in range(_HALVINGS):
            middle = (low + sequences) / 2.0
            if token_gap_seconds(law, middle, input_tokens, output_tokens) > objective:
                sequences = middle
            else:
                low = middle
        sequences = max(low, min(1.0, most))
    at_most = _rate(law, most, input_tokens, output_tokens)
    return ReplicaLimits(min(_rate(law, sequences, input_tokens, output_tokens), at_most), at_most)


def token_gap_seconds(law: StepLaw, sequences: float, input_tokens: float, output_tokens: float) -> float:
    """The mean time from one token to the next with so many sequences, whose prompts come one by one.

    Most steps only decode. One in which a prompt, or a part of it, is computed takes so much longer as the step-time
    law says; spreading all prompts evenly over all steps would hide that time behind reading the weights.
    """
    inputs, outputs = max(input_tokens, 1.0), max(output_tokens, 1.0)
    prefill_tokens = sequences * inputs / outputs  # of a mean step
    in_one_step = min(float(law.maximum_batched_tokens), max(inputs, prefill_tokens))
    decoding = law.seconds_per_decode_token * sequences
    weights = weights_with_prompt = law.weight_read_seconds
    if law.expert_read_seconds:
        weights, weights_with_prompt = law.weight_seconds(sequences), law.weight_seconds(sequences + in_one_step)
    with_prompt = math.hypot(weights_with_prompt, law.seconds_per_prefill_token * in_one_step + decoding)
    without = math.hypot(weights, decoding)
    return (
        law.step_overhead_seconds
        + law.seconds_per_sequence * sequences
        + without
        + prefill_tokens / in_one_step * (with_prompt - without)
        + law.seconds_per_context_token * sequences * (inputs + outputs / 2.0)
        + law.seconds_per_attended_pair * prefill_tokens * inputs * _MEAN_OF_SQUARES / 2.0
    )


def serve(arriving_per_second: float, backlog: float, replicas: int, limits: ReplicaLimits, seconds: float) -> Served:
    """So many replicas under a constant flow: what waits is served first, never more than arrives and waits.

    Short are the seconds in which something waits, or more arrives than the replicas serve within the objectives.
    """
    arrived, most = arriving_per_second * seconds, limits.at_most * replicas
    served = min(arrived + backlog, most * seconds)
    if arriving_per_second > limits.within_objectives * replicas:
        short = seconds
    elif backlog > 0:
        short = min(seconds, backlog / (most - arriving_per_second)) if most > arriving_per_second else seconds
    else:
        short = 0.0
    return Served(served, max(0.0, arrived + backlog - served), short)


def running_requests(law: StepLaw, per_second: float, input_tokens: float, output_tokens: float) -> float:
    """How many requests a replica works on that serves so many a second: by Little's law, rate x time of an answer.

    The time of an answer depends on how many there are, so the number is sought at which both agree. At most what the
    cache holds.
    """
    if per_second <= 0:
        return 0.0
    tokens_per_second = per_second * max(output_tokens, 1.0)

    def excess(sequences: float) -> float:
        """By how many they are more than rate x time says; nearly a straight line."""
        return sequences - tokens_per_second * token_gap_seconds(law, sequences, input_tokens, output_tokens)

    low, high = 0.0, _most_sequences(law, input_tokens, output_tokens)
    missing, beyond, moved = -excess(low), excess(high), 0
    if beyond <= 0:
        return high
    # The straight line between the two ends tells where to look next, with half of what is off at an end that stays
    # (the Illinois method): three looks instead of the thirty of halving.
    while True:
        between = low + (high - low) * missing / (missing + beyond)
        off = excess(between)
        if abs(off) <= _LEAST_ERROR * between or not low < between < high:
            return between
        if off < 0:
            beyond *= 0.5 if moved < 0 else 1.0
            low, missing, moved = between, -off, -1
        else:
            missing *= 0.5 if moved > 0 else 1.0
            high, beyond, moved = between, off, 1


def _most_sequences(law: StepLaw, input_tokens: float, output_tokens: float) -> float:
    held_tokens = max(input_tokens, 1.0) + max(output_tokens, 1.0) / 2.0
    return min(float(law.maximum_sequences), FULL_SHARE * law.kv_capacity_tokens / held_tokens)


def _rate(law: StepLaw, sequences: float, input_tokens: float, output_tokens: float) -> float:
    """Requests a second with so many sequences at a time."""
    gap = token_gap_seconds(law, sequences, input_tokens, output_tokens)
    return sequences / (max(output_tokens, 1.0) * gap)
