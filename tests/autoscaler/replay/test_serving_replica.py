from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from autoscaler.replay.replica_profile import ReplicaProfile, built_in_profile
from autoscaler.replay.serving_replica import Request, ServingReplica
from tests.autoscaler.replay.iteration_reference import ReferenceRequest, run_every_step

A100 = "llama-3.1-8b-bf16-1xa100-vllm"
H100_70B = "llama-3.3-70b-fp8-2xh100-vllm"
SMALL_CACHE = built_in_profile(H100_70B).model_copy(update={"name": "small cache", "kv_capacity_tokens": 12_000})


def serve_open_loop(profile: ReplicaProfile, requests: Sequence[Request]) -> ServingReplica:
    replica = ServingReplica(profile, 0.0)
    for request in requests:
        if replica.now_seconds < request.arrived_at:
            replica.advance(request.arrived_at)
        replica.add(request, request.arrived_at)
    while replica.requests_in_flight:
        replica.advance(replica.now_seconds + 60.0)
    return replica


def serve_closed_loop(profile: ReplicaProfile, requests: Sequence[Request], clients: int) -> ServingReplica:
    replica = ServingReplica(profile, 0.0)
    following = iter(requests)
    for _ in range(clients):
        replica.add(next(following), 0.0)
    while replica.requests_in_flight:
        next_finish = max(replica.now_seconds, replica.quiet_until_seconds)
        for _ in replica.advance(math.nextafter(next_finish, math.inf), leaves_last_run=True):
            request = next(following, None)
            if request is not None:
                request.arrived_at = replica.now_seconds
                replica.add(request, replica.now_seconds)
    return replica


def random_sizes(seed: int, count: int, rate: float) -> list[tuple[float, int, int, int]]:
    generator = np.random.default_rng(seed)
    arrivals = np.cumsum(generator.exponential(1 / rate, count))
    inputs = np.clip(generator.lognormal(6.5, 0.9, count), 1, 20_000).astype(int)
    outputs = np.clip(generator.lognormal(5.0, 0.8, count), 1, 2_000).astype(int)
    cached = (inputs * generator.choice([0.0, 0.0, 0.6], count)).astype(int)
    return [(float(a), int(i), int(o), int(c)) for a, i, o, c in zip(arrivals, inputs, outputs, cached, strict=True)]


@pytest.mark.parametrize(
    ("profile", "rate"),
    [
        pytest.param(H100_70B, 1.0, id="a lightly loaded 70B replica"),
        pytest.param(H100_70B, 4.0, id="a busy 70B replica"),
        pytest.param(A100, 8.0, id="a busy 8B replica with a token budget of 2048"),
        pytest.param("gpt-oss-120b-mxfp4-2xh100-vllm", 6.0, id="a mixture of experts"),
    ],
)
def test_a_jump_equals_the_simulation_of_every_step(profile: str, rate: float) -> None:
    replica_profile = built_in_profile(profile)
    sizes = random_sizes(seed=7, count=150, rate=rate)
    jumped = [Request(*size) for size in sizes]
    serve_open_loop(replica_profile, jumped)
    stepped = run_every_step(replica_profile, [ReferenceRequest(*size) for size in sizes])
    for request, reference in zip(jumped, stepped, strict=True):
        assert request.first_token_at == pytest.approx(reference.token_times[0], abs=1e-6)
        assert request.finished_at == pytest.approx(reference.token_times[-1], abs=1e-6)


@pytest.mark.parametrize(
    ("profile", "rate"),
    [
        pytest.param(H100_70B, 3.0, id="without preemptions"),
        pytest.param(SMALL_CACHE, 3.0, id="with a cache that overflows"),
        pytest.param("deepseek-r1-fp8-8xh200-tensorrt-llm", 3.0, id="with room reserved for the whole answer"),
    ],
)
def test_leaving_steps_for_later_changes_nothing(profile: ReplicaProfile | str, rate: float) -> None:
    profile = built_in_profile(profile) if isinstance(profile, str) else profile
    sizes = [size for size in random_sizes(seed=5, count=300, rate=rate) if size[1] + size[2] < 8_000]
    at_once, later = [Request(*size) for size in sizes], [Request(*size) for size in sizes]
    serve_open_loop(profile, at_once)
    replica, finished, beat = ServingReplica(profile, 0.0), [], 0.0
    for request in later:
        while beat < request.arrived_at:
            if replica.quiet_until_seconds < beat:
                finished += replica.advance(beat, leaves_last_run=True)
            assert all(each.finished_at is None or each in finished for each in later)
            beat += 0.25
        finished += replica.advance(request.arrived_at, leaves_last_run=True)
        replica.add(request, request.arrived_at)
    while replica.requests_in_flight:
        finished += replica.advance(beat, leaves_last_run=True)
        beat += 0.25
    assert len(finished) == len(later)
    for one, other in zip(at_once, later, strict=True):
        assert other.first_token_at == pytest.approx(one.first_token_at, abs=1e-6)
        assert other.finished_at == pytest.approx(one.finished_at, abs=1e-6)


