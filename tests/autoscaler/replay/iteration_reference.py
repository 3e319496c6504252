"""A replica simulated step by step and block by block: slow, and simple enough to be believed."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from autoscaler.replay.replica_profile import ReplicaProfile


@dataclass
class ReferenceRequest:
    arrived_at: float
    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    computed: int = 0  # tokens whose keys and values are in the cache
    generated: int = 0
    token_times: list[float] = field(default_factory=list)

    @property
    def to_compute(self) -> int:
        """Tokens of prompt and answer so far; the newest generated one is the next step's input."""
        return self.input_tokens + max(0, self.generated - 1) if self.generated else self.input_tokens


def run_every_step(profile: ReplicaProfile, requests: Sequence[ReferenceRequest]) -> list[ReferenceRequest]:
    """Serves open-loop requests (sorted by arrival) until all are done. Raises when the cache would overflow."""
    now = 0.0
    pending = deque(requests)
    waiting: deque[ReferenceRequest] = deque()
    batch: list[ReferenceRequest] = []
    while pending or waiting or batch:
        if not waiting and not batch:
            now = max(now, pending[0].arrived_at)
        while pending and pending[0].arrived_at <= now:
            waiting.append(pending.popleft())
        _admit(profile, waiting, batch)
        chunks = _share_out(profile, batch)
        now += _step_seconds(profile, chunks)
        for request, tokens in chunks:
            request.computed += tokens
            if request.computed >= request.input_tokens:
                request.generated += 1
                request.token_times.append(now)
        batch = [request for request in batch if request.generated < request.output_tokens]
        if sum(_blocks(profile, request) for request in batch) * profile.block_tokens > profile.kv_capacity_tokens:
            raise AssertionError("this reference knows no preemption: give it a larger cache")
    return list(requests)


def _admit(profile: ReplicaProfile, waiting: deque[ReferenceRequest], batch: list[ReferenceRequest]) -> None:
    unfinished = sum(r.input_tokens - r.computed for r in batch if r.computed < r.input_tokens)
    while waiting and len(batch) < profile.maximum_sequences and unfinished < profile.maximum_batched_tokens:
        request = waiting.popleft()
        usable = min(request.cached_tokens, request.input_tokens - 1)
        request.computed = usable - usable % profile.block_tokens
        unfinished += request.input_tokens - request.computed
        batch.append(request)


def _share_out(profile: ReplicaProfile, batch: list[ReferenceRequest]) -> list[tuple[ReferenceRequest, int]]:
    decoding = [(r, 1) for r in batch if r.generated]
    left = profile.maximum_batched_tokens - len(decoding)
    chunks: list[tuple[ReferenceRequest, int]] = []
    for request in batch:
        if request.generated == 0 and left > 0:
            tokens = min(request.input_tokens - request.computed, left)
            chunks.append((request, tokens))
            left -= tokens
    return decoding + chunks


def _step_seconds(profile: ReplicaProfile, chunks: list[tuple[ReferenceRequest, int]]) -> float:
    prompts = [(r, n) for r, n in chunks if r.generated == 0]
    decoding = [r for r, _ in chunks if r.generated]
    prefill_tokens = sum(n for _, n in prompts)
    weights = profile.weight_read_seconds
    if profile.expert_read_seconds:
        share = 1 - (1 - profile.active_expert_share) ** (prefill_tokens + len(decoding))
        weights += profile.expert_read_seconds * share
    computing = profile.seconds_per_prefill_token * prefill_tokens
    computing += profile.seconds_per_decode_token * len(decoding)
    return (
        profile.step_overhead_seconds
        + profile.seconds_per_sequence * len(chunks)
        + math.hypot(weights, computing)
        + profile.seconds_per_context_token * sum(r.computed + 1 for r in decoding)
        + profile.seconds_per_attended_pair * sum(n * (r.computed + n / 2) for r, n in prompts)
    )


def _blocks(profile: ReplicaProfile, request: ReferenceRequest) -> int:
    return math.ceil(request.computed / profile.block_tokens)
