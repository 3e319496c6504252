"""A pool of four vLLM replicas as it is seen through Prometheus, with a fault in what Prometheus says.

Ticks and scrapes are 15 s apart. The pool is well for three minutes, then the fault begins and lasts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import FailureKind, LabelledValue, PrometheusFailure
from autoscaler.prometheus.settings import QuerySettings
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.signals import Signal
from tests.builders import NOW
from tests.fakes.query_source import FakeQuerySource

REPLICAS = 4
TICK_SECONDS = 15.0
WELL_TICKS = 12
CAPACITY_TOKENS = 4000.0
PROMPT_TOKENS, GENERATED_TOKENS = 2000.0, 300.0  # of a request

KEY = ("prod", "chat")
NAMES = [f"vllm-7d4b9c6f5-{letters}" for letters in ("bcdfg", "hjklm", "npqrs", "tvwxz")]
# How many ticks a fault has lasted when it is judged: by then a sample is held, or too old.
TICKS_UNTIL_AGED, TICKS_UNTIL_UNKNOWN = 4, 10


@dataclass(frozen=True)
class Fault:
    """What is wrong from now on: samples that stop coming, or a number that is said in place of the true one."""

    ticks: int = TICKS_UNTIL_AGED
    stops: bool = False  # the replica is not scraped any more
    is_left_out: bool = False  # the replica is scraped, and this is not on its page
    number: float | None = None


NO_FAULT = Fault()
FAULTS: Mapping[str, Fault] = {
    "aged": Fault(stops=True),
    "unknown": Fault(ticks=TICKS_UNTIL_UNKNOWN, stops=True),
    "absent": Fault(is_left_out=True),
    "NaN": Fault(number=math.nan),
    "Inf": Fault(number=math.inf),
    "zero": Fault(number=0.0),
}


@dataclass
class ObservedPool:
    """Numbers of every replica by the name of the question, and answers to the user's own PromQL by expression."""

    numbers: Mapping[str, float]
    queries: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._source = FakeQuerySource()
        self._observer = PrometheusMetricsObserver(self._source, QuerySettings())
        self._now = NOW - 1000.0
        self._sampled_at = [self._now] * REPLICAS

    def observe(self, faulty: str, fault: Fault, replicas: int) -> MetricsObservation | ObservationUnavailable:
        """The observation at NOW, after the fault has lasted at the first `replicas` replicas (or at the query)."""
        self._now = NOW - TICK_SECONDS * (WELL_TICKS + fault.ticks)
        for _ in range(WELL_TICKS):
            self._tick(faulty, NO_FAULT, 0)
        for _ in range(fault.ticks + 1):
            found = self._tick(faulty, fault, replicas)
        return found

    def _tick(self, faulty: str, fault: Fault, replicas: int) -> MetricsObservation | ObservationUnavailable:
        rows: dict[str, list[LabelledValue]] = {}
        for place in range(REPLICAS):
            self._say(rows, place, faulty, fault if place < replicas else NO_FAULT)
        rows["requestSizes"] = [
            ({"namespace": "prod", "tokenscaler_workload": "vllm", "tokenscaler_part": part}, number)
            for part, number in {
                "promptTokens": 100 * PROMPT_TOKENS,
                "prompts": 100.0,
                "generatedTokens": 100 * GENERATED_TOKENS,
                "generations": 100.0,
            }.items()
        ]
        self._source.rows, self._source.now_seconds = rows, self._now
        self._source.numbers = {
            name: number
            for name, true_number in self.queries.items()
            if (number := _number(true_number, fault if name == faulty else NO_FAULT)) is not None
        }
        self._source.failures = {}
        if faulty in self.queries and fault.stops:
            self._source.failures["user"] = PrometheusFailure(FailureKind.TIMEOUT, "no answer in time")
        pods = tuple(LivePod(name, name, True, NOW - 86_400.0) for name in NAMES)
        query = PoolQuery(KEY, "vllm", "vllm", pods, {name: name for name in self.queries})
        found = self._observer.observe_metrics([query], self._now)[KEY]
        self._now += TICK_SECONDS
        return found

    def _say(self, rows: dict[str, list[LabelledValue]], place: int, faulty: str, fault: Fault) -> None:
        if fault.stops and faulty not in self.queries:
            return  # marked stale at the first scrape that fails: its series are answered no more
        labels = {"namespace": "prod", "pod": NAMES[place]}
        rows.setdefault("sampleTime", []).append((labels, self._now))
        rows.setdefault("windowStart", []).append((labels, 1.0))
        size = {**labels, "engine": "0", "kv_cache_size_tokens": f"{CAPACITY_TOKENS:.0f}"}
        rows.setdefault(Signal.CACHE_CONFIG.value, []).append((size, 1.0))
        for name, true_number in self.numbers.items():
            number = _number(true_number, fault if name == faulty else NO_FAULT)
            if number is not None:
                extra = {"engine": "0"} if name == Signal.KV_CACHE_USAGE.value else {}
                rows.setdefault(name, []).append((labels | extra, number))


def _number(true_number: float, fault: Fault) -> float | None:
    if fault.is_left_out:
        return None
    return true_number if fault.number is None else fault.number
