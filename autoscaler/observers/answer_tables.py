"""The newest answers of Prometheus as tables; those of slow queries are kept from one asking to the next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from autoscaler.observers.kv_cache import kv_cache_of
from autoscaler.observers.prometheus_rows import (
    EngineKey,
    PodKey,
    WorkloadKey,
    buckets_by_workload,
    capacities_by_engine,
    numbers_by_engine,
    numbers_by_pod,
    parts_by_workload,
    seconds_by_workload,
)
from autoscaler.observers.replica_signals import DERIVED_FROM_LABELS
from autoscaler.prometheus.answer import Vector
from autoscaler.prometheus.query_plan import Part, Purpose
from autoscaler.prometheus.settings import QuerySettings
from policies.signals import Signal

# Slow answers outlive this many of their intervals, so that one failure changes nothing.
_SLOW_ANSWERS_KEPT = 2.5

BY_WORKLOAD = (
    Purpose.REQUEST_SIZES,
    Purpose.PREFIX_CACHE,
    Purpose.PROMPT_LENGTHS,
    Purpose.ANSWER_LENGTHS,
    Purpose.TIME_TO_FIRST_TOKEN,
    Purpose.INTER_TOKEN_LATENCY,
    Purpose.TIME_PER_OUTPUT_TOKEN,
)
_RATES = (Purpose.PROMPT_TOKENS, Purpose.GENERATION_TOKENS, Purpose.REQUESTS_FINISHED, Purpose.PREEMPTIONS)
_BY_POD = (
    Purpose.SAMPLE_TIME,
    Purpose.WINDOW_START,
    Purpose.RUNNING_REQUESTS,
    Purpose.WAITING_REQUESTS,
    Purpose.KV_CACHE_USED_TOKENS,
    Purpose.KV_CACHE_CAPACITY_TOKENS,
    *_RATES,
)
_SLOW = frozenset((*BY_WORKLOAD, Purpose.CACHE_CONFIG, Purpose.KV_CACHE_CAPACITY_TOKENS, Purpose.PREEMPTIONS))
_NOTHING: Mapping[PodKey, float] = {}


def signals_of(purpose: Purpose) -> tuple[Signal, ...]:
    """The replicas' signals that need this query's answer."""
    if purpose is Purpose.KV_CACHE_USAGE:
        return (Signal.KV_CACHE_USAGE, *DERIVED_FROM_LABELS)
    if purpose is Purpose.CACHE_CONFIG:
        return DERIVED_FROM_LABELS
    if purpose in _BY_POD and purpose not in (Purpose.SAMPLE_TIME, Purpose.WINDOW_START):
        return (Signal(purpose.value),)
    return ()


@dataclass(slots=True)
class AnswerTables:
    """Numbers by pod, engine of a pod, and workload."""

    settings: QuerySettings
    numbers: dict[Purpose, dict[PodKey, float]] = field(default_factory=dict)
    usages: dict[PodKey, list[tuple[EngineKey, float]]] = field(default_factory=dict)
    capacities: dict[PodKey, dict[EngineKey, float]] = field(default_factory=dict)
    parts: dict[Purpose, dict[WorkloadKey, dict[Part, float]]] = field(default_factory=dict)
    buckets: dict[Purpose, dict[WorkloadKey, dict[float, float]]] = field(default_factory=dict)
    seconds: dict[Purpose, dict[WorkloadKey, float]] = field(default_factory=dict)
    _answered_at_seconds: dict[Purpose, float] = field(default_factory=dict)

    def store(self, purpose: Purpose, answer: Vector, now_seconds: float) -> None:
        """Replaces the purpose's table. A partial slow answer is laid over the last whole one; sums are left alone."""
        if answer.is_partial and purpose in BY_WORKLOAD:
            # Sums over a part of the pods would be taken for sums over all.
            return
        self._answered_at_seconds[purpose] = now_seconds
        lies_over = answer.is_partial and purpose in _SLOW
        if purpose in _BY_POD:
            numbers = numbers_by_pod(answer, self.settings)
            self.numbers[purpose] = {**self.numbers.get(purpose, {}), **numbers} if lies_over else numbers
        elif purpose is Purpose.KV_CACHE_USAGE:
            self.usages = numbers_by_engine(answer, self.settings)
        elif purpose is Purpose.CACHE_CONFIG:
            capacities = capacities_by_engine(answer, self.settings)
            self.capacities = {**self.capacities, **capacities} if lies_over else capacities
        elif purpose in (Purpose.REQUEST_SIZES, Purpose.PREFIX_CACHE):
            self.parts[purpose] = parts_by_workload(answer, self.settings)
        else:
            self.buckets[purpose] = buckets_by_workload(answer, self.settings)
            self.seconds[purpose] = seconds_by_workload(answer, self.settings)

    def is_kept(self, purpose: Purpose) -> bool:
        """Whether a slow query's last answer still stands, so that a failure to get a newer one does no harm."""
        return purpose in _SLOW and purpose in self._answered_at_seconds

    def expire(self, now_seconds: float) -> frozenset[Purpose]:
        """Empties the tables of slow queries that have gone unanswered for too long; returns which were emptied."""
        # What was answered in the future, by a clock that was set back since, was answered just now at the latest.
        self._answered_at_seconds = {each: min(at, now_seconds) for each, at in self._answered_at_seconds.items()}
        kept_seconds = _SLOW_ANSWERS_KEPT * self.settings.slow_interval_seconds
        expired = frozenset(
            purpose
            for purpose, answered_at in self._answered_at_seconds.items()
            if purpose in _SLOW and now_seconds - answered_at > kept_seconds
        )
        for purpose in expired:
            del self._answered_at_seconds[purpose]
            for table in (self.numbers, self.parts, self.buckets, self.seconds):
                table.pop(purpose, None)
            if purpose is Purpose.CACHE_CONFIG:
                self.capacities = {}
        return expired

    def has_size_of(self, pod: PodKey) -> bool:
        """Whether the size of the pod's KV cache is known, or no share is known that it would be needed for."""
        capacities = self.numbers.get(Purpose.KV_CACHE_CAPACITY_TOKENS, _NOTHING)
        return pod not in self.usages or pod in self.capacities or pod in capacities

    def lacks(self, gauge: Purpose, pod: PodKey) -> bool:
        """Whether the newest answer has no number of the pod."""
        return pod not in (self.usages if gauge is Purpose.KV_CACHE_USAGE else self.numbers.get(gauge, _NOTHING))

    def values_of(self, pod: PodKey, has_rates: bool) -> list[float | None]:
        """A pod's signals in the order of PAGE_SIGNALS; rates are NaN where they would show a part of the truth."""
        numbers = self.numbers
        cache = kv_cache_of(
            self.usages.get(pod, ()),
            self.capacities.get(pod),
            numbers.get(Purpose.KV_CACHE_USED_TOKENS, _NOTHING).get(pod),
            numbers.get(Purpose.KV_CACHE_CAPACITY_TOKENS, _NOTHING).get(pod),
        )
        values = [
            numbers.get(Purpose.RUNNING_REQUESTS, _NOTHING).get(pod),
            numbers.get(Purpose.WAITING_REQUESTS, _NOTHING).get(pod),
            cache.usage,
            cache.used_tokens,
            cache.capacity_tokens,
        ]
        for purpose in _RATES:
            rate = numbers.get(purpose, _NOTHING).get(pod)
            values.append(rate if rate is None or has_rates else math.nan)
        return values