def test_where_the_advance_is_cut_into_pieces_nothing_changes() -> None:
    sizes = random_sizes(seed=3, count=200, rate=3.0)
    whole, pieces = [Request(*s) for s in sizes], [Request(*s) for s in sizes]
    serve_open_loop(built_in_profile(H100_70B), whole)
    replica = ServingReplica(built_in_profile(H100_70B), 0.0)
    for request in pieces:
        while replica.now_seconds < request.arrived_at:
            replica.advance(min(request.arrived_at, replica.now_seconds + 0.05))
        replica.add(request, request.arrived_at)
    while replica.requests_in_flight:
        replica.advance(replica.now_seconds + 0.05)
    for left, right in zip(whole, pieces, strict=True):
        assert left.finished_at == pytest.approx(right.finished_at, abs=1e-6)


# Mean time to first token and per output token (ms) by closed-loop clients, Llama 3.x 70B FP8, prompt and answer drawn
# uniformly from 80-100 % of the label; measurements published in ai-dynamo/aiconfigurator (Apache-2.0).
CLOSED_LOOP = [
    ("llama-3.3-70b-fp8-2xh100-vllm", 1024, 1024, 4, 121, 17.4),
    ("llama-3.3-70b-fp8-2xh100-vllm", 1024, 1024, 32, 273, 23.5),
    ("llama-3.3-70b-fp8-2xh100-vllm", 1024, 1024, 64, 415, 28.8),
    ("llama-3.3-70b-fp8-2xh100-vllm", 1024, 8192, 16, 191, 22.1),
    ("llama-3.3-70b-fp8-2xh100-vllm", 1024, 8192, 64, 30787, 41.7),
    ("llama-3.3-70b-fp8-2xh100-vllm", 8192, 1024, 8, 963, 25.0),
    ("llama-3.3-70b-fp8-2xh100-vllm", 8192, 1024, 32, 6518, 52.4),
    ("llama-3.3-70b-fp8-2xh100-vllm", 8192, 1024, 64, 59175, 52.4),
    ("llama-3.3-70b-fp8-4xh100-vllm", 1024, 1024, 8, 96, 12.1),
    ("llama-3.3-70b-fp8-4xh100-vllm", 1024, 1024, 64, 256, 19.5),
    ("llama-3.3-70b-fp8-4xh100-vllm", 1024, 8192, 32, 172, 18.4),
    ("llama-3.3-70b-fp8-4xh100-vllm", 8192, 1024, 16, 732, 21.1),
    ("llama-3.3-70b-fp8-4xh100-vllm", 8192, 1024, 64, 1745, 53.5),
]


@pytest.mark.parametrize(
    ("profile", "label_in", "label_out", "clients", "first_token_ms", "per_token_ms"),
    [pytest.param(*row, id=f"{row[0]} with {row[3]} clients of {row[1]}/{row[2]}") for row in CLOSED_LOOP],
)
def test_published_closed_loop_measurements_are_met(
    profile: str, label_in: int, label_out: int, clients: int, first_token_ms: float, per_token_ms: float
) -> None:
    generator = np.random.default_rng(1)
    replica_profile = built_in_profile(profile).model_copy(update={"maximum_sequences": clients})
    requests = [
        Request(0.0, int(i), int(o))
        for i, o in zip(
            generator.integers(int(0.8 * label_in), label_in + 1, 10 * clients),
            generator.integers(int(0.8 * label_out), label_out + 1, 10 * clients),
            strict=True,
        )
    ]
    serve_closed_loop(replica_profile, requests, clients)
    first = np.mean([float(r.first_token_at or 0) - r.arrived_at for r in requests])
    per_token = np.mean(
        [(float(r.finished_at or 0) - float(r.first_token_at or 0)) / (r.output_tokens - 1) for r in requests]
    )
    overhead = replica_profile.request_overhead_seconds
    assert 1000 * (first + overhead) == pytest.approx(first_token_ms, rel=0.15)
    assert 1000 * per_token == pytest.approx(per_token_ms, rel=0.10)


# Time per output token (ms) at a constant rate of equal requests; measurements published by the inference-sim project.
OPEN_LOOP = [
    ("llama-3.1-8b-bf16-1xh100-vllm", 8.0, 549, 248, 7.56),
    ("llama-3.1-8b-bf16-1xh100-vllm", 20.0, 549, 248, 9.10),
    ("llama-3.1-8b-bf16-1xa100-vllm", 2.5, 549, 248, 12.25),
    ("llama-3.1-8b-bf16-1xa100-vllm", 6.0, 549, 248, 14.47),
    ("llama-3.1-70b-bf16-4xh100-vllm", 6.0, 549, 248, 18.50),
    ("llama-3.1-70b-bf16-4xh100-vllm", 10.0, 568, 247, 20.14),
    ("mixtral-8x22b-bf16-8xh100-vllm", 6.0, 752, 251, 17.81),
]


