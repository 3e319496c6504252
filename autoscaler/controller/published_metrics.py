"""Which metrics does a decision publish, and with what values? Names as a HorizontalPodAutoscaler asks for them.

A sum over replicas is published only where nine in ten ready replicas have a fresh sample: an HPA that reads a signal
would take a partial sum for less load. Below that, and wherever nothing is known, a metric has a problem and no value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autoscaler.api.conditions import rfc3339
from autoscaler.api.published_metrics import (
    MAXIMUM_METRICS,
    MAXIMUM_PROBLEM_CHARACTERS,
    PublishedMetric,
    PublishedMetrics,
)
from autoscaler.api.quantity import milli_of, quantity
from autoscaler.controller.pool_report import Decided
from policies.decision_input import DecisionInput
from policies.observation import MetricsObservation, ObservationUnavailable, QueryValue
from policies.parameters import SignalParameters
from policies.reasons import Reason
from policies.recommendation import NoOpinion, ScalingRecommendation
from policies.recommenders.custom import custom_query_name
from policies.recommenders.pending_requests import PENDING_REQUESTS
from policies.recommenders.query_values import known_query
from policies.recommenders.replica_signals import known_signal, over_all_replicas
from policies.recommenders.token_rate import TokenRateParameters, recommend_token_rate
from policies.recommenders.tokens_in_flight import TokensInFlightParameters, recommend_tokens_in_flight
from policies.sight import FULL_COVERAGE
from policies.signals import PoolSignal, Signal

DESIRED_REPLICAS = "tokenscaler-desired-replicas"
TOKENS_IN_FLIGHT = "tokens-in-flight"
TOKEN_RATE = "token-rate"
PENDING = "pending-requests"
CUSTOM_PREFIX = "custom-"
# Summed over the replicas: made for an AverageValue target.
SUMS = {
    "running-requests": Signal.RUNNING_REQUESTS,
    "waiting-requests": Signal.WAITING_REQUESTS,
    "kv-cache-used-tokens": Signal.KV_CACHE_USED_TOKENS,
    "kv-cache-capacity-tokens": Signal.KV_CACHE_CAPACITY_TOKENS,
    "prompt-tokens-per-second": Signal.PROMPT_TOKENS,
    "generation-tokens-per-second": Signal.GENERATION_TOKENS,
    "finished-requests-per-second": Signal.REQUESTS_FINISHED,
    "preemptions-per-second": Signal.PREEMPTIONS,
}
# Means and quantiles, over the replicas or over finished requests: made for a Value target.
KV_CACHE_USAGE = "kv-cache-usage"
PROMPT_TOKENS_PER_REQUEST = "prompt-tokens-per-request"
GENERATION_TOKENS_PER_REQUEST = "generation-tokens-per-request"
PREFIX_CACHE_HIT_SHARE = "prefix-cache-hit-share"
TIME_TO_FIRST_TOKEN_P99 = "time-to-first-token-p99-seconds"
INTER_TOKEN_LATENCY_P50 = "inter-token-latency-p50-seconds"
INTER_TOKEN_LATENCY_P99 = "inter-token-latency-p99-seconds"
OF_REQUESTS = (
    PROMPT_TOKENS_PER_REQUEST,
    GENERATION_TOKENS_PER_REQUEST,
    PREFIX_CACHE_HIT_SHARE,
    TIME_TO_FIRST_TOKEN_P99,
    INTER_TOKEN_LATENCY_P50,
    INTER_TOKEN_LATENCY_P99,
)
METRIC_NAMES = (DESIRED_REPLICAS, TOKENS_IN_FLIGHT, TOKEN_RATE, KV_CACHE_USAGE, *SUMS, PENDING, *OF_REQUESTS)
"""Every name that can be asked for; beside them `custom-NAME` for each entry of `signals.custom`."""

_IN_TOKENS_IN_FLIGHT = (Signal.WAITING_REQUESTS, Signal.RUNNING_REQUESTS, Signal.KV_CACHE_USED_TOKENS)
_IN_TOKEN_RATE = (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)
_TOO_FEW = NoOpinion(Reason.SIGNAL_UNKNOWN, "too few requests have finished in the last minutes")


@dataclass(frozen=True, slots=True)
class _Value:
    """A value and how old its oldest sample is."""

    value: float
    age_seconds: float


def is_metric_name(name: str) -> bool:
    """Whether any pool could have a metric of this name."""
    return name in METRIC_NAMES or (name.startswith(CUSTOM_PREFIX) and len(name) > len(CUSTOM_PREFIX))


def publish(report: Decided) -> PublishedMetrics:
    """The metrics of a decision. Those that the engine or the policy does not have are not among them."""
    now_seconds, metrics = report.now_seconds, report.decision_input.metrics
    found: list[tuple[str, _Value | NoOpinion]] = [
        (DESIRED_REPLICAS, _Value(float(report.decision.desired_replicas), 0.0)),
        *_of_votes(report.decision_input),
        *_of_queries(report.decision_input),
    ]
    if isinstance(metrics, MetricsObservation):
        found += [*_of_replicas(metrics), *_of_requests(metrics)]
    else:
        found += [(name, _unknown(metrics)) for name in (KV_CACHE_USAGE, *SUMS, *OF_REQUESTS)]
    return PublishedMetrics(
        decided_at=rfc3339(now_seconds),
        values=tuple(_published(name, value, now_seconds) for name, value in found[:MAXIMUM_METRICS]),
    )


def _published(name: str, value: _Value | NoOpinion, now_seconds: float) -> PublishedMetric:
    if isinstance(value, NoOpinion):
        problem = value.message[:MAXIMUM_PROBLEM_CHARACTERS] or value.reason.value
        return PublishedMetric(name=name, problem=problem, time=rfc3339(now_seconds))
    return PublishedMetric(
        name=name, value=quantity(milli_of(value.value)), time=rfc3339(now_seconds - value.age_seconds)
    )


def _unknown(metrics: ObservationUnavailable) -> NoOpinion:
    return NoOpinion(metrics.reason, metrics.message)


def _of_votes(decision_input: DecisionInput) -> Iterator[tuple[str, _Value | NoOpinion]]:
    """Demands that take more than one signal, by the votes' own formulas; a share of one asks for the demand itself."""
    signals = SignalParameters(
        tokens_in_flight=TokensInFlightParameters(per_replica=1.0),
        token_rate=TokenRateParameters(per_replica_per_second=1.0),
    )
    asked = replace(decision_input, parameters=decision_input.parameters.model_copy(update={"signals": signals}))
    for vote in recommend_tokens_in_flight(asked):
        yield TOKENS_IN_FLIGHT, _demand(vote, decision_input.metrics, _IN_TOKENS_IN_FLIGHT)
    for vote in recommend_token_rate(asked):
        yield TOKEN_RATE, _demand(vote, decision_input.metrics, _IN_TOKEN_RATE)


