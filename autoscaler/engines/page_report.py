"""Which engine does a /metrics page come from, which of our signals can it supply, and what on it looks wrong?"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.samples import Sample

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import EngineMetrics, Metric, MetricKind, SignalSource
from autoscaler.engines.kv_geometry import capacity_tokens
from autoscaler.engines.page import Page, parse_page
from policies.signals import Signal

# Computed from others: the two KV token counts from kvCacheUsage and cacheConfig, arrivals from running, waiting and
# finished requests.
_DERIVED = frozenset(
    {
        Signal.KV_CACHE_USED_TOKENS,
        Signal.KV_CACHE_CAPACITY_TOKENS,
        Signal.REQUESTS_ARRIVED,
        Signal.REQUESTS_ARRIVED_RECENTLY,
    }
)
# What a report speaks of.
REPORTED_SIGNALS = tuple(signal for signal in Signal if signal not in _DERIVED)

# What each vote needs: all of one of the sets.
_NEEDED: Mapping[str, tuple[frozenset[Signal], ...]] = {
    "tokensInFlight": (
        frozenset({Signal.KV_CACHE_USAGE, Signal.CACHE_CONFIG}),
        frozenset(
            {
                Signal.RUNNING_REQUESTS,
                Signal.WAITING_REQUESTS,
                Signal.PROMPT_TOKENS_PER_REQUEST,
                Signal.GENERATION_TOKENS_PER_REQUEST,
            }
        ),
    ),
    "tokenRate": (frozenset({Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS}),),
    "workRate": (
        frozenset(
            {
                Signal.RUNNING_REQUESTS,
                Signal.WAITING_REQUESTS,
                Signal.REQUESTS_FINISHED,
                Signal.PROMPT_TOKENS,
                Signal.GENERATION_TOKENS,
                Signal.INTER_TOKEN_LATENCY,
            }
        ),
    ),
    "kvCache": (frozenset({Signal.KV_CACHE_USAGE}),),
    "waitingRequests": (frozenset({Signal.WAITING_REQUESTS}),),
    "interTokenLatencyDivergence": (frozenset({Signal.INTER_TOKEN_LATENCY}),),
}


@dataclass(frozen=True, slots=True)
class SignalOnPage:
    """Under which metric a signal stands on the page, in how many series, with which number over all of them.

    `value` for gauges and counters, `count` and `sum` for histograms and ratios; None where the page has no finite
    number. A share (KV cache) is the mean over a pod's engines, everything else is added up.
    """

    metric: str
    series: int
    value: float | None = None
    count: float | None = None
    sum: float | None = None
    has_distribution: bool = False

    def to_document(self) -> dict[str, object]:
        """As it stands in `--output json`."""
        place: dict[str, object] = {"metric": self.metric, "series": self.series}
        return place | ({"count": self.count, "sum": self.sum} if self.has_distribution else {"value": self.value})


@dataclass(frozen=True, slots=True)
class PageReport:
    """What a page can supply. `engine` is None where no known engine's metric is on it."""

    engine: str | None
    signals: Mapping[Signal, SignalOnPage]
    absent: tuple[Signal, ...]
    problems: tuple[str, ...]
    is_capacity_known: bool = True  # False: cacheConfig is on the page and does not say how many tokens fit

    @property
    def possible_votes(self) -> tuple[str, ...]:
        """The blocks of `spec.signals` that such pages can feed."""
        known = {signal for signal, found in self.signals.items() if found.value is not None or found.count is not None}
        if not self.is_capacity_known:
            known.discard(Signal.CACHE_CONFIG)
        return tuple(vote for vote, alternatives in _NEEDED.items() if any(each <= known for each in alternatives))

    @property
    def is_enough_to_scale(self) -> bool:
        """Whether at least one vote could be cast."""
        return bool(self.possible_votes)

    def to_document(self) -> dict[str, object]:
        """As it stands in `--output json`."""
        return {
            "engine": self.engine,
            "signals": {signal.value: found.to_document() for signal, found in self.signals.items()},
            "absent": [signal.value for signal in self.absent],
            "problems": list(self.problems),
        }


