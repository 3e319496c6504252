"""What does the policy get to see of a simulated pool? As late and as coarse as a real Prometheus would tell it.

The judgement of samples (fresh, held, unknown), the means and the quantiles are the production ones; only the scraped
pages come from the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from operator import sub

from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.pod_memory import PodMemory
from autoscaler.observers.pool_means import Distribution, latency
from autoscaler.observers.pool_signals import PoolMemory, TickTrouble, read_pool
from autoscaler.observers.replica_signals import PAGE_SIGNALS, take_values
from autoscaler.observers.request_lengths import SeenLengths, tells_lengths
from autoscaler.observers.request_means import HitShare, RequestMean
from autoscaler.observers.steady_lag import SteadyLag
from autoscaler.replay.promql_reading import Expression, NotUnderstoodError, read_promql
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample
from autoscaler.replay.serving_counters import (
    INTER_TOKEN_LATENCY_EDGES,
    REQUEST_LENGTH_EDGES,
    TIME_TO_FIRST_TOKEN_EDGES,
    ServingSnapshot,
)
from autoscaler.replay.simulated_prometheus import SimulatedPrometheus, unsimulated_metrics
from policies.capacity.objectives import LatencyObjectives
from policies.observation import MetricsObservation, PoolLatency, QueryUnknown, QueryValue
from policies.signals import Signal

# The windows that the live queries use.
RATE_WINDOW_SECONDS = 60.0
LATENCY_WINDOW_SECONDS = 120.0
REQUEST_WINDOW_SECONDS = 120.0
# How often the live observer asks for what changes slowly.
SLOW_INTERVAL_SECONDS = 60.0

_COUNTERS: Mapping[Signal, Callable[[ServingSnapshot], int]] = {
    Signal.PROMPT_TOKENS: lambda page: page.prompt_tokens,
    Signal.GENERATION_TOKENS: lambda page: page.generation_tokens,
    Signal.REQUESTS_FINISHED: lambda page: page.finished_requests,
    Signal.PREEMPTIONS: lambda page: page.preemptions,
}


class SimulatedMetrics:
    """The metrics side of one pool; remembers what the live observer remembers."""

    def __init__(self, engine: str, kv_capacity_tokens: int, pages: ScrapedPages) -> None:
        self._kv_capacity_tokens = kv_capacity_tokens
        self._pages = pages
        self._memory = PoolMemory(engine)
        self._pods: dict[str, PodMemory] = {}
        self._lag = SteadyLag()
        self._prompt_tokens = RequestMean()
        self._generated_tokens = RequestMean()
        self._prefix_hits = HitShare()
        self._lengths = SeenLengths()
        self._tells_lengths = tells_lengths(engine)
        self._means_at_seconds = -math.inf

    def observe(self, query: PoolQuery, gateway_queue: int, now_seconds: float) -> MetricsObservation:
        """The pool at one tick. The user's PromQL is asked of the replicas' pages; `gateway_queue` is the answer of
        `pendingRequests` where it reads what no replica exposes.
        """
        self._take_newest_pages(query, now_seconds)
        pods = [(pod, self._pods.get(pod.name)) for pod in query.pods]
        reading = read_pool(self._memory, pods, TickTrouble(rate_window_seconds=RATE_WINDOW_SECONDS), now_seconds)
        self._update_means(now_seconds)
        return MetricsObservation(
            signals=reading.signals,
            queries={
                name: self._answer(name, text, query, gateway_queue, now_seconds)
                for name, text in query.queries.items()
            },
            ready_replicas=reading.ready_replicas,
            fresh_replicas=reading.fresh_replicas,
            prompt_tokens_per_request=self._prompt_tokens.value,
            generation_tokens_per_request=self._generated_tokens.value,
            request_lengths=self._lengths.value,
            prefix_cache_hit_share=self._prefix_hits.value,
            latency=self._latency(query.objectives, now_seconds),
            warnings=reading.warnings,
            wedged_replicas=reading.wedged,
            unsteady_replicas=reading.unsteady,
        )

    def _answer(
        self, name: str, text: str, query: PoolQuery, gateway_queue: int, now_seconds: float
    ) -> QueryValue | QueryUnknown:
        expression = _read(text)
        reads_others = isinstance(expression, str) or bool(unsimulated_metrics(expression))
        if name == "pendingRequests" and reads_others:
            return QueryValue(float(gateway_queue), age_seconds=0.0)
        if isinstance(expression, str):
            return QueryUnknown(f"in a simulation: {expression}")
        live = [pod.name for pod in query.pods if pod.is_ready]
        answer = SimulatedPrometheus(self._pages, self._kv_capacity_tokens, lambda: live).ask(expression, now_seconds)
        values = list(answer.values()) if isinstance(answer, dict) else [answer]
        total = math.fsum(values) if values else math.nan
        if not math.isfinite(total) or total < 0:
            return QueryUnknown("the query has no number that could be used")
        return QueryValue(total, age_seconds=0.0)

    def _take_newest_pages(self, query: PoolQuery, now_seconds: float) -> None:
        known, self._pods = self._pods, {}
        advances, ages_at_arrival = [], []
        for pod in query.pods:
            newest = self._pages.newest(pod.name, now_seconds)
            if newest is None:
                continue
            memory = known.get(pod.name) or PodMemory(newest.at_seconds, now_seconds)
            newer_by = memory.advance(newest.at_seconds, now_seconds)
            if newer_by > 0:
                advances.append(newer_by)
                ages_at_arrival.append(now_seconds - newest.at_seconds)
            take_values(memory, self._values(pod.name, newest.page, now_seconds))
            self._pods[pod.name] = memory
        if advances:
            self._memory.interval.learn(sum(advances) / len(advances))
        self._lag.learn(ages_at_arrival)

    def _values(self, replica: str, page: ServingSnapshot, now_seconds: float) -> list[float | None]:
        window = self._pages.window(replica, now_seconds, RATE_WINDOW_SECONDS + self._lag.seconds)
        gauges: dict[Signal, float] = {
            Signal.RUNNING_REQUESTS: page.running_requests,
            Signal.WAITING_REQUESTS: page.waiting_requests,
            Signal.KV_CACHE_USAGE: page.kv_cache_usage,
            Signal.KV_CACHE_USED_TOKENS: page.kv_cache_usage * self._kv_capacity_tokens,
            Signal.KV_CACHE_CAPACITY_TOKENS: self._kv_capacity_tokens,
        }
        return [gauges[signal] if signal in gauges else _rate(window, signal) for signal in PAGE_SIGNALS]

    def _update_means(self, now_seconds: float) -> None:
        if now_seconds - self._means_at_seconds < SLOW_INTERVAL_SECONDS:
            return
        windows = list(self._pages.windows(now_seconds, REQUEST_WINDOW_SECONDS))
        requests = _increase(windows, lambda page: page.finished_requests)
        if not requests:
            return
        self._means_at_seconds = now_seconds
        prompts = _increase(windows, lambda page: page.finished_prompt_tokens)
        self._prompt_tokens.update(prompts, requests, REQUEST_WINDOW_SECONDS, now_seconds)
        generated = _increase(windows, lambda page: page.finished_generation_tokens)
        self._generated_tokens.update(generated, requests, REQUEST_WINDOW_SECONDS, now_seconds)
        hits = _increase(windows, lambda page: page.prefix_hit_tokens)
        self._prefix_hits.update(hits, _increase(windows, lambda page: page.prefix_queried_tokens))
        if self._tells_lengths:
            prompts_by_length = _buckets(REQUEST_LENGTH_EDGES, windows, lambda page: page.prompt_length_counts)
            answers_by_length = _buckets(REQUEST_LENGTH_EDGES, windows, lambda page: page.answer_length_counts)
            seen = (_per_second(prompts_by_length), _per_second(answers_by_length))
            self._lengths.update(*seen, REQUEST_WINDOW_SECONDS, now_seconds)

    def _latency(self, objectives: LatencyObjectives | None, now_seconds: float) -> PoolLatency:
        windows = list(self._pages.windows(now_seconds, LATENCY_WINDOW_SECONDS))
        first_token = _buckets(TIME_TO_FIRST_TOKEN_EDGES, windows, lambda page: page.time_to_first_token_counts)
        gaps = _buckets(INTER_TOKEN_LATENCY_EDGES, windows, lambda page: page.inter_token_latency_counts)
        per_request = _buckets(INTER_TOKEN_LATENCY_EDGES, windows, lambda page: page.time_per_output_token_counts)
        return latency(
            Distribution(first_token),
            Distribution(gaps, _increase(windows, lambda page: page.inter_token_latency_seconds)),
            Distribution(per_request, _increase(windows, lambda page: page.time_per_output_token_seconds)),
            objectives,
            now_seconds,
        )


@lru_cache(maxsize=256)
def _read(text: str) -> Expression | str:
    try:
        return read_promql(text)
    except NotUnderstoodError as error:
        return str(error)


def _rate(window: tuple[ScrapedSample, ScrapedSample] | None, signal: Signal) -> float | None:
    if window is None:
        return None
    first, last = window
    count = _COUNTERS[signal]
    return (count(last.page) - count(first.page)) / (last.at_seconds - first.at_seconds)


def _increase(
    windows: Iterable[tuple[ScrapedSample, ScrapedSample]], count: Callable[[ServingSnapshot], float]
) -> float | None:
    increases = [count(last.page) - count(first.page) for first, last in windows]
    return float(sum(increases)) if increases else None


def _buckets(
    edges: Sequence[float],
    windows: Sequence[tuple[ScrapedSample, ScrapedSample]],
    counts: Callable[[ServingSnapshot], Sequence[float]],
) -> dict[float, float]:
    """Cumulative counts by upper edge, as an engine exposes them."""
    added = [0.0] * (len(edges) + 1)
    if windows:
        later = map(sum, zip(*(counts(last.page) for _, last in windows), strict=True))
        earlier = map(sum, zip(*(counts(first.page) for first, _ in windows), strict=True))
        added = list(map(sub, later, earlier))
    return dict(zip((*edges, math.inf), accumulate(added), strict=True))


def _per_second(counts: Mapping[float, float]) -> dict[float, float]:
    return {edge: count / REQUEST_WINDOW_SECONDS for edge, count in counts.items()}
