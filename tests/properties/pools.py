"""Pools of every kind: policies, what their replicas do, what is remembered of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision_input import DecisionInput
from policies.history import ScaleEvent, ScalingHistory, TimedRecommendation
from policies.observation import MetricsObservation, PoolLatency, QueryUnknown, QueryValue, ReplicaCounts
from policies.parameters import ScalingParameters
from policies.signals import PoolSignal, Sample, Signal, Unknown, over_replicas
from tests.builders import CAPACITY_TOKENS, NOW, a_policy

TOKENS_PER_REPLICA = CAPACITY_TOKENS / 2
RATE_PER_REPLICA = 5000.0
WAITING_PER_REPLICA = 4.0
PENDING_PER_REPLICA = 3.0
# One request a second, of 2000 and 300 tokens, is a replica's safe share of work.
CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=2000.0 / 0.35,
    decode_tokens_per_second=300.0 / 0.35,
    tokens_in_flight=CAPACITY_TOKENS,
    safe_utilization=0.70,
)
TOKENS_PER_REQUEST = 2150.0


@dataclass(frozen=True)
class Load:
    """What one replica does, as shares of what it should do: 1 is its full share of each kind of load."""

    kv_usage: float
    tokens: float
    waiting: float
    rate: float
    is_seen: bool = True
    is_aged: bool = False

    def times(self, factor: float) -> Load:
        """The same kind of load, more or less of it. A KV cache does not hold more than it can."""
        return replace(
            self,
            kv_usage=min(1.0, self.kv_usage * factor),
            tokens=self.tokens * factor,
            waiting=self.waiting * factor,
            rate=self.rate * factor,
        )


def observe(loads: tuple[Load, ...], queries: Mapping[str, float | None]) -> MetricsObservation:
    """What Prometheus says of replicas with these loads, and of the user's queries (None: no answer)."""

    def signal(values: list[float]) -> PoolSignal:
        return over_replicas(
            Sample(value, 60.0 if load.is_aged else 5.0, load.is_aged) if load.is_seen else Unknown("no sample")
            for load, value in zip(loads, values, strict=True)
        )

    return MetricsObservation(
        signals={
            Signal.RUNNING_REQUESTS: signal([load.tokens * 10 for load in loads]),
            Signal.WAITING_REQUESTS: signal([load.waiting * WAITING_PER_REPLICA for load in loads]),
            Signal.KV_CACHE_USAGE: signal([load.kv_usage for load in loads]),
            Signal.KV_CACHE_USED_TOKENS: signal([load.tokens * TOKENS_PER_REPLICA for load in loads]),
            Signal.KV_CACHE_CAPACITY_TOKENS: signal([CAPACITY_TOKENS for _ in loads]),
            Signal.PROMPT_TOKENS: signal([load.rate * RATE_PER_REPLICA * 0.75 for load in loads]),
            Signal.GENERATION_TOKENS: signal([load.rate * RATE_PER_REPLICA * 0.25 for load in loads]),
            Signal.REQUESTS_FINISHED: signal([load.rate for load in loads]),
            Signal.REQUESTS_ARRIVED: signal([load.rate for load in loads]),
            Signal.REQUESTS_ARRIVED_RECENTLY: signal([load.rate for load in loads]),
        },
        queries={
            name: QueryUnknown("no answer") if value is None else QueryValue(value, 5.0)
            for name, value in queries.items()
        },
        ready_replicas=len(loads),
        fresh_replicas=sum(load.is_seen and not load.is_aged for load in loads),
        prompt_tokens_per_request=2000.0,
        generation_tokens_per_request=300.0,
        prefix_cache_hit_share=0.0,
    )


@dataclass(frozen=True)
class Pool:
    """A decision's input before it is observed, so that a law can change the load and observe it again."""

    policy: ScalingParameters
    loads: tuple[Load, ...]
    starting: int
    queries: Mapping[str, float | None]
    history: ScalingHistory
    stuck: int = 0
    outlasting: int = 0
    latency: PoolLatency = field(default_factory=PoolLatency)
    capacity: LearnedCapacity | None = None
    unsteady: float = 0.0  # what replicas that are not ready hold of each kind of load, as the share of one

    @property
    def current(self) -> int:
        return len(self.loads) + self.starting + self.stuck

    def decision_input(self) -> DecisionInput:
        ready = len(self.loads)
        counts = ReplicaCounts(
            self.current,
            self.current,
            ready,
            starting=self.starting,
            stuck=self.stuck,
            outlasting=min(self.outlasting, self.stuck),
        )
        metrics = observe(self.loads, self.queries)
        held = observe((Load(*[self.unsteady] * 4),), {}).signals
        signals = {name: replace(each, unsteady_total=held[name].total) for name, each in metrics.signals.items()}
        metrics = replace(metrics, signals=signals, latency=self.latency, unsteady_replicas=int(self.unsteady > 0.0))
        return DecisionInput(NOW, self.policy, counts, metrics, self.history, learned_capacity=self.capacity)

    def busier(self, factor: float) -> Pool:
        queries = {name: None if value is None else value * factor for name, value in self.queries.items()}
        return replace(self, loads=tuple(load.times(factor) for load in self.loads), queries=queries)