def report_page(text: str, engine: str | None = None) -> PageReport:
    """A page's text -> what it can supply, read as `engine` (a key of ENGINES), else as the engine it looks like.

    Never fails on a bad page: an empty, JSON or HTML one has no signals and a problem that says so. Raises KeyError
    for an engine that is not in ENGINES.
    """
    page = parse_page(text)
    looks_like = _most_like(page)
    read_as = engine or looks_like
    if read_as is None:
        nothing_known = ("No metric of a known engine is on the page: " + _some_names(page),)
        return PageReport(None, {}, REPORTED_SIGNALS, page.problems or nothing_known)
    metrics = ENGINES[read_as]
    signals: dict[Signal, SignalOnPage] = {}
    for signal in REPORTED_SIGNALS:
        source = metrics.signals.get(signal)
        found = _on_page(source, signal, page) if source is not None else None
        if found is not None:
            signals[signal] = found
    problems = list(page.problems)
    if looks_like is not None and looks_like != read_as:
        problems.append(f"The page looks like {ENGINES[looks_like].title} ({looks_like}), not {metrics.title}.")
    problems += _missing(metrics, signals, page)
    problems += _strange_numbers(signals)
    problems += _strange_page(metrics, page)
    cache_problems = _cache_problems(metrics, page)
    problems += cache_problems
    absent = tuple(signal for signal in REPORTED_SIGNALS if signal not in signals)
    return PageReport(read_as, signals, absent, tuple(problems), is_capacity_known=not cache_problems)


