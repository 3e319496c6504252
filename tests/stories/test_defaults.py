"""What does each default protect from? A story is played as it is, and with one rule taken out: then it goes wrong.

Where the policy can say so, the rule is taken out by the policy; else by its constant or its place in the table of
limits, for that one run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import pytest

from autoscaler.observers import pod_memory, pool_signals, steady_lag
from autoscaler.observers.pod_memory import Good, PodMemory, ScrapeInterval
from autoscaler.observers.standstills import Standing, Standstills
from autoscaler.replay import simulated_metrics
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.faults import OtherColdStart, PrometheusOutage, UnscrapedReplicas
from policies import cold_start, decision, sight
from policies.capacity import utilization
from policies.constraints import activation, missing_data, stabilization, stuck_replicas
from policies.constraints.constraint import Limited
from policies.reasons import Reason
from policies.recommenders import tokens_in_flight
from policies.situation import Situation
from tests.stories.script import ending
from tests.stories.staging import TOKENS_PER_REPLICA, Story, Told, tell
from tests.stories.stories import STORIES

WRITTEN = {story.name: story for story in STORIES}


def waves(minutes: float, low: float, high: float, number: int) -> tuple[tuple[float, float], ...]:
    """A load that goes up and down between two values, so many minutes a way."""
    return tuple((minutes * place, high if place % 2 else low) for place in range(number + 1))


def requests_every(minutes: float, number: int) -> tuple[tuple[float, float], ...]:
    """One minute of a little load at a time, nothing between."""
    points: list[tuple[float, float]] = []
    for place in range(number):
        begin = minutes * place
        points += [(begin, 0.0), (begin + 0.02, 0.6), (begin + 1, 0.6), (begin + 1.02, 0.0)]
    return (*points, (minutes * number, 0.0))


STEP, WEDGED = WRITTEN["step"], WRITTEN["wedged-replica"]
LATE, UNSEEN = WRITTEN["metrics-lag"], WRITTEN["unknown-replicas"]
SWING = Story("swing", "", waves(4, 3, 6, 12))
TIDE = Story("tide", "", waves(10, 4.75, 5.05, 8), first_replicas=5)
SLOW_WAVES = Story(
    "slow-waves",
    "",
    waves(6, 3, 7, 14),
    first_replicas=8,
    cold_start_seconds=600.0,
    policy={"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}},
)
MOSTLY_UNSEEN = Story(
    "mostly-unseen",
    "",
    ((0, 8), (20, 8), (35, 5), (70, 5)),
    first_replicas=10,
    faults=(UnscrapedReplicas(at_seconds=600.0, share=0.6, lasts_seconds=3000.0),),
)
FALLBACK = {"fallback": {"replicas": 12}}
NOW_AND_THEN = Story(
    "prometheus-now-and-then",
    "",
    ((0, 4), (10, 4), (12, 9), (40, 9)),
    first_replicas=5,
    policy={"missingData": FALLBACK},
    faults=tuple(PrometheusOutage(at_seconds=60.0 * minute, lasts_seconds=100.0) for minute in range(9, 39, 2)),
)
RESTARTS = Story(
    "prometheus-restarts",
    "",
    ((0, 4), (45, 4)),
    first_replicas=5,
    policy={"missingData": FALLBACK},
    faults=tuple(PrometheusOutage(at_seconds=60.0 * minute, lasts_seconds=60.0) for minute in range(10, 41, 10)),
)
BAD_NODE = Story(
    "bad-node",
    "",
    ((0, 3), (10, 3), (10.1, 6), (45, 6)),
    faults=(OtherColdStart(600.0, ColdStart((ColdStartPhase("engine", 36_000.0, 0.0),)), lasts_seconds=120.0),),
)
SPARSE = Story(
    "sparse",
    "",
    requests_every(8, 6),
    first_replicas=1,
    policy={
        "minReplicas": 0,
        "signals": {
            "tokenRate": {"perReplicaPerSecond": TOKENS_PER_REPLICA},
            "tokensInFlight": {},
            "pendingRequests": {"query": "sum(gateway_pending_requests)", "perReplica": 16},
        },
    },
)
LEARNING = Story(
    "learning",
    "",
    waves(30, 3, 6, 4),
    policy={"objectives": {}, "signals": {"tokensInFlight": {}, "kvCache": {}}},
    engine="sglang",
)
ALIKE = replace(LEARNING, name="alike", engine="vllm")

SHARED = {story.name: story for story in (STEP, LATE, BAD_NODE)}

TakeOut = Callable[[pytest.MonkeyPatch], None]


def constant(module: object, name: str, value: object) -> TakeOut:
    return lambda monkeypatch: monkeypatch.setattr(module, name, value)


def limit(name: str) -> TakeOut:
    """Lets every count pass the limit."""

    def passing(situation: Situation, replicas: int) -> Limited:
        return Limited(replicas, Reason.NOT_LIMITED, "")

    def take_out(monkeypatch: pytest.MonkeyPatch) -> None:
        for table in ("STEPS", "STEPS_WITH_STUCK_REPLICAS"):
            monkeypatch.setattr(decision, table, {**getattr(decision, table), name: passing})

    return take_out


def by_age(memory: PodMemory, interval: ScrapeInterval, now_seconds: float) -> Good:
    age_seconds = now_seconds - memory.sampled_at_seconds
    return Good(age_seconds, is_held=age_seconds > pod_memory.MISSED_INTERVALS * interval.seconds)


def no_trim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utilization, "GROWTH_PER_MINUTE", 0.0)
    monkeypatch.setattr(utilization, "CUT_FACTOR", 0.0)


def behavior(direction: str, **rules: Any) -> Mapping[str, Any]:
    return {"behavior": {direction: rules}}


def signals(**votes: Any) -> Mapping[str, Any]:
    return {"signals": votes}


def attainment(told: Told) -> float:
    assert told.result.attainment is not None
    return 100.0 * told.result.attainment


def hours(told: Told) -> float:
    return told.result.replica_hours


def reversals(told: Told) -> int:
    return told.result.reversals


@dataclass(frozen=True)
class Default:
    """A rule, the story it is for, the story without it, and what shows that this one goes wrong."""

    story: Story
    goes_wrong: Callable[[Told, Told], bool]  # (with the rule, without it)
    policy: Mapping[str, Any] = field(default_factory=dict)
    take_out: TakeOut = lambda monkeypatch: None
    also: Mapping[str, Any] = field(default_factory=dict)  # in the policy of both


DEFAULTS = (
    pytest.param(
        Default(
            SWING,
            lambda kept, out: (
                reversals(out) > reversals(kept) and len(out.result.changes) > 2 * len(kept.result.changes)
            ),
            take_out=constant(stabilization, "scale_down_window_seconds", lambda decision_input: 0.0),
        ),
        id="the scale-down window of 300 s: without it the count follows every wave",
    ),
    pytest.param(
        Default(
            SLOW_WAVES,
            lambda kept, out: attainment(kept) > 95.0 and attainment(out) < attainment(kept) - 10.0,
            take_out=constant(
                stabilization,
                "scale_down_window_seconds",
                lambda seen: float(seen.parameters.behavior.scale_down.stabilization_window_seconds),
            ),
        ),
        id="the window is at least a cold start: without that, what is given up is needed before it can be back",
    ),
    pytest.param(
        Default(
            TIDE,
            lambda kept, out: reversals(kept) <= 1 and reversals(out) >= 5,
            policy={"behavior": {"scaleUp": {"tolerance": 0}, "scaleDown": {"tolerance": 0}}},
        ),
        id="the tolerance of 5 % up and 10 % down: without it a slow tide moves a replica in and out",
    ),
    pytest.param(
        Default(
            STEP,
            lambda kept, out: attainment(out) < attainment(kept) - 10.0,
            policy=behavior("scaleUp", stabilizationWindowSeconds=300),
        ),
        id="no scale-up window: with one of 300 s a step waits for nothing",
    ),
    pytest.param(
        Default(
            STEP,
            lambda kept, out: attainment(out) < attainment(kept) - 2.0,
            policy=behavior("scaleUp", policies=[{"type": "Pods", "value": 1, "periodSeconds": 60}]),
        ),
        id="growth of 4 replicas or 100 % in 15 s: at one a minute a step is met late",
    ),
    pytest.param(
        Default(
            MOSTLY_UNSEEN,
            lambda kept, out: attainment(kept) > 99.0 and attainment(out) < attainment(kept) - 5.0,
            take_out=limit("missingData"),
        ),
        id="missing data never lowers: without that the unseen replicas' load is given up with them",
    ),
    pytest.param(
        Default(
            UNSEEN,
            lambda kept, out: hours(out) > hours(kept) + 1.0 and attainment(kept) > attainment(out) - 0.5,
            take_out=constant(missing_data, "LOW_COVERAGE_BLOCK_SECONDS", math.inf),
        ),
        id="the block of 900 s ends: without an end every peak stays for as long as the gap",
    ),
    pytest.param(
        Default(
            NOW_AND_THEN,
            lambda kept, out: max(kept.counts()) == 12 and attainment(out) < attainment(kept) - 2.0,
            take_out=constant(sight, "GOOD_READINGS_TO_RECOVER", 1),
        ),
        id="three good readings: with one, a Prometheus that answers now and then never brings the fallback",
    ),
    pytest.param(
        Default(
            RESTARTS,
            lambda kept, out: max(kept.counts()) == 5 and max(out.counts()) == 12 and hours(out) > 1.5 * hours(kept),
            policy={"missingData": {**FALLBACK, "holdSeconds": 0}},
        ),
        id="120 s before the fallback: without them every restart of Prometheus brings it",
    ),
    pytest.param(
        Default(
            LATE,
            lambda kept, out: attainment(out) < attainment(kept) - 5.0,
            take_out=constant(pool_signals, "judge", by_age),
        ),
        id="a sample is fresh by its coming, not its age: else metrics that are always late are no metrics",
    ),
    pytest.param(
        Default(
            LATE,
            lambda kept, out: kept.result.scale_downs > 0 and out.result.scale_downs == 0,
            take_out=constant(steady_lag, "LEAST_LAG_SECONDS", math.inf),
        ),
        id="a rate's window ends where the samples do: else late rates are unknown and nothing ever shrinks",
    ),
    pytest.param(
        Default(
            WEDGED,
            lambda kept, out: min(kept.counts()) == 2 and min(out.counts()) == 1 and hours(out) > 1.5 * hours(kept),
            take_out=constant(Standstills, "look", lambda standstills, replicas, now_seconds: Standing()),
        ),
        id="a wedged replica is no supply: else it is the last one kept, and what waits there orders a fleet",
    ),
    pytest.param(
        Default(
            BAD_NODE,
            lambda kept, out: attainment(out) < attainment(kept) - 3.0,
            take_out=constant(cold_start, "SHORTEST_START_LIMIT_SECONDS", math.inf),
        ),
        id="a start of more than 300 s is stuck: else the pool waits for replicas that never come",
    ),
    pytest.param(
        Default(
            BAD_NODE,
            lambda kept, out: attainment(out) < attainment(kept) - 3.0,
            take_out=constant(stuck_replicas, "MOST_REPLACED", 0),
        ),
        id="two stuck replicas are replaced: else the pool is short of them",
    ),
    pytest.param(
        Default(
            SPARSE,
            lambda kept, out: attainment(kept) > 99.0 and attainment(out) < 75.0,
            take_out=constant(activation, "IDLE_SECONDS_BEFORE_ZERO", 0.0),
        ),
        id="600 s without requests before zero: else every pause of some minutes costs a cold start",
    ),
    pytest.param(
        Default(
            STEP,
            lambda kept, out: attainment(out) < attainment(kept) - 5.0,
            also=signals(tokenRate={"perReplicaPerSecond": 1.25 * TOKENS_PER_REPLICA}, tokensInFlight={}, kvCache={}),
            policy=signals(tokenRate={"perReplicaPerSecond": 1.25 * TOKENS_PER_REPLICA}, kvCache={}),
        ),
        id="tokens in flight beside the rate: without them a capacity that is stated 25 % too high is believed",
    ),
    pytest.param(
        Default(
            STEP,
            lambda kept, out: attainment(out) < attainment(kept) - 2.0,
            take_out=constant(tokens_in_flight, "SAFE_SHARE_OF_CAPACITY", 1.0),
            also=signals(tokenRate={"perReplicaPerSecond": 1.25 * TOKENS_PER_REPLICA}, tokensInFlight={}, kvCache={}),
        ),
        id="half of the KV cache is a replica's share: at all of it tokens in flight see a wrong capacity too late",
    ),
    pytest.param(
        Default(
            STEP,
            lambda kept, out: attainment(out) < attainment(kept) - 5.0 and hours(out) > hours(kept),
            policy=signals(tokensInFlight={}, kvCache={}),
        ),
        id="a rate beside tokens in flight: these alone are small while all is well, and lower too far",
    ),
    pytest.param(
        Default(
            LEARNING,
            lambda kept, out: hours(out) > 1.2 * hours(kept) and attainment(kept) > 99.5,
            take_out=no_trim,
        ),
        id="the safe utilisation is trimmed: an engine that tells no lengths pays for a quarter more without",
    ),
    pytest.param(
        Default(
            ALIKE,
            lambda kept, out: hours(out) > 1.1 * hours(kept) and attainment(kept) > 99.5,
            take_out=constant(simulated_metrics, "tells_lengths", lambda engine: False),
        ),
        id="how much requests differ in length is read: taken as usual, those that are alike cost a tenth more",
    ),
)


@cache
def as_it_is(name: str) -> Told:
    """A story that several rows share is played once."""
    return tell(SHARED[name])


@pytest.mark.parametrize("default", DEFAULTS)
def test_without_it_the_story_goes_wrong(default: Default, monkeypatch: pytest.MonkeyPatch) -> None:
    is_shared = default.story.name in SHARED and not default.also
    kept = as_it_is(default.story.name) if is_shared else tell(default.story, default.also)
    default.take_out(monkeypatch)
    out = tell(default.story, {**default.also, **default.policy})
    assert default.goes_wrong(kept, out), f"\nwith:    {ending(kept)}\nwithout: {ending(out)}"