def _demand(
    vote: ScalingRecommendation, metrics: MetricsObservation | ObservationUnavailable, made_of: tuple[Signal, ...]
) -> _Value | NoOpinion:
    if vote.replicas is None or isinstance(metrics, ObservationUnavailable):
        return NoOpinion(vote.reason, vote.message)
    used = [metrics.signals[signal] for signal in made_of if signal in metrics.signals]
    for signal in used:
        partial = _partly_seen(signal)
        if partial is not None:
            return partial
    return _Value(vote.demand, max((signal.oldest_age_seconds for signal in used), default=0.0))


def _of_queries(decision_input: DecisionInput) -> Iterator[tuple[str, _Value | NoOpinion]]:
    signals = decision_input.parameters.signals
    queries = [(PENDING, PENDING_REQUESTS)] if signals.pending_requests is not None else []
    queries += [(f"{CUSTOM_PREFIX}{custom.name}", custom_query_name(custom)) for custom in signals.custom]
    for name, query in queries:
        value = known_query(decision_input.metrics, query)
        yield name, value if isinstance(value, NoOpinion) else _Value(value, _age_of(decision_input.metrics, query))


def _age_of(metrics: MetricsObservation | ObservationUnavailable, query: str) -> float:
    answer = metrics.queries.get(query) if isinstance(metrics, MetricsObservation) else None
    return answer.age_seconds if isinstance(answer, QueryValue) else 0.0


def _of_replicas(metrics: MetricsObservation) -> Iterator[tuple[str, _Value | NoOpinion]]:
    usage = _seen_signal(metrics, Signal.KV_CACHE_USAGE)
    if usage is not None:
        yield KV_CACHE_USAGE, usage if isinstance(usage, NoOpinion) else _Value(usage.mean, usage.oldest_age_seconds)
    for name, signal in SUMS.items():
        seen = _seen_signal(metrics, signal)
        if isinstance(seen, NoOpinion):
            yield name, seen
        elif seen is not None:
            yield name, _Value(over_all_replicas(seen, full=0.0).likely, seen.oldest_age_seconds)


def _seen_signal(metrics: MetricsObservation, signal: Signal) -> PoolSignal | NoOpinion | None:
    """The signal where it is seen well enough to be summed; None where the engine has none."""
    if signal not in metrics.signals:
        return None
    known = known_signal(metrics, signal)
    if isinstance(known, NoOpinion):
        return known
    return _partly_seen(known) or known


def _of_requests(metrics: MetricsObservation) -> Iterator[tuple[str, _Value | NoOpinion]]:
    latency = metrics.latency
    values = (
        (PROMPT_TOKENS_PER_REQUEST, metrics.prompt_tokens_per_request),
        (GENERATION_TOKENS_PER_REQUEST, metrics.generation_tokens_per_request),
        (PREFIX_CACHE_HIT_SHARE, metrics.prefix_cache_hit_share),
        (TIME_TO_FIRST_TOKEN_P99, latency.time_to_first_token_p99_seconds),
        (INTER_TOKEN_LATENCY_P50, latency.inter_token_latency_p50_seconds),
        (INTER_TOKEN_LATENCY_P99, latency.inter_token_latency_p99_seconds),
    )
    for name, value in values:
        # A mean or quantile of the last minutes ends now.
        yield name, _TOO_FEW if value is None else _Value(value, 0.0)


def _partly_seen(signal: PoolSignal) -> NoOpinion | None:
    fresh, ready = signal.fresh_replicas, signal.ready_replicas
    if ready and fresh / ready >= FULL_COVERAGE:
        return None
    return NoOpinion(Reason.LOW_COVERAGE, f"only {fresh} of {ready} ready replicas have fresh samples")