SIGNALS: dict[str, Any] = {
    "tokensInFlight": st.sampled_from([{}, {"perReplica": TOKENS_PER_REPLICA}]),
    "tokenRate": st.just({"perReplicaPerSecond": RATE_PER_REPLICA}),
    "kvCache": st.sampled_from([{"headroomPercent": 0}, {"headroomPercent": 15}]),
    "waitingRequests": st.just({"perReplica": WAITING_PER_REPLICA}),
    "interTokenLatencyDivergence": st.just({}),
    "pendingRequests": st.just({"query": "q", "perReplica": PENDING_PER_REPLICA}),
    "custom": st.just([{"name": "depth", "query": "q", "perReplica": 2.0}]),
}
ALWAYS = {"name": "always", "start": "* * * * *", "end": "0 0 29 2 *"}

rates = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Pods", "Percent"]),
            "value": st.integers(1, 200),
            "periodSeconds": st.sampled_from([15, 60, 300]),
        }
    ),
    min_size=1,
    max_size=2,
)
directions = st.fixed_dictionaries(
    {},
    optional={
        "stabilizationWindowSeconds": st.sampled_from([0, 60, 300, 900]),
        "selectPolicy": st.sampled_from(["Max", "Min", "Disabled"]),
        "policies": rates,
        "tolerance": st.sampled_from([0.0, 0.05, 0.2]),
    },
)


@st.composite
def policies(draw: st.DrawFn) -> ScalingParameters:
    minimum = draw(st.integers(0, 8))
    maximum = draw(st.integers(max(minimum, 1), 40))
    signals = draw(st.fixed_dictionaries({}, optional=SIGNALS))
    schedules = draw(st.sampled_from([[], [{**ALWAYS, "minReplicas": minimum}]]))
    if minimum == 0 and not schedules:
        signals = {**signals, "pendingRequests": {"query": "q", "perReplica": PENDING_PER_REPLICA}}
    return a_policy(
        mode=draw(st.sampled_from(["DryRun", "ScaleUpOnly", "Scale"])),
        minReplicas=minimum,
        maxReplicas=maximum,
        signals=signals,
        behavior={"scaleUp": draw(directions), "scaleDown": draw(directions)},
        schedules=schedules,
        missingData={
            "holdSeconds": draw(st.sampled_from([0, 120])),
            "fallback": draw(st.one_of(st.none(), st.fixed_dictionaries({"replicas": st.integers(0, maximum)}))),
        },
        coldStart={"priorSeconds": draw(st.sampled_from([1, 300]))},
        objectives=draw(st.sampled_from([None, {}])),
    )


shares = st.one_of(st.just(0.0), st.floats(0.0, 1.0), st.just(1.0))
loads = st.builds(
    Load,
    kv_usage=shares,
    tokens=shares,
    waiting=shares,
    rate=shares,
    is_seen=st.sampled_from([True, True, True, False]),
    is_aged=st.sampled_from([False, False, False, True]),
)
ages = st.floats(0.0, 2000.0)


@st.composite
def histories(draw: st.DrawFn) -> ScalingHistory:
    recommended = sorted(draw(st.lists(st.tuples(ages, st.integers(0, 40)), max_size=5)), reverse=True)
    rescaled = draw(st.lists(st.tuples(ages, st.integers(-9, 9).filter(bool)), max_size=4))
    optional_times = st.one_of(st.none(), ages.map(lambda age: NOW - age))
    return ScalingHistory(
        complete_since_seconds=NOW - draw(st.one_of(st.just(100_000.0), ages)),
        recommendations=tuple(TimedRecommendation(NOW - age, replicas) for age, replicas in recommended),
        scale_events=tuple(ScaleEvent(NOW - age, change) for age, change in rescaled),
        last_desired_replicas=draw(st.one_of(st.none(), st.integers(0, 40))),
        last_seen_replicas=draw(st.one_of(st.none(), st.integers(0, 40))),
        blind_since_seconds=draw(optional_times),
        consecutive_good_readings=draw(st.integers(0, 3)),
        is_in_fallback=draw(st.booleans()),
        low_coverage_since_seconds=draw(optional_times),
        most_missing_replicas=draw(st.integers(0, 20)),
        idle_since_seconds=draw(optional_times),
        is_scaled_to_zero=draw(st.booleans()),
        latency_measured_at_seconds=draw(optional_times),
        uneven_measurements=draw(st.integers(0, 2)),
    )


latencies = st.builds(
    lambda median, ratio, missed: PoolLatency(
        inter_token_latency_p50_seconds=median,
        inter_token_latency_p99_seconds=median * ratio,
        outside_objectives_share=missed,
        measured_at_seconds=NOW,
    ),
    median=st.sampled_from([0.01, 0.03]),
    ratio=st.floats(1.0, 30.0),
    missed=st.sampled_from([None, 0.0, 0.01, 0.5]),
)


@st.composite
def pools(draw: st.DrawFn, replica_loads: st.SearchStrategy[Load] = loads) -> Pool:
    replicas = tuple(draw(st.lists(replica_loads, max_size=25)))
    demand = st.one_of(st.none(), st.just(0.0), st.floats(0.0, 60.0))
    return Pool(
        policy=draw(policies()),
        loads=replicas,
        starting=draw(st.integers(0, 4)),
        queries={"pendingRequests": draw(demand), "custom/depth": draw(demand)},
        history=draw(histories()),
        stuck=draw(st.sampled_from([0, 0, 0, 1, 2, 5])),
        outlasting=draw(st.sampled_from([0, 1, 5])),
        latency=draw(st.one_of(st.just(PoolLatency()), latencies)),
        capacity=draw(st.sampled_from([None, CAPACITY, CAPACITY])),
        unsteady=draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])),
    )
