"""From what is remembered of each pod's page to one reading a replica and one signal a pool."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import MetricKind
from autoscaler.observers.pod_memory import (
    IN_FLIGHT_KEPT_SECONDS,
    MISSED_INTERVALS,
    Good,
    PodMemory,
    ScrapeInterval,
    judge,
)
from autoscaler.observers.replica_signals import (
    DERIVED_FROM_LABELS,
    DERIVED_FROM_REQUESTS,
    LAZY_PLACES,
    REPLICA_SIGNALS,
    RULES,
    RULES_BY_SIGNAL,
    SignalRule,
)
from autoscaler.observers.standstills import TOKENS_BY_REQUEST, TOKENS_BY_STEP, Progress, Standstills
from autoscaler.observers.workload import LivePod
from policies.signals import PoolSignal, Sample, Signal, Unknown, over_replicas

# How long it may take until a new pod is scraped for the first time: discovery, then up to one interval.
LEAST_DISCOVERY_SECONDS = 30.0

Reading: TypeAlias = Sample | Unknown


@dataclass(frozen=True, slots=True)
class TickTrouble:
    """What went wrong with this tick's answers.

    `failed`: the signal is unknown of everybody. `partial`: it may be missing of some. With `pages_are_unknown` the
    sample times are missing in whole or part, so a replica without one may well have been scraped.
    """

    failed: Mapping[Signal, str] = field(default_factory=dict)
    partial: frozenset[Signal] = frozenset()
    pages_are_unknown: bool = False
    rate_window_seconds: float = 60.0


@dataclass(slots=True)
class PoolMemory:
    """What is remembered of a pool: its scrape interval, which signals it has shown, and which replicas stand still."""

    engine: str
    interval: ScrapeInterval = field(default_factory=ScrapeInterval)
    seen: set[Signal] = field(default_factory=set)
    standstills: Standstills = field(init=False)

    def __post_init__(self) -> None:
        by_step = ENGINES[self.engine].counts_tokens_by_step
        self.standstills = Standstills(TOKENS_BY_STEP if by_step else TOKENS_BY_REQUEST)


@dataclass(frozen=True, slots=True)
class PoolReading:
    """The signals of a pool; those it does not expose are not in it.

    They are over the ready replicas without the wedged ones, whose names are given. `unsteady` replicas have requests
    and are not ready, or stand still.
    """

    signals: dict[Signal, PoolSignal]
    ready_replicas: int
    fresh_replicas: int
    warnings: tuple[str, ...]
    wedged: tuple[str, ...] = ()
    unsteady: int = 0


@dataclass(frozen=True, slots=True)
class _Replica:
    """A replica: the pods of it that export a page, and how good their samples are together."""

    name: str
    is_ready: bool
    pods: tuple[PodMemory, ...]
    state: Good | Unknown
    ready_since_seconds: float

    @property
    def is_fresh(self) -> bool:
        """Whether its newest samples have just come."""
        return isinstance(self.state, Good) and not self.state.is_held


def read_pool(
    memory: PoolMemory,
    pods: Sequence[tuple[LivePod, PodMemory | None]],
    trouble: TickTrouble,
    now_seconds: float,
) -> PoolReading:
    """One reading of each signal for each ready replica, added up over the pool.

    A replica is ready when all its pods are. Of its pods all, or only a leader, may export a page; a pod that did and
    does no longer makes the whole replica unknown. One that became ready a moment ago and has not been scraped yet is
    not counted at all: it is no missing data, and holds next to nothing. `now_seconds` is Prometheus' clock.
    What unready replicas do is added up apart, as far as their pages tell it, and so is what stands still.
    """
    seen = _seen_replicas(pods, memory.interval, trouble, now_seconds)
    ready = [replica for replica in seen if replica.is_ready]
    rules = RULES[memory.engine]
    if not rules:
        # Nothing is to be read of a replica, so nothing is missing.
        return PoolReading({}, len(ready), len(ready), ())
    standing = memory.standstills.look(_progress(memory.engine, ready, now_seconds), now_seconds)
    replicas = [each for each in ready if each.name not in standing.still | standing.wedged]
    unsteady = [each for each in seen if each.is_fresh and (not each.is_ready or each.name in standing.still)]
    signals: dict[Signal, PoolSignal] = {}
    warnings: list[str] = []
    for rule in rules:
        readings = _readings(memory, rule, replicas, trouble, now_seconds, warnings)
        if readings is not None:
            signals[rule.signal] = over_replicas(readings, _total(memory.engine, rule, unsteady) if unsteady else 0.0)
    return PoolReading(
        signals,
        len(replicas),
        sum(replica.is_fresh for replica in replicas),
        tuple(warnings),
        tuple(sorted(standing.wedged)),
        sum(_has_requests(memory.engine, each) for each in unsteady),
    )


def _progress(engine: str, replicas: Sequence[_Replica], now_seconds: float) -> list[Progress]:
    """What each replica does and, of one that does nothing, holds; where samples are not fresh, nothing is known."""
    rules = RULES_BY_SIGNAL[engine]
    done = [rules[signal] for signal in (Signal.GENERATION_TOKENS, Signal.REQUESTS_FINISHED) if signal in rules]
    found = []
    for replica in replicas:
        done_per_second = _sum(engine, done, replica) if replica.is_fresh else None
        held = sum(pod.held_throughout() for pod in replica.pods) if done_per_second == 0 else 0.0
        is_presumed = (
            done_per_second == 0
            and now_seconds - replica.ready_since_seconds > IN_FLIGHT_KEPT_SECONDS
            and any(pod.has_requests and not pod.was_watched for pod in replica.pods)
        )
        found.append(Progress(replica.name, held, done_per_second, is_presumed))
    return found


def _has_requests(engine: str, replica: _Replica) -> bool:
    rules = RULES_BY_SIGNAL[engine]
    held = [rules[signal] for signal in (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS) if signal in rules]
    return bool(_sum(engine, held, replica))


def _sum(engine: str, rules: Sequence[SignalRule], replica: _Replica) -> float | None:
    """The sum of what the page says; None where it says nothing, or one of it is no number."""
    values = [value for rule in rules if (value := _value(engine, rule, replica.pods)) is not None]
    return sum(values) if values and all(math.isfinite(value) for value in values) else None


def _total(engine: str, rule: SignalRule, replicas: Sequence[_Replica]) -> float:
    values = [_value(engine, rule, replica.pods) for replica in replicas]
    return sum(value for value in values if value is not None and math.isfinite(value) and value > 0)


def _seen_replicas(
    pods: Sequence[tuple[LivePod, PodMemory | None]],
    interval: ScrapeInterval,
    trouble: TickTrouble,
    now_seconds: float,
) -> list[_Replica]:
    ready: dict[str, bool] = {}
    ready_since_seconds: dict[str, float] = {}
    pages: dict[str, list[PodMemory]] = {}
    for pod, page in pods:
        name = pod.replica
        ready[name] = pod.is_ready and ready.get(name, True)
        ready_since_seconds[name] = max(pod.ready_since_seconds or 0.0, ready_since_seconds.get(name, 0.0))
        if page is not None:
            pages.setdefault(name, []).append(page)
    oldest_new = now_seconds - max(LEAST_DISCOVERY_SECONDS, MISSED_INTERVALS * interval.seconds + 10.0)
    return [
        _replica(name, is_ready, pages.get(name, ()), interval, ready_since_seconds[name], now_seconds)
        for name, is_ready in ready.items()
        if name in pages or (is_ready and (trouble.pages_are_unknown or ready_since_seconds[name] <= oldest_new))
    ]


_NEVER_SEEN = Unknown("no sample of it has been seen")


def _replica(
    name: str,
    is_ready: bool,
    pages: Sequence[PodMemory],
    interval: ScrapeInterval,
    ready_since_seconds: float,
    now_seconds: float,
) -> _Replica:
    return _Replica(name, is_ready, tuple(pages), _state(pages, interval, now_seconds), ready_since_seconds)


def _state(pages: Sequence[PodMemory], interval: ScrapeInterval, now_seconds: float) -> Good | Unknown:
    """How good the samples of a replica's pods are together: as good as the worst of them."""
    if not pages:
        return _NEVER_SEEN
    states = [judge(page, interval, now_seconds) for page in pages]
    if len(states) == 1:
        return states[0]
    good: list[Good] = []
    for state in states:
        if isinstance(state, Unknown):
            return state
        good.append(state)
    return Good(max(state.age_seconds for state in good), any(state.is_held for state in good))


