"""What would a Prometheus answer that scrapes the simulated replicas? PromQL over their pages, as late as scraped.

The metrics are those that an engine exposes, in every spelling we know (`autoscaler/engines`), and `up`. Matchers that
are no part of a metric's own meaning are taken to choose this pool. A metric that is not simulated has no series.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import MetricKind
from autoscaler.prometheus.quantiles import quantile
from autoscaler.replay.promql_reading import Aggregation, Binary, Call, Expression, Number, Selector, metrics_of
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample
from autoscaler.replay.serving_counters import INTER_TOKEN_LATENCY_EDGES, TIME_TO_FIRST_TOKEN_EDGES, ServingSnapshot
from policies.signals import Signal

Labels: TypeAlias = tuple[tuple[str, str], ...]
Vector: TypeAlias = dict[Labels, float]
Answer: TypeAlias = float | Vector

# An instant selector takes samples up to this old, unless their target has gone.
LOOK_BACK_SECONDS = 300.0

_GAUGES: Mapping[Signal, Callable[[ServingSnapshot, int], float]] = {
    Signal.RUNNING_REQUESTS: lambda page, capacity: page.running_requests,
    Signal.WAITING_REQUESTS: lambda page, capacity: page.waiting_requests,
    Signal.KV_CACHE_USAGE: lambda page, capacity: page.kv_cache_usage,
    Signal.KV_CACHE_USED_TOKENS: lambda page, capacity: page.kv_cache_usage * capacity,
    Signal.KV_CACHE_CAPACITY_TOKENS: lambda page, capacity: capacity,
    Signal.PROMPT_TOKENS: lambda page, capacity: page.prompt_tokens,
    Signal.GENERATION_TOKENS: lambda page, capacity: page.generation_tokens,
    Signal.REQUESTS_FINISHED: lambda page, capacity: page.finished_requests,
    Signal.PREEMPTIONS: lambda page, capacity: page.preemptions,
    Signal.PREFIX_CACHE_HITS: lambda page, capacity: page.prefix_hit_tokens,
    Signal.PREFIX_CACHE_QUERIES: lambda page, capacity: page.prefix_queried_tokens,
}
_HISTOGRAMS: Mapping[Signal, tuple[Sequence[float], Callable[[ServingSnapshot], Sequence[float]]]] = {
    Signal.TIME_TO_FIRST_TOKEN: (TIME_TO_FIRST_TOKEN_EDGES, lambda page: page.time_to_first_token_counts),
    Signal.INTER_TOKEN_LATENCY: (INTER_TOKEN_LATENCY_EDGES, lambda page: page.inter_token_latency_counts),
}


@dataclass(frozen=True, slots=True)
class _Source:
    where: Labels
    signal: Signal


def _sources() -> Mapping[str, tuple[_Source, ...]]:
    found: dict[str, list[_Source]] = defaultdict(list)
    for engine in ENGINES.values():
        for signal, source in engine.signals.items():
            if signal not in _GAUGES and signal not in _HISTOGRAMS:
                continue
            for metric in source.metrics:
                if metric.times is not None or metric.divided_by is not None:
                    continue
                suffix = "_bucket" if source.kind is MetricKind.HISTOGRAM else ""
                entry = _Source(metric.where, signal)
                if entry not in found[metric.name + suffix]:
                    found[metric.name + suffix].append(entry)
    return {name: tuple(entries) for name, entries in found.items()}


_SOURCES = _sources()


def is_simulated(metric: str) -> bool:
    """Whether simulated replicas expose a metric of this name."""
    return metric in _SOURCES


def unsimulated_metrics(expression: Expression) -> tuple[str, ...]:
    """The metrics that an expression reads and nobody exposes here, each once."""
    return tuple(dict.fromkeys(name for name in metrics_of(expression) if name != "up" and not is_simulated(name)))


class SimulatedPrometheus:
    """One pool's pages. `live` names the pods that are there: series of others end, though ranges still hold them."""

    def __init__(self, pages: ScrapedPages, kv_capacity_tokens: int, live: Callable[[], Sequence[str]]) -> None:
        self._pages = pages
        self._kv_capacity_tokens = kv_capacity_tokens
        self._live = live

    def ask(self, expression: Expression, now_seconds: float) -> Answer:
        """A number, or one value for each set of labels; an empty vector where nothing matches."""
        match expression:
            case Number():
                return expression.value
            case Selector():
                return self._instant(expression, now_seconds)
            case Call():
                return self._call(expression, now_seconds)
            case Aggregation():
                return _aggregate(expression, _as_vector(self.ask(expression.inner, now_seconds)))
            case Binary():
                left, right = self.ask(expression.left, now_seconds), self.ask(expression.right, now_seconds)
                return _combine(expression, left, right)

    def _instant(self, selector: Selector, now_seconds: float) -> Vector:
        found: Vector = {}
        for replica in self._live():
            sample = self._pages.newest(replica, now_seconds)
            if sample is not None and now_seconds - sample.at_seconds <= LOOK_BACK_SECONDS:
                for labels, value in self._series(selector, sample):
                    found[(("pod", replica), *labels)] = value
        return found

    def _series(self, selector: Selector, sample: ScrapedSample) -> Iterator[tuple[Labels, float]]:
        """The values of one replica's page that a selector chooses, each with the labels of its own meaning."""
        if selector.metric == "up":
            yield (), 1.0
        equal = dict(selector.equal)
        for source in _SOURCES.get(selector.metric, ()):
            if any(equal.get(name, value) != value for name, value in source.where):
                continue
            if source.signal in _GAUGES:
                yield source.where, float(_GAUGES[source.signal](sample.page, self._kv_capacity_tokens))
                continue
            edges, counts = _HISTOGRAMS[source.signal]
            for edge, count in zip((*edges, math.inf), accumulate(counts(sample.page)), strict=True):
                yield (("le", "+Inf" if math.isinf(edge) else f"{edge:g}"), *source.where), float(count)

    def _call(self, call: Call, now_seconds: float) -> Answer:
        first = call.arguments[0]
        if isinstance(first, Selector) and first.range_seconds is not None:
            return self._over_range(call.function, first, now_seconds)
        values = [self.ask(argument, now_seconds) for argument in call.arguments]
        if call.function == "histogram_quantile":
            return _histogram_quantile(_as_scalar(values[0]), _as_vector(values[1]))
        if call.function == "scalar":
            return _as_scalar(values[0])
        if call.function == "vector":
            return {(): _as_scalar(values[0])}
        numbers = [_as_scalar(value) for value in values[1:]]
        return _each(values[0], lambda value: _SIMPLE[call.function](value, *numbers))

    def _over_range(self, function: str, selector: Selector, now_seconds: float) -> Vector:
        seconds = selector.range_seconds or 0.0
        found: Vector = {}
        for replica in self._pages.replicas:
            samples = self._pages.samples(replica, now_seconds, seconds)
            series: dict[Labels, list[tuple[float, float]]] = defaultdict(list)
            for sample in samples:
                for labels, value in self._series(selector, sample):
                    series[(("pod", replica), *labels)].append((sample.at_seconds, value))
            for labels, points in series.items():
                value_of_range = _RANGES[function](points, seconds)
                if value_of_range is not None:
                    found[labels] = value_of_range
        return found


