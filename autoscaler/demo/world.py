"""Which fleet does the demo run, under which load? Two pools, recorded traffic, one seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources

import numpy as np
import yaml

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.observers.metrics import PoolKey
from autoscaler.replay.arrivals import arrivals, drawn_arrivals
from autoscaler.replay.cold_start import NEW_NODE, WARM_NODE
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_pool import PoolSetup
from autoscaler.replay.trace import BinnedTrace, RequestTrace, scale_requests, shipped_trace

# A Monday shortly before the assistants' users begin to work.
STARTS_AT_SECONDS = datetime(2026, 1, 5, 7, 35, tzinfo=UTC).timestamp()
SECONDS_OF_DAY = 7 * 3600 + 35 * 60

ABOUT = (
    "In simulation: this controller is the real one; its cluster and its Prometheus are not. chat-8b serves the Azure "
    "conversation trace of 2023 (CC-BY-4.0) ten times over on simulated A100 replicas; assistant-70b a working day of "
    "a ServeGen client (Apache-2.0) on pairs of H100. Objectives: first token within 1 s, 50 ms a token."
)
OBJECTIVES = LatencyObjectives(time_to_first_token_seconds=1.0, inter_token_latency_seconds=0.05)
CHAT_SCALE = 10.0
ASSISTANT_SCALE = 6.0


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """The policies, and the fleet that they are applied to."""

    scalers: tuple[InferenceScaler, ...]
    fleet: SimulatedFleet

    def columns(self, key: PoolKey) -> Mapping[str, float | None]:
        """What only a simulation knows exactly: how many of the last two minutes' requests met the objectives."""
        return {"metShare": self.fleet.pools[key].outcomes.recent_met_share}


def build_world(seed: int) -> DemoWorld:
    """The same seed gives the same day."""
    scalers = read_policies()
    chat, assistant = scalers
    generator = np.random.default_rng(seed)
    conversation, client = shipped_trace("azure_conversation_2023"), shipped_trace("servegen_client_10min")
    if not isinstance(conversation, RequestTrace) or not isinstance(client, BinnedTrace):
        raise TypeError("the package's traces are not of the kinds that the demo is made for")
    chat_requests = arrivals(scale_requests(conversation, generator, CHAT_SCALE), STARTS_AT_SECONDS, repeats=True)
    assistant_requests = drawn_arrivals(
        client, np.random.default_rng([seed, 1]), ASSISTANT_SCALE, STARTS_AT_SECONDS, SECONDS_OF_DAY
    )
    chat_setup = PoolSetup(
        namespace=chat.namespace,
        name=chat.name,
        target_name=chat.spec.first_target_ref.name,
        engine=chat.spec.engine.value,
        profile=built_in_profile("llama-3.1-8b-bf16-1xa100-vllm"),
        cold_start=WARM_NODE,
        objectives=OBJECTIVES,
        initial_replicas=8,
    )
    assistant_setup = PoolSetup(
        namespace=assistant.namespace,
        name=assistant.name,
        target_name=assistant.spec.first_target_ref.name,
        engine=assistant.spec.engine.value,
        profile=built_in_profile("llama-3.3-70b-fp8-2xh100-vllm"),
        cold_start=NEW_NODE,
        objectives=OBJECTIVES,
        initial_replicas=3,
    )
    pools = [(chat_setup, chat_requests), (assistant_setup, assistant_requests)]
    return DemoWorld(scalers, SimulatedFleet(pools, STARTS_AT_SECONDS, seed))


def read_policies() -> tuple[InferenceScaler, ...]:
    """The policies of the package, in the order in which they stand in the file."""
    source = resources.files("autoscaler.demo") / "policies.yaml"
    parsed = [parse_inference_scaler(d) for d in yaml.safe_load_all(source.read_text(encoding="utf-8"))]
    scalers = tuple(scaler for scaler in parsed if isinstance(scaler, InferenceScaler))
    if len(scalers) != len(parsed):
        raise ValueError(f"the demo's own policies are not accepted: {parsed}")
    return scalers