def _readings(
    memory: PoolMemory,
    rule: SignalRule,
    replicas: Sequence[_Replica],
    trouble: TickTrouble,
    now_seconds: float,
    warnings: list[str],
) -> list[Reading] | None:
    """A reading a replica, or None where the signal is absent: optional, on no page, and never seen before.

    What was not looked for is not absent: neither where its query has failed nor where there is no page to look at.
    """
    failure = trouble.failed.get(rule.signal)
    if failure is not None:
        return [Unknown(failure)] * len(replicas)
    missing = _why_missing(memory, rule, trouble)
    readings: list[Reading] = []
    renamed = on_page = pages = 0
    for replica in replicas:
        state = replica.state
        if isinstance(state, Unknown):
            readings.append(state)
            continue
        pages += 1
        value = _value(memory.engine, rule, replica.pods)
        if value is None:
            readings.append(missing)
            renamed += _is_overdue(rule, replica.pods, trouble, now_seconds)
        elif value - value != 0 or value < 0:  # NaN, infinite, or a sentinel such as -1
            readings.append(_NOT_A_NUMBER[rule.signal])
            on_page += 1
        else:
            readings.append(Sample(value, state.age_seconds, state.is_held))
            on_page += 1
    if on_page:
        memory.seen.add(rule.signal)
    elif pages and not rule.is_required and rule.signal not in memory.seen and rule.signal not in trouble.partial:
        return None
    if renamed and (rule.is_required or rule.signal in memory.seen) and rule.signal not in trouble.partial:
        warnings.append(
            f"{rule.signal.value} is not on the page of {renamed} of {len(replicas)} ready replicas, though other "
            f"metrics are: {rule.name} may have been renamed; tokenscaler doctor metrics --page URL shows what is there"
        )
    return readings