def _most_like(page: Page) -> str | None:
    """The engine with the most of its metrics on the page; the first in ENGINES of equals."""
    scores = {name: _score(metrics, page) for name, metrics in ENGINES.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else None


def _score(metrics: EngineMetrics, page: Page) -> int:
    found = sum(_on_page(source, signal, page) is not None for signal, source in metrics.signals.items())
    return found + sum(bool(_selected(mark, page)) for mark in metrics.page_marks)


def _selected(metric: Metric, page: Page, suffix: str = "") -> list[Sample]:
    where = dict(metric.where)
    return [
        sample
        for sample in page.samples.get(metric.name + suffix, ())
        if all(sample.labels.get(label) == value for label, value in where.items())
    ]


def _parts(metric: Metric, page: Page, suffix: str = "") -> dict[tuple[str, ...], float]:
    """One number for each part of the whole; of a part that is seen twice (by pid, rank) the largest counts."""
    parts: dict[tuple[str, ...], float] = {}
    for sample in _selected(metric, page, suffix):
        part = tuple(sample.labels.get(label, "") for label in metric.summed_over)
        parts[part] = max(sample.value, parts.get(part, -math.inf)) if not math.isnan(sample.value) else math.nan
    for other, combine in ((metric.times, _product), (metric.divided_by, _quotient)):
        if other is not None:
            others = _parts(other, page, suffix)
            parts = {part: combine(value, others[part]) for part, value in parts.items() if part in others}
    return parts


def _product(left: float, right: float) -> float:
    return left * right


def _quotient(left: float, right: float) -> float:
    return left / right if right else math.nan


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _on_page(source: SignalSource, signal: Signal, page: Page) -> SignalOnPage | None:
    """The signal under the first of its names that is on the page, or None."""
    for metric in source.metrics:
        if source.kind is MetricKind.HISTOGRAM:
            found = _histogram(metric, page)
        elif source.kind is MetricKind.RATIO and metric.divided_by is not None:
            found = _ratio(metric, metric.divided_by, page)
        else:
            found = _number(metric, signal, page)
        if found is not None:
            return found
    return None


def _number(metric: Metric, signal: Signal, page: Page) -> SignalOnPage | None:
    parts = _parts(metric, page)
    if not parts:
        return None
    total = sum(parts.values())
    value = total / len(parts) if signal is Signal.KV_CACHE_USAGE else total
    return SignalOnPage(metric.name, len(_selected(metric, page)), _finite(value))


def _histogram(metric: Metric, page: Page) -> SignalOnPage | None:
    counts, sums = _parts(metric, page, "_count"), _parts(metric, page, "_sum")
    buckets = _selected(metric, page, "_bucket")
    if not (counts or sums or buckets):
        return None
    series = len(_selected(metric, page, "_count")) or len(_selected(metric, page, "_sum")) or 1
    count = _finite(sum(counts.values())) if counts else None
    return SignalOnPage(
        metric.name, series, None, count, _finite(sum(sums.values())) if sums else None, has_distribution=True
    )


def _ratio(metric: Metric, requests: Metric, page: Page) -> SignalOnPage | None:
    tokens_alone = Metric(metric.name, metric.where, metric.summed_over)
    tokens, finished = _parts(tokens_alone, page), _parts(requests, page)
    if not tokens or not finished:
        return None
    series = len(_selected(tokens_alone, page))
    count, total = _finite(sum(finished.values())), _finite(sum(tokens.values()))
    return SignalOnPage(metric.name, series, None, count, total, has_distribution=True)


def _missing(metrics: EngineMetrics, signals: Mapping[Signal, SignalOnPage], page: Page) -> list[str]:
    """A sentence for each required signal that is not there, with the names on the page that resemble its own."""
    problems = []
    taken = {found.metric for found in signals.values()}
    names = [name for name in page.samples if name not in taken and not name.endswith(("_bucket", "_created"))]
    for signal, source in metrics.signals.items():
        if not source.is_required or signal in signals or signal not in REPORTED_SIGNALS or not page.samples:
            continue
        expected = source.metrics[0].name
        near = difflib.get_close_matches(expected, names, n=2, cutoff=0.7)
        hint = f"; renamed? Near it: {', '.join(near)}" if near else ""
        lazily = " (this engine shows it from the first request on)" if source.appears_with_traffic else ""
        problems.append(f"{signal.value}: {expected} is not on the page{lazily}{hint}.")
    return problems


def _strange_numbers(signals: Mapping[Signal, SignalOnPage]) -> list[str]:
    problems = []
    for signal, found in signals.items():
        if found.has_distribution:
            lacking = [word for word, number in (("count", found.count), ("sum", found.sum)) if number is None]
            if lacking:
                problems.append(f"{signal.value}: {found.metric} has no {' and no '.join(lacking)}.")
        elif found.value is None:
            problems.append(f"{signal.value}: {found.metric} is not a finite number.")
        elif found.value < 0:
            problems.append(f"{signal.value}: {found.metric} is negative ({found.value:g}).")
    usage = signals.get(Signal.KV_CACHE_USAGE)
    if usage is not None and usage.value is not None and usage.value > 1:
        problems.append(f"kvCacheUsage: {usage.metric} is {usage.value:g}, expected a share between 0 and 1.")
    running, waiting = signals.get(Signal.RUNNING_REQUESTS), signals.get(Signal.WAITING_REQUESTS)
    if running is not None and waiting is not None and running.value == 0 and (waiting.value or 0) > 0:
        problems.append(f"{waiting.value:g} requests wait and none runs: the engine may be stuck.")
    return problems


def _strange_page(metrics: EngineMetrics, page: Page) -> list[str]:
    problems = []
    marks = [sample for mark in metrics.page_marks for sample in _selected(mark, page)]
    if any("server" in sample.labels for sample in marks):
        problems.append("The series have a label `server`: this is a router's page; give the engine's own.")
    if any(sample.timestamp is not None for sample in marks):
        problems.append("The samples carry timestamps: Prometheus will go on showing them for 5 min after they stop.")
    fraction = _selected(Metric("nv_trt_llm_kv_cache_block_metrics", (("kv_cache_block_type", "fraction"),)), page)
    usage = metrics.signals.get(Signal.KV_CACHE_USAGE)
    computed = _on_page(usage, Signal.KV_CACHE_USAGE, page) if usage is not None and fraction else None
    if computed is not None and computed.value is not None and abs(fraction[0].value - computed.value) > 0.05:
        problems.append(
            f"kvCacheUsage: block type fraction says {fraction[0].value:g}, used / max is {computed.value:.4g}; "
            "used / max counts."
        )
    return problems


def _cache_problems(metrics: EngineMetrics, page: Page) -> list[str]:
    source = metrics.signals.get(Signal.CACHE_CONFIG)
    if source is None or source.kind is not MetricKind.INFO:
        return []
    infos: Sequence[Sample] = next((found for metric in source.metrics if (found := _selected(metric, page))), [])
    unknown = [sample for sample in infos if capacity_tokens(sample.labels) is None]
    if not unknown:
        return []
    blocks = unknown[0].labels.get("num_gpu_blocks", "missing")
    return [f"cacheConfig: the KV capacity is unknown (num_gpu_blocks is {blocks}, no kv_cache_size_tokens)."]


def _some_names(page: Page) -> str:
    names = sorted(page.samples)[:5]
    return f"it has {len(page.samples)} others, such as {', '.join(names)}." if names else "it has none at all."