def single_value(answer: Answer) -> float | None:
    """The one number of an answer, None for an answer without any. Raises `SeveralSeriesError` for several."""
    if isinstance(answer, float | int):
        return float(answer)
    if len(answer) > 1:
        raise SeveralSeriesError(f"the query has {len(answer)} series; one is wanted: add sum() or max()")
    return next(iter(answer.values()), None)


class SeveralSeriesError(ValueError):
    """A query that should give one number gives several."""


def _rate(points: Sequence[tuple[float, float]], seconds: float) -> float | None:
    """First to last sample; a replica's counters never go back here. None for a single sample."""
    if len(points) < 2:
        return None
    (first_at, first), (last_at, last) = points[0], points[-1]
    return (last - first) / (last_at - first_at)


def _increase(points: Sequence[tuple[float, float]], seconds: float) -> float | None:
    rate = _rate(points, seconds)
    return None if rate is None else rate * seconds


_RANGES: Mapping[str, Callable[[Sequence[tuple[float, float]], float], float | None]] = {
    "rate": _rate,
    "irate": lambda points, seconds: _rate(points[-2:], seconds),
    "increase": _increase,
    "delta": _increase,
    "avg_over_time": lambda points, seconds: math.fsum(value for _, value in points) / len(points),
    "max_over_time": lambda points, seconds: max(value for _, value in points),
    "min_over_time": lambda points, seconds: min(value for _, value in points),
    "sum_over_time": lambda points, seconds: math.fsum(value for _, value in points),
    "count_over_time": lambda points, seconds: float(len(points)),
    "last_over_time": lambda points, seconds: points[-1][1],
}
_SIMPLE: Mapping[str, Callable[..., float]] = {
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)),
    "floor": lambda value: float(math.floor(value)),
    "round": lambda value: float(math.floor(value + 0.5)),
    "clamp": lambda value, least, most: max(least, min(most, value)),
    "clamp_min": max,
    "clamp_max": min,
}
_AGGREGATES: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "avg": lambda values: math.fsum(values) / len(values),
    "max": max,
    "min": min,
    "count": lambda values: float(len(values)),
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right if right else (math.nan if left == 0 else math.copysign(math.inf, left)),
    "%": lambda left, right: math.fmod(left, right) if right else math.nan,
}
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    ">": lambda left, right: left > right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
    "<=": lambda left, right: left <= right,
}