_RATES = (
    Signal.PROMPT_TOKENS,
    Signal.GENERATION_TOKENS,
    Signal.REQUESTS_FINISHED,
    Signal.PREEMPTIONS,
    *DERIVED_FROM_REQUESTS,
)


def _no_number(signal: Signal) -> Unknown:
    if signal in DERIVED_FROM_LABELS:
        return Unknown("the size of the KV cache cannot be told")
    return Unknown(
        "its samples do not fill the window of the rate" if signal in _RATES else "it is not a finite number"
    )


_NOT_A_NUMBER: Mapping[Signal, Unknown] = {signal: _no_number(signal) for signal in REPLICA_SIGNALS}


def _why_missing(memory: PoolMemory, rule: SignalRule, trouble: TickTrouble) -> Unknown:
    if rule.signal in trouble.partial:
        return Unknown("Prometheus gave a partial answer")
    if rule.kind is MetricKind.COUNTER:
        return Unknown(f"fewer than two samples of it in {trouble.rate_window_seconds:g} s, or renamed")
    if rule.signal in memory.seen:
        return Unknown("it was on the pool's pages before and is not on this one")
    return Unknown("it is not on the page; renamed?")


def _is_overdue(rule: SignalRule, pods: Sequence[PodMemory], trouble: TickTrouble, now_seconds: float) -> bool:
    """A gauge should be on the first page already; a counter's rate takes a while, and sizes are asked for rarely."""
    if rule.signal in DERIVED_FROM_REQUESTS:
        return False  # it is told of what they are derived from
    if rule.kind is not MetricKind.COUNTER and rule.signal not in DERIVED_FROM_LABELS:
        return True
    return now_seconds - min(pod.first_seen_seconds for pod in pods) > trouble.rate_window_seconds


def _value(engine: str, rule: SignalRule, pods: Sequence[PodMemory]) -> float | None:
    """The replica's value: the sum over its pods (of shares the mean by size); None when it is on no page."""
    if len(pods) == 1:
        value = pods[0].values[rule.place]
        return _idle(engine, rule, pods[0]) if value is None else value
    values = [pod.values[rule.place] for pod in pods]
    known = [value for value in values if value is not None]
    if not known:
        return _idle(engine, rule, pods[0])
    if rule.is_required and len(known) < len(values):
        return None
    if rule.signal is Signal.KV_CACHE_USAGE:
        return _mean_by_size(pods, rule.place)
    return sum(known)


_CAPACITY_PLACE = REPLICA_SIGNALS.index(Signal.KV_CACHE_CAPACITY_TOKENS)


def _mean_by_size(pods: Sequence[PodMemory], place: int) -> float:
    pairs = [(value, pod.values[_CAPACITY_PLACE]) for pod in pods if (value := pod.values[place]) is not None]
    total = sum(size or 0.0 for _, size in pairs)
    if total > 0 and all(size is not None for _, size in pairs):
        return sum(value * (size or 0.0) for value, size in pairs) / total
    return sum(value for value, _ in pairs) / len(pairs)


def _idle(engine: str, rule: SignalRule, pod: PodMemory) -> float | None:
    """Zero for a replica that has never served, on whose page nothing is that comes with the first request."""
    if not rule.appears_with_traffic:
        return None
    return 0.0 if all(pod.values[place] is None for place in LAZY_PLACES[engine]) else None
