"""Inputs of a decision, of which a test shows only what its case is about; the rest is an ordinary pool at rest.

The ordinary pool: 4 ready replicas of 4 asked for, all fresh, KV caches of 60 000 tokens at 40 %, no queue, and a
history without a gap that is older than every window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from policies.capacity.learned_capacity import LearnedCapacity
from policies.cold_start import ColdStart
from policies.decision_input import DecisionInput
from policies.history import ScaleEvent, ScalingHistory, TimedRecommendation
from policies.observation import (
    MetricsObservation,
    ObservationUnavailable,
    QueryUnknown,
    QueryValue,
    ReplicaCounts,
)
from policies.parameters import ScalingParameters
from policies.reasons import Reason
from policies.signals import PoolSignal, Sample, Signal, Unknown, over_replicas

NOW = 1_900_000_000.0  # a Wednesday, 2030-03-17T17:46:40Z
CAPACITY_TOKENS = 60_000.0


def a_policy(**spec: Any) -> ScalingParameters:
    """A policy as a user writes it (camelCase); Scale mode, up to 100 replicas, and no vote unless given."""
    return ScalingParameters.model_validate({"mode": "Scale", "maxReplicas": 100, **spec})


def a_signal(
    *values: float | None, held: int = 0, held_age_seconds: float = 60.0, age_seconds: float = 5.0
) -> PoolSignal:
    """A signal by replica; None is an unknown one. The last `held` known values are aged ones."""
    known = [value for value in values if value is not None]
    fresh = len(known) - held
    readings: list[Sample | Unknown] = [Unknown("the scrape failed") for value in values if value is None]
    readings += [Sample(value, age_seconds) for value in known[:fresh]]
    readings += [Sample(value, held_age_seconds, is_held=True) for value in known[fresh:]]
    return over_replicas(readings)


def an_even_signal(total: float, replicas: int) -> PoolSignal:
    """A signal whose sum is `total`, the same at each of the replicas; none of them is a signal of no replicas."""
    return a_signal(*([total / replicas] * replicas)) if replicas else a_signal()


def an_observation(
    signals: Mapping[Signal, PoolSignal] | None = None,
    *,
    ready: int = 4,
    fresh: int | None = None,
    queries: Mapping[str, QueryValue | QueryUnknown | float] | None = None,
    **more: Any,
) -> MetricsObservation:
    """What Prometheus says: the given signals over those of an ordinary pool with `ready` replicas."""
    ordinary = {
        Signal.RUNNING_REQUESTS: an_even_signal(10.0 * ready, ready),
        Signal.WAITING_REQUESTS: an_even_signal(0.0, ready),
        Signal.KV_CACHE_USAGE: an_even_signal(0.4 * ready, ready),
        Signal.KV_CACHE_USED_TOKENS: an_even_signal(0.4 * CAPACITY_TOKENS * ready, ready),
        Signal.KV_CACHE_CAPACITY_TOKENS: an_even_signal(CAPACITY_TOKENS * ready, ready),
        Signal.PROMPT_TOKENS: an_even_signal(4000.0 * ready, ready),
        Signal.GENERATION_TOKENS: an_even_signal(600.0 * ready, ready),
        Signal.REQUESTS_FINISHED: an_even_signal(2.0 * ready, ready),
    }
    means = {
        "prompt_tokens_per_request": 2000.0,
        "generation_tokens_per_request": 300.0,
        "prefix_cache_hit_share": 0.2,
    }
    return MetricsObservation(
        signals={**ordinary, **(signals or {})},
        queries={
            name: QueryValue(float(answer), 5.0) if isinstance(answer, int | float) else answer
            for name, answer in (queries or {}).items()
        },
        ready_replicas=ready,
        fresh_replicas=ready if fresh is None else fresh,
        **{**means, **more},
    )


def without(observation: MetricsObservation, *absent: Signal) -> MetricsObservation:
    """The observation of an engine that does not expose these signals."""
    return replace(
        observation,
        signals={signal: value for signal, value in observation.signals.items() if signal not in absent},
    )


def a_blackout(message: str = "Prometheus does not answer") -> ObservationUnavailable:
    """Nothing was seen."""
    return ObservationUnavailable(Reason.PROMETHEUS_UNREACHABLE, message)


def a_history(
    *,
    recommended: Mapping[float, int] | None = None,
    rescaled: Mapping[float, int] | None = None,
    complete_for_seconds: float = 100_000.0,
    **more: Any,
) -> ScalingHistory:
    """A history; recommendations and rescales are given as {seconds ago: count or change}."""
    return ScalingHistory(
        complete_since_seconds=NOW - complete_for_seconds,
        recommendations=tuple(
            TimedRecommendation(NOW - age, replicas) for age, replicas in sorted((recommended or {}).items())[::-1]
        ),
        scale_events=tuple(ScaleEvent(NOW - age, change) for age, change in sorted((rescaled or {}).items())[::-1]),
        **more,
    )


def a_decision_input(
    policy: ScalingParameters | None = None,
    metrics: MetricsObservation | ObservationUnavailable | None = None,
    *,
    replicas: ReplicaCounts | int = 4,
    history: ScalingHistory | None = None,
    now_seconds: float = NOW,
    cold_start: ColdStart | None = None,
    capacity: LearnedCapacity | None = None,
) -> DecisionInput:
    """A decision input; `replicas` as a number is as many asked for and ready. No start has been seen."""
    counts = ReplicaCounts(replicas, replicas, replicas) if isinstance(replicas, int) else replicas
    return DecisionInput(
        now_seconds=now_seconds,
        parameters=policy or a_policy(signals={"kvCache": {}}),
        replicas=counts,
        metrics=metrics or an_observation(ready=counts.ready),
        history=history or a_history(),
        learned_cold_start=cold_start,
        learned_capacity=capacity,
    )
