"""Simulated pools whose capacity is to be learned: replicas that are not among the known ones, load that varies."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.result import PoolResult
from autoscaler.replay.serving_replica import Request, ServingReplica
from autoscaler.replay.simulated_pool import PoolSetup
from policies.capacity.memory import CapacityMemory

STARTED_AT = 1_800_000_000.0
KEY = ("inference", "chat")
# The objectives of a pool of which nothing is said.
OBJECTIVES = LatencyObjectives(2.0, 0.05)
# Log-normal lengths: the deviations of the logarithm.
PROMPT_SPREAD, ANSWER_SPREAD = 1.0, 0.85
BLOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Shape:
    """Mean tokens of a request's prompt, of its answer, and of a system prompt that all requests share."""

    prompt: int
    answer: int
    shared: int = 0

    def __str__(self) -> str:
        return f"{self.prompt}/{self.answer}" + (f", {self.shared} cached" if self.shared else "")

    def draw(self, generator: np.random.Generator, arrived_at: float) -> Request:
        """One request."""
        prompt = _draw_length(generator, self.prompt, PROMPT_SPREAD, 60_000)
        answer = _draw_length(generator, self.answer, ANSWER_SPREAD, 8_000)
        return Request(arrived_at, prompt, answer, min(self.shared, prompt))


def _draw_length(generator: np.random.Generator, mean: float, spread: float, longest: int) -> int:
    length = generator.lognormal(math.log(mean) - spread * spread / 2, spread)
    return min(max(1, round(length)), longest)


def another_replica(profile: ReplicaProfile, generator: np.random.Generator, spread: float = 0.25) -> ReplicaProfile:
    """A replica of nobody's table: each coefficient is the profile's times a log-normal factor of its own."""
    factors = generator.lognormal(0.0, spread, 7).tolist()
    return profile.model_copy(
        update={
            "step_overhead_seconds": profile.step_overhead_seconds * factors[0],
            "seconds_per_sequence": profile.seconds_per_sequence * factors[1],
            "weight_read_seconds": profile.weight_read_seconds * factors[2],
            "seconds_per_prefill_token": profile.seconds_per_prefill_token * factors[3],
            "seconds_per_decode_token": profile.seconds_per_decode_token * factors[3],
            "seconds_per_context_token": profile.seconds_per_context_token * factors[4],
            "seconds_per_attended_pair": profile.seconds_per_attended_pair * factors[5],
            "expert_read_seconds": profile.expert_read_seconds * factors[6],
        }
    )


def varied_load(
    shape: Shape, mean_per_second: float, seconds: float, generator: np.random.Generator, swing: float = 0.5
) -> Iterator[Request]:
    """Requests at a rate that swings in 90 minutes and is noisy: gamma with a deviation of 18 % for every 10 s."""
    start = 0.0
    while start < seconds:
        swung = mean_per_second * (1.0 + swing * math.sin(2.0 * math.pi * start / 5400.0))
        rate = swung * generator.gamma(1.0 / 0.18**2, 0.18**2)
        for moment in np.sort(generator.uniform(start, start + BLOCK_SECONDS, generator.poisson(rate * BLOCK_SECONDS))):
            yield shape.draw(generator, STARTED_AT + float(moment))
        start += BLOCK_SECONDS


def true_requests_per_second(profile: ReplicaProfile, shape: Shape, seconds: float = 600.0, replicas: int = 3) -> float:
    """The load of one replica, steady and Poisson, at which a mean latency of the requests reaches its objective."""

    def is_within(per_second: float) -> bool:
        gap, first = _mean_latencies(profile, shape, per_second * replicas, seconds, replicas)
        return gap <= OBJECTIVES.inter_token_latency_seconds and first <= OBJECTIVES.time_to_first_token_seconds

    low, high = 0.0, 2.0
    while is_within(high):
        low, high = high, 2.0 * high
    for _ in range(7):
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_within(middle) else (low, middle)
    return (low + high) / 2.0


