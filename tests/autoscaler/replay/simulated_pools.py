"""Small simulated pools for tests: equal requests at a constant rate, and starts that take exactly as long as said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.observers.metrics import PoolQuery
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_pool import PoolSetup, SimulatedPool

STARTED_AT = 1_800_000_000.0
KEY = ("inference", "chat")


def a_setup(cold_start_seconds: float = 100.0, **changes: object) -> PoolSetup:
    setup = PoolSetup(
        namespace=KEY[0],
        name=KEY[1],
        target_name="vllm-chat",
        engine="vllm",
        profile=built_in_profile("llama-3.1-8b-bf16-1xa100-vllm"),
        cold_start=ColdStart((ColdStartPhase("engine", cold_start_seconds, 0.0),)),
        objectives=LatencyObjectives(1.0, 0.05),
        initial_replicas=2,
    )
    return replace(setup, **changes)  # type: ignore[arg-type]


def steady_requests(per_second: float, tokens: tuple[int, int] = (1000, 200)) -> Iterator[Request]:
    return (Request(STARTED_AT + number / per_second, *tokens) for number in count(1))


def some_requests(number: int, tokens: tuple[int, int] = (1000, 200)) -> Iterator[Request]:
    return iter([Request(STARTED_AT + 0.1 * place, *tokens) for place in range(number)])


def a_pool(setup: PoolSetup, requests: Iterator[Request], seed: int = 1) -> SimulatedPool:
    return SimulatedPool(setup, requests, np.random.default_rng(seed), STARTED_AT)


def a_scaler(target: str = "vllm-chat", name: str = KEY[1]) -> InferenceScaler:
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"namespace": KEY[0], "name": name, "uid": "1", "generation": 1},
            "spec": {
                "mode": "Scale",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
                "engine": "vllm",
                "minReplicas": 1,
                "maxReplicas": 20,
                "signals": {"tokenRate": {"perReplicaPerSecond": 7500}, "tokensInFlight": {"perReplica": 32000}},
            },
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def a_query(pool: SimulatedPool, *queries: str) -> PoolQuery:
    return PoolQuery(KEY, "vllm", "vllm-chat", pool.pods, {name: "sum(x)" for name in queries})