@pytest.mark.parametrize(
    ("profile", "rate", "input_tokens", "output_tokens", "per_token_ms"),
    [pytest.param(*row, id=f"{row[0]} at {row[1]} requests/s") for row in OPEN_LOOP],
)
def test_published_open_loop_measurements_are_met(
    profile: str, rate: float, input_tokens: int, output_tokens: int, per_token_ms: float
) -> None:
    limits = {"maximum_sequences": 128, "maximum_batched_tokens": 2048}
    replica_profile = built_in_profile(profile).model_copy(update=limits)
    # The prompts of that benchmark repeat; on H100 its figures are those of prompts whose blocks are cached.
    cached = 0 if "a100" in profile else input_tokens
    requests = [Request(i / rate, input_tokens, output_tokens, cached) for i in range(600)]
    serve_open_loop(replica_profile, requests)
    per_token = np.mean(
        [(float(r.finished_at or 0) - float(r.first_token_at or 0)) / (output_tokens - 1) for r in requests]
    )
    assert 1000 * per_token == pytest.approx(per_token_ms, rel=0.08)


# Most output tokens per second and accelerator, Llama-3.3-70B FP8, published in NVIDIA/TensorRT-LLM's overview.
SATURATED = [(1000, 1000, 2587), (1024, 1024, 2582), (1024, 8192, 2009), (8192, 1024, 537)]


@pytest.mark.parametrize(
    ("input_tokens", "output_tokens", "tokens_per_second"),
    [pytest.param(*row, id=f"{row[0]} in, {row[1]} out") for row in SATURATED],
)
def test_published_saturation_of_tensorrt_llm_is_met(
    input_tokens: int, output_tokens: int, tokens_per_second: float
) -> None:
    profile = built_in_profile("llama-3.3-70b-fp8-2xh200-tensorrt-llm")
    requests = [Request(0.0, input_tokens, output_tokens) for _ in range(3000)]
    replica = serve_open_loop(profile, requests)
    assert replica.counters.preemptions == 0
    assert 3000 * output_tokens / replica.now_seconds / 2 == pytest.approx(tokens_per_second, rel=0.10)


class TestPreemption:
    def test_a_cache_that_is_too_small_preempts_and_still_answers_everybody(self) -> None:
        profile = built_in_profile(H100_70B).model_copy(update={"kv_capacity_tokens": 24_000})
        requests = [Request(a, min(i, 6_000), o) for a, i, o, _ in random_sizes(seed=5, count=400, rate=3.0)]
        replica = serve_open_loop(profile, requests)
        assert replica.counters.preemptions > 0
        assert all(request.finished_at is not None for request in requests)
        assert replica.counters.finished_requests == len(requests)
        assert replica.counters.generation_tokens == sum(request.output_tokens for request in requests)
        assert replica.kv_cache_used_tokens == 0

    def test_where_the_whole_answer_is_reserved_nobody_is_preempted(self) -> None:
        profile = built_in_profile(H100_70B).model_copy(
            update={"kv_capacity_tokens": 24_000, "reserves_whole_answer": True}
        )
        requests = [Request(a, min(i, 6_000), o) for a, i, o, _ in random_sizes(seed=5, count=400, rate=3.0)]
        replica = serve_open_loop(profile, requests)
        assert replica.counters.preemptions == 0
        assert all(request.finished_at is not None for request in requests)


def test_a_request_longer_than_the_cache_can_never_be_held() -> None:
    profile = built_in_profile(H100_70B).model_copy(update={"kv_capacity_tokens": 1_000})
    replica = ServingReplica(profile, 0.0)
    assert replica.can_ever_hold(Request(0.0, 900, 84))
    assert not replica.can_ever_hold(Request(0.0, 900, 85))


def test_the_counters_tell_what_happened() -> None:
    requests = [Request(*size) for size in random_sizes(seed=2, count=100, rate=2.0)]
    replica = serve_open_loop(built_in_profile(H100_70B), requests)
    snapshot = replica.snapshot()
    assert snapshot.prompt_tokens == sum(r.input_tokens for r in requests) == snapshot.finished_prompt_tokens
    assert snapshot.generation_tokens == sum(r.output_tokens for r in requests) == snapshot.finished_generation_tokens
    assert sum(snapshot.time_to_first_token_counts) == 100
    assert sum(snapshot.inter_token_latency_counts) == sum(r.output_tokens - 1 for r in requests)
    assert snapshot.prefix_hit_tokens == sum(r.cached_tokens // 16 * 16 for r in requests)
    assert (snapshot.running_requests, snapshot.waiting_requests, snapshot.kv_cache_usage) == (0, 0, 0.0)
