"""Which signals does an engine show of each replica, how is each judged, and what is derived of others?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import EngineMetrics, MetricKind, SignalSource
from autoscaler.observers.pod_memory import PodMemory
from policies.signals import Signal

# The signals that are read of each replica's page. Histograms and what is needed only as a share of the pool are not
# among them.
PAGE_SIGNALS = (
    Signal.RUNNING_REQUESTS,
    Signal.WAITING_REQUESTS,
    Signal.KV_CACHE_USAGE,
    Signal.KV_CACHE_USED_TOKENS,
    Signal.KV_CACHE_CAPACITY_TOKENS,
    Signal.PROMPT_TOKENS,
    Signal.GENERATION_TOKENS,
    Signal.REQUESTS_FINISHED,
    Signal.PREEMPTIONS,
)

# Arrivals are what has finished and what has come to be in flight; the rate of the finished is over a minute in both.
_ARRIVED_FROM = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
_ARRIVAL_WINDOWS_SECONDS = (60.0, 30.0)
DERIVED_FROM_REQUESTS = (Signal.REQUESTS_ARRIVED, Signal.REQUESTS_ARRIVED_RECENTLY)

# All that is known of each replica, in the order of `PodMemory.values`.
REPLICA_SIGNALS = (*PAGE_SIGNALS, *DERIVED_FROM_REQUESTS)


@dataclass(frozen=True, slots=True)
class SignalRule:
    """How a signal of an engine is judged. `place` is its place in REPLICA_SIGNALS."""

    signal: Signal
    place: int
    kind: MetricKind
    is_required: bool
    appears_with_traffic: bool
    name: str


def _rules(engine: EngineMetrics) -> tuple[SignalRule, ...]:
    info = engine.signals.get(Signal.CACHE_CONFIG)
    tells_size_in_labels = info is not None and info.kind is MetricKind.INFO
    rules = []
    for place, signal in enumerate(REPLICA_SIGNALS):
        source = engine.signals.get(signal)
        if source is not None:
            rules.append(_rule(signal, place, source, source.is_required))
        elif info is not None and tells_size_in_labels and signal in DERIVED_FROM_LABELS:
            rules.append(_rule(signal, place, info, is_required=False))
        elif signal in DERIVED_FROM_REQUESTS and all(each in engine.signals for each in _ARRIVED_FROM):
            rules.append(_rule(signal, place, engine.signals[Signal.REQUESTS_FINISHED], is_required=True))
    return tuple(rules)


def take_values(pod: PodMemory, values: list[float | None]) -> None:
    """Puts a pod's newest signals into its memory, in the order of PAGE_SIGNALS, and what is derived from them."""
    running, waiting, finished = (values[place] for place in _ARRIVED_FROM_PLACES)
    if running is not None and waiting is not None:
        pod.note_in_flight(running + waiting)
    pod.values = [*values, *(_arrived(pod, finished, seconds) for seconds in _ARRIVAL_WINDOWS_SECONDS)]


def _arrived(pod: PodMemory, finished_per_second: float | None, window_seconds: float) -> float | None:
    """Requests per second; a process that began anew has lost those in flight, which is no negative arrival."""
    growth = pod.in_flight_growth_per_second(window_seconds)
    if finished_per_second is None or growth is None:
        return None
    return max(0.0, finished_per_second + growth) if finished_per_second == finished_per_second else math.nan


_ARRIVED_FROM_PLACES = tuple(REPLICA_SIGNALS.index(signal) for signal in _ARRIVED_FROM)


def _rule(signal: Signal, place: int, source: SignalSource, is_required: bool) -> SignalRule:
    return SignalRule(signal, place, source.kind, is_required, source.appears_with_traffic, source.metrics[0].name)


# Computed from the usage and the cache's size where the engine does not count tokens itself.
DERIVED_FROM_LABELS = (Signal.KV_CACHE_USED_TOKENS, Signal.KV_CACHE_CAPACITY_TOKENS)

RULES: Mapping[str, tuple[SignalRule, ...]] = {name: _rules(engine) for name, engine in ENGINES.items()}
RULES_BY_SIGNAL: Mapping[str, Mapping[Signal, SignalRule]] = {
    name: {rule.signal: rule for rule in rules} for name, rules in RULES.items()
}
_SIGNALS: Mapping[str, tuple[Signal, ...]] = {
    name: tuple(rule.signal for rule in rules) for name, rules in RULES.items()
}
# Those that appear on a page only when the first request has come.
LAZY_PLACES: Mapping[str, tuple[int, ...]] = {
    name: tuple(rule.place for rule in rules if rule.appears_with_traffic) for name, rules in RULES.items()
}


def has_replica_signals(engine: str) -> bool:
    """Whether the engine (a key of ENGINES) exposes anything on its replicas."""
    return bool(RULES[engine])


def replica_signals(engine: str) -> tuple[Signal, ...]:
    """The signals that are known of each replica of an engine (a key of ENGINES), derived ones too."""
    return _SIGNALS[engine]