def _aggregate(aggregation: Aggregation, vector: Vector) -> Vector:
    groups: dict[Labels, list[float]] = defaultdict(list)
    for labels, value in vector.items():
        groups[tuple(label for label in labels if label[0] in aggregation.by)].append(value)
    return {labels: _AGGREGATES[aggregation.operation](values) for labels, values in groups.items()}


def _combine(binary: Binary, left: Answer, right: Answer) -> Answer:
    if binary.operator == "or":
        one, other = _as_vector(left), _as_vector(right)
        return one | {labels: value for labels, value in other.items() if labels not in one}
    if isinstance(left, dict) and isinstance(right, dict):
        pairs = {labels: (left[labels], right[labels]) for labels in left if labels in right}
    elif isinstance(left, dict):
        pairs = {labels: (value, _as_scalar(right)) for labels, value in left.items()}
    elif isinstance(right, dict):
        pairs = {labels: (left, value) for labels, value in right.items()}
    else:
        if binary.operator in _COMPARISONS:
            return float(_COMPARISONS[binary.operator](left, right))
        return _ARITHMETIC[binary.operator](left, right)
    if binary.operator in _ARITHMETIC:
        return {labels: _ARITHMETIC[binary.operator](*pair) for labels, pair in pairs.items()}
    compare = _COMPARISONS[binary.operator]
    if binary.is_bool:
        return {labels: float(compare(*pair)) for labels, pair in pairs.items()}
    kept = 0 if isinstance(left, dict) else 1
    return {labels: pair[kept] for labels, pair in pairs.items() if compare(*pair)}


def _histogram_quantile(share: float, vector: Vector) -> Vector:
    groups: dict[Labels, dict[float, float]] = defaultdict(dict)
    for labels, value in vector.items():
        edge = dict(labels).get("le")
        if edge is not None:
            groups[tuple(label for label in labels if label[0] != "le")][float(edge)] = value
    found: Vector = {}
    for labels, buckets in groups.items():
        result = quantile(share, dict(sorted(buckets.items())))
        found[labels] = math.nan if result is None else result.value
    return found


def _as_vector(answer: Answer) -> Vector:
    return answer if isinstance(answer, dict) else {(): answer}


def _as_scalar(answer: Answer) -> float:
    if not isinstance(answer, dict):
        return answer
    return next(iter(answer.values())) if len(answer) == 1 else math.nan


def _each(answer: Answer, function: Callable[[float], float]) -> Answer:
    if isinstance(answer, dict):
        return {labels: function(value) for labels, value in answer.items()}
    return function(answer)
