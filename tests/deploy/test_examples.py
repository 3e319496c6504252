"""The shipped examples are read as they are; the presets do what their names promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.api.inference_scaler import EngineName, InferenceScaler, InferenceScalerSpec, parse_inference_scaler
from policies.capacity.objectives import LatencyObjectives
from policies.constraints.behavior import PolicyType, ScalingPolicy
from policies.constraints.missing_data import FallbackBehavior
from policies.parameters import Mode

EXAMPLES = Path(__file__).parents[2] / "deploy" / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def spec_of(name: str) -> InferenceScalerSpec:
    (document,) = documents(EXAMPLES / name)
    scaler = parse_inference_scaler(document)
    assert isinstance(scaler, InferenceScaler), scaler.problems
    return scaler.spec


@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in FILES])
def test_every_example_is_accepted(path: Path) -> None:
    for document in documents(path):
        is_pool = document["kind"] == "AcceleratorPool"
        parsed = parse_accelerator_pool(document) if is_pool else parse_inference_scaler(document)
        assert isinstance(parsed, InferenceScaler | AcceleratorPool), parsed.problems


def test_there_are_the_presets_and_a_first_policy() -> None:
    assert {"agents.yaml", "queue-depth.yaml", "first-policy.yaml"} <= {path.name for path in FILES}


def test_agents() -> None:
    spec = spec_of("agents.yaml")
    assert (spec.mode, spec.engine, spec.min_replicas, spec.max_replicas) == (Mode.SCALE, EngineName.VLLM, 4, 96)
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    assert up.stabilization_window_seconds == 0
    assert up.policies == (ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=30),)
    assert down.stabilization_window_seconds == 600
    assert down.policies == (ScalingPolicy(type=PolicyType.PODS, value=4, period_seconds=60),)
    used = {name for name, value in spec.signals.model_dump(by_alias=True).items() if value}
    assert used == {"tokenRate", "pendingRequests"}
    assert spec.signals.token_rate is not None
    assert spec.signals.token_rate.per_replica_per_second == 180_000
    (window,) = spec.schedules
    assert (window.name, window.min_replicas) == ("morning-wave", 24)
    assert (window.start, window.end, window.timezone) == ("30 7 * * 1-5", "0 19 * * 1-5", "America/New_York")
    assert spec.missing_data.hold_seconds == 120
    assert spec.missing_data.fallback is not None
    assert spec.missing_data.fallback.behavior is FallbackBehavior.CURRENT_IF_HIGHER
    assert spec.missing_data.fallback.replicas == 8


def test_agents_in_bursts_says_how_tall_the_first_may_be_and_states_no_vote() -> None:
    spec = spec_of("agents-in-bursts.yaml")
    assert spec.recurring_bursts.expected_amplification == 5.5
    assert spec.parameters.objectives == LatencyObjectives()
    assert not any(value for value in spec.signals.model_dump().values())


def test_queue_depth() -> None:
    spec = spec_of("queue-depth.yaml")
    assert (spec.mode, spec.engine, spec.min_replicas, spec.max_replicas) == (Mode.SCALE, EngineName.VLLM, 2, 32)
    up, down = spec.behavior.scale_up, spec.behavior.scale_down
    assert up.stabilization_window_seconds == 30
    assert up.policies == (ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=30),)
    assert down.stabilization_window_seconds == 300
    assert down.policies == (ScalingPolicy(type=PolicyType.PODS, value=2, period_seconds=60),)
    used = {name for name, value in spec.signals.model_dump(by_alias=True).items() if value}
    assert used == {"waitingRequests"}
    assert spec.signals.waiting_requests is not None
    assert spec.signals.waiting_requests.per_replica == 4


def test_the_first_policy_writes_nothing() -> None:
    assert spec_of("first-policy.yaml").mode is Mode.DRY_RUN


def test_two_routed_pools_have_objectives_of_their_own() -> None:
    prefill, decode = (parse_inference_scaler(document) for document in documents(EXAMPLES / "two-routed-pools.yaml"))
    assert isinstance(prefill, InferenceScaler)
    assert isinstance(decode, InferenceScaler)
    assert (prefill.spec.engine, decode.spec.engine) == (EngineName.TENSORRT_LLM, EngineName.VLLM)
    assert prefill.spec.scale_target_ref != decode.spec.scale_target_ref
    assert prefill.spec.objectives is not None
    assert decode.spec.objectives is not None
    assert prefill.spec.objectives.time_to_first_token_seconds < decode.spec.objectives.time_to_first_token_seconds
    assert prefill.spec.objectives.inter_token_latency_seconds > decode.spec.objectives.inter_token_latency_seconds