def _mean_latencies(
    profile: ReplicaProfile, shape: Shape, per_second: float, seconds: float, replicas: int
) -> tuple[float, float]:
    generator = np.random.default_rng(0)
    fleet = [ServingReplica(profile, 0.0) for _ in range(replicas)]
    finished: list[Request] = []
    for moment in np.sort(generator.uniform(0.0, seconds, generator.poisson(per_second * seconds))):
        request = shape.draw(generator, float(moment))
        for each in fleet:
            finished += each.advance(request.arrived_at)
        chosen = min(fleet, key=lambda each: each.requests_in_flight)
        if chosen.can_ever_hold(request):
            chosen.add(request, request.arrived_at)
    for each in fleet:
        finished += each.advance(seconds)
    settled = [request for request in finished if request.arrived_at > seconds / 3 and request.output_tokens > 1]
    if not settled:
        return math.inf, math.inf
    firsts = [(request.first_token_at or 0.0) - request.arrived_at for request in settled]
    gaps = [
        ((request.finished_at or 0.0) - (request.first_token_at or 0.0)) / (request.output_tokens - 1)
        for request in settled
    ]
    return float(np.mean(gaps)), float(np.mean(firsts))


def a_scaler(learned: dict[str, Any] | None = None, **spec: Any) -> InferenceScaler:
    """A pool of which nothing is said but its engine; `learned` is what its status says of its capacity."""
    document = {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "InferenceScaler",
        "metadata": {"namespace": KEY[0], "name": KEY[1], "uid": "1", "generation": 1},
        "spec": {
            "mode": "Scale",
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm-chat"},
            "engine": "vllm",
            "maxReplicas": 64,
            **spec,
        },
    }
    parsed = parse_inference_scaler(document)
    assert isinstance(parsed, InferenceScaler), parsed
    return replace(parsed, status={"learned": {"capacity": learned}} if learned else {})


@dataclass
class Decisions:
    """A reporter that keeps all decisions."""

    decided: list[Decided]

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Keeps those of one tick."""
        self.decided += [each for each in reports if isinstance(each, Decided)]


@dataclass(frozen=True)
class LearningRun:
    """A run, every decision of it, and what one replica can truly do."""

    result: PoolResult
    decided: tuple[Decided, ...]
    true_requests_per_second: float

    @property
    def memory(self) -> CapacityMemory:
        """What was learned by the end."""
        memory = self.decided[-1].capacity
        assert memory is not None
        return memory

    def error_at(self, seconds: float) -> float | None:
        """By how much the capacity was too large then, as a share of the truth; None where nothing was learned yet."""
        decision_input = next(each.decision_input for each in self.decided if each.now_seconds >= STARTED_AT + seconds)
        capacity, metrics = decision_input.learned_capacity, decision_input.metrics
        if capacity is None or metrics.kind != "observed" or metrics.prompt_tokens_per_request is None:
            return None
        computed = metrics.prompt_tokens_per_request * (1.0 - (metrics.prefix_cache_hit_share or 0.0))
        seconds_each = capacity.work_seconds(computed, metrics.generation_tokens_per_request or 0.0)
        return 1.0 / (seconds_each * self.true_requests_per_second) - 1.0

    def attainment_after(self, seconds: float) -> float:
        """The share of the requests finished after `seconds` of the run that met the objectives."""
        points = self.result.points
        first = next(point for point in points if point.at_seconds >= STARTED_AT + seconds)
        return (points[-1].met - first.met) / (points[-1].finished - first.finished)


def learning_run(
    profile: ReplicaProfile,
    shape: Shape,
    true_per_second: float,
    *,
    seed: int,
    seconds: float = 7200.0,
    mean_work: float = 4.0,
    initial_replicas: int = 6,
    swing: float = 0.5,
    scaler: InferenceScaler | None = None,
) -> LearningRun:
    """A pool with work for `mean_work` fully used replicas on average, from its first second."""
    setup = PoolSetup(
        namespace=KEY[0],
        name=KEY[1],
        target_name="vllm-chat",
        engine="vllm",
        profile=profile,
        cold_start=ColdStart((ColdStartPhase("engine", 100.0, 0.2),)),
        objectives=OBJECTIVES,
        initial_replicas=initial_replicas,
    )
    decisions = Decisions([])
    load = varied_load(shape, mean_work * true_per_second, seconds, np.random.default_rng(seed), swing)
    policy = ReconciledPolicy([scaler or a_scaler()], reporters=[decisions])
    result = replay(policy, setup, load, ReplayRun(STARTED_AT, STARTED_AT + seconds, seed=seed))
    return LearningRun(result, tuple(decisions.decided), true_per_second)
