"""How is a story played? The production reconciler on a simulated pool, in simulated time; every decision is kept."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.faults import Fault
from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.result import PoolResult
from autoscaler.replay.routers import RouterName
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_pool import PoolSetup

STARTS_AT_SECONDS = 1_800_000_000.0
# A replica of this profile serves two such requests a second within the objectives.
PROFILE = "llama-3.3-70b-fp8-2xh100-vllm"
PROMPT_TOKENS, ANSWER_TOKENS = 2000, 300
REQUESTS_PER_REPLICA = 2.0
TOKENS_PER_REPLICA = REQUESTS_PER_REPLICA * (PROMPT_TOKENS + ANSWER_TOKENS)
OBJECTIVES = LatencyObjectives(time_to_first_token_seconds=2.0, inter_token_latency_seconds=0.05)
COLD_START_SECONDS = 120.0

POLICY: Mapping[str, Any] = {
    "mode": "Scale",
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm-chat"},
    "minReplicas": 2,
    "maxReplicas": 24,
    "signals": {
        "tokenRate": {"perReplicaPerSecond": TOKENS_PER_REPLICA},
        "tokensInFlight": {},
        "kvCache": {},
    },
    "coldStart": {"priorSeconds": int(COLD_START_SECONDS)},
}


@dataclass(frozen=True)
class Story:
    """What happens to a pool. `load` is (minute, replicas' worth of requests): straight lines between the points."""

    name: str
    says: str
    load: Sequence[tuple[float, float]]
    first_replicas: int = 4
    policy: Mapping[str, Any] = field(default_factory=dict)
    faults: Sequence[Fault] = ()
    cold_start_seconds: float = COLD_START_SECONDS
    router: RouterName = RouterName.LEAST_LOADED
    engine: str = "vllm"

    @property
    def minutes(self) -> float:
        """How long it lasts."""
        return self.load[-1][0]

    def load_at(self, minute: float) -> float:
        """Replicas' worth of requests that arrive in this minute."""
        for (begins, before), (ends, after) in pairwise(self.load):
            if begins <= minute < ends:
                return before + (after - before) * (minute - begins) / (ends - begins)
        return self.load[-1][1]


@dataclass(frozen=True)
class Told:
    """What came of a story: the pool's result, and every decision in order."""

    story: Story
    result: PoolResult
    decisions: tuple[Decided, ...]

    def minute_of(self, decided: Decided) -> float:
        """Minutes since the start."""
        return (decided.now_seconds - STARTS_AT_SECONDS) / 60.0

    def counts(self, from_minute: float = 0.0, to_minute: float = 1e9) -> list[int]:
        """The desired count of each decision in between."""
        return [
            decided.decision.desired_replicas
            for decided in self.decisions
            if from_minute <= self.minute_of(decided) < to_minute
        ]


class _Notes:
    def __init__(self) -> None:
        self.decisions: list[Decided] = []

    def report(self, reports: Sequence[PoolReport]) -> None:
        self.decisions.extend(report for report in reports if isinstance(report, Decided))


def tell(story: Story, policy: Mapping[str, Any] | None = None) -> Told:
    """Plays the story, under another policy where one is given (its fields replace those of the story's)."""
    notes = _Notes()
    setup = PoolSetup(
        namespace="inference",
        name="chat",
        target_name="vllm-chat",
        engine=story.engine,
        profile=built_in_profile(PROFILE),
        cold_start=ColdStart((ColdStartPhase("engine", story.cold_start_seconds, 0.0),)),
        objectives=OBJECTIVES,
        initial_replicas=story.first_replicas,
        router=story.router,
    )
    ends_at = STARTS_AT_SECONDS + 60.0 * story.minutes
    result = replay(
        ReconciledPolicy(
            [_scaler({**POLICY, "engine": story.engine, **story.policy, **(policy or {})})], reporters=[notes]
        ),
        setup,
        _requests(story),
        ReplayRun(STARTS_AT_SECONDS, ends_at, faults=tuple(story.faults)),
    )
    return Told(story, result, tuple(notes.decisions))


def _scaler(spec: Mapping[str, Any]) -> InferenceScaler:
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"namespace": "inference", "name": "chat", "uid": "1", "generation": 1},
            "spec": spec,
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def _requests(story: Story) -> Iterator[Request]:
    """Requests at the story's rate, each a little earlier or later and a little longer or shorter than the mean."""
    draw = random.Random(1)
    due, moment, step = 0.0, 0.0, 0.05
    while moment < 60.0 * story.minutes:
        due += story.load_at(moment / 60.0) * REQUESTS_PER_REPLICA * step
        while due >= 1.0:
            due -= draw.uniform(0.5, 1.5)
            prompt = draw.randint(PROMPT_TOKENS // 2, PROMPT_TOKENS * 3 // 2)
            answer = draw.randint(ANSWER_TOKENS // 2, ANSWER_TOKENS * 3 // 2)
            yield Request(STARTS_AT_SECONDS + moment, prompt, answer, 0)
        moment += step
