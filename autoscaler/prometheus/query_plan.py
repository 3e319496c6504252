"""Which questions give the signals of all pools: one a signal, however many pools, pods and engines there are.

A signal's query is a chain over all names it may have, `A or on (namespace, pod) B or ...`: for each pod the first
name that it exposes counts. Each link is first reduced with `max` to the labels that tell real parts apart, which
removes what is seen twice (twins of a highly available Prometheus, several scrape jobs, process ids), and the
parts are then added up to one number a pod:

    sum by (namespace, pod) (
      max by (namespace, pod, engine) (vllm:num_requests_running{namespace=~"a|b"})
      or on (namespace, pod) max by (namespace, pod, engine) (vllm_num_requests_running{namespace=~"a|b"}))

Counters become rates before the `max`, so resets are seen per series.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from autoscaler.engines import ENGINES
from autoscaler.engines.engine_metrics import Metric, MetricKind
from autoscaler.engines.kv_geometry import GEOMETRY_LABELS
from autoscaler.prometheus.promql import one_of, quoted
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import Question
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL, with_workload
from policies.signals import Signal

PART_LABEL = "tokenscaler_part"


class Part(StrEnum):
    """What a row of a query with several parts is."""

    PROMPT_TOKENS = "promptTokens"
    PROMPTS = "prompts"
    GENERATED_TOKENS = "generatedTokens"
    GENERATIONS = "generations"
    PREFIX_HITS = "prefixHits"
    PREFIX_QUERIES = "prefixQueries"
    SECONDS = "seconds"  # beside buckets: the sum of what was observed


class Purpose(StrEnum):
    """What a query is for. Values of `Signal` where it gives one."""

    SAMPLE_TIME = "sampleTime"  # unix time of each pod's newest sample
    WINDOW_START = "windowStart"  # a row for each pod with a sample in the first quarter of the rate window
    RUNNING_REQUESTS = Signal.RUNNING_REQUESTS.value
    WAITING_REQUESTS = Signal.WAITING_REQUESTS.value
    KV_CACHE_USAGE = Signal.KV_CACHE_USAGE.value  # a row an engine of a pod
    KV_CACHE_USED_TOKENS = Signal.KV_CACHE_USED_TOKENS.value
    PROMPT_TOKENS = Signal.PROMPT_TOKENS.value
    GENERATION_TOKENS = Signal.GENERATION_TOKENS.value
    REQUESTS_FINISHED = Signal.REQUESTS_FINISHED.value
    CACHE_CONFIG = Signal.CACHE_CONFIG.value  # a row an engine of a pod, the geometry in its labels
    KV_CACHE_CAPACITY_TOKENS = Signal.KV_CACHE_CAPACITY_TOKENS.value
    REQUEST_SIZES = "requestSizes"  # a row a workload and part
    PREFIX_CACHE = "prefixCache"  # a row a workload and part
    PREEMPTIONS = Signal.PREEMPTIONS.value
    PROMPT_LENGTHS = Signal.PROMPT_TOKENS_PER_REQUEST.value  # a row a workload and bucket
    ANSWER_LENGTHS = Signal.GENERATION_TOKENS_PER_REQUEST.value  # a row a workload and bucket
    TIME_TO_FIRST_TOKEN = Signal.TIME_TO_FIRST_TOKEN.value  # a row a workload and bucket
    INTER_TOKEN_LATENCY = Signal.INTER_TOKEN_LATENCY.value  # a row a workload and bucket, and one of the sum
    TIME_PER_OUTPUT_TOKEN = Signal.TIME_PER_OUTPUT_TOKEN.value  # a row a workload and bucket, and one of the sum


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The questions for a set of engines and namespaces: those of every tick, and those of every minute."""

    every_tick: Mapping[Purpose, Question]
    # In the order in which they matter. Three at a time find room beside those of every tick: of vLLM the latencies are
    # such three, so that what is learned of a minute is learned of one minute.
    slow: Mapping[Purpose, Question]


_PROCESSED = (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)

# A link of a chain: turns one metric's name into an expression.
_Link = Callable[[Metric], str]


def plan_queries(
    engines: Iterable[str], namespaces: Iterable[str], settings: QuerySettings, lag_seconds: int = 0
) -> QueryPlan:
    """The plan for these engines (keys of ENGINES) and namespaces; nothing to ask where no engine exposes a signal.

    Where all samples come `lag_seconds` late, the windows of rates end so long ago.
    """
    writer = _Writer(sorted(engines), one_of(settings.namespace_label, namespaces), settings, lag_seconds)
    every_tick = {
        Purpose.SAMPLE_TIME: writer.sample_time(),
        Purpose.WINDOW_START: writer.window_start(),
        Purpose.RUNNING_REQUESTS: writer.by_pod(Signal.RUNNING_REQUESTS),
        Purpose.WAITING_REQUESTS: writer.by_pod(Signal.WAITING_REQUESTS),
        Purpose.KV_CACHE_USAGE: writer.by_engine(Signal.KV_CACHE_USAGE),
        Purpose.KV_CACHE_USED_TOKENS: writer.by_pod(Signal.KV_CACHE_USED_TOKENS),
        Purpose.PROMPT_TOKENS: writer.by_pod(Signal.PROMPT_TOKENS),
        Purpose.GENERATION_TOKENS: writer.by_pod(Signal.GENERATION_TOKENS),
        Purpose.REQUESTS_FINISHED: writer.by_pod(Signal.REQUESTS_FINISHED),
    }
    latencies, requests = settings.latency_window_seconds, settings.request_window_seconds
    slow = {
        Purpose.CACHE_CONFIG: writer.cache_config(),
        Purpose.KV_CACHE_CAPACITY_TOKENS: writer.by_pod(Signal.KV_CACHE_CAPACITY_TOKENS),
        Purpose.REQUEST_SIZES: writer.request_sizes(),
        Purpose.PREFIX_CACHE: writer.prefix_cache(),
        Purpose.PROMPT_LENGTHS: writer.buckets(Signal.PROMPT_TOKENS_PER_REQUEST, requests),
        Purpose.ANSWER_LENGTHS: writer.buckets(Signal.GENERATION_TOKENS_PER_REQUEST, requests),
        Purpose.PREEMPTIONS: writer.by_pod(Signal.PREEMPTIONS),
        Purpose.TIME_TO_FIRST_TOKEN: writer.buckets(Signal.TIME_TO_FIRST_TOKEN, latencies),
        Purpose.INTER_TOKEN_LATENCY: writer.buckets(Signal.INTER_TOKEN_LATENCY, latencies, with_sum=True),
        Purpose.TIME_PER_OUTPUT_TOKEN: writer.buckets(Signal.TIME_PER_OUTPUT_TOKEN, latencies, with_sum=True),
    }
    return QueryPlan(_questions(every_tick), _questions(slow))


class PastPlan:
    """The questions about the past of engines' workloads, each a row a workload. For range queries over weeks.

    There every link of a chain costs as much as the first: with `present`, other names are not asked for. And what
    finds twins costs three times what adds up: with `is_seen_once`, that is left out.
    """

    def __init__(
        self,
        engines: Iterable[str],
        namespaces: Iterable[str],
        settings: QuerySettings,
        present: Collection[str] | None = None,
        *,
        is_seen_once: bool = False,
    ) -> None:
        self._engines = sorted(engines)
        self._namespaces = sorted(namespaces)
        self._settings = settings
        self._present = present
        self._is_seen_once = is_seen_once

    def only(self, present: Collection[str], *, is_seen_once: bool = False) -> PastPlan:
        """The same about these names alone."""
        return PastPlan(self._engines, self._namespaces, self._settings, present, is_seen_once=is_seen_once)

    def names(self) -> str:
        """A row for each name that there is, as its `__name__`; empty where no engine counts what is processed."""
        signals = (*_PROCESSED, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
        return self._writer().present_names(signals) if self.processed_tokens(window_seconds=60) else ""

    def parts_among_rows(self) -> str:
        """One number: the parts of pods that count what is processed, over their rows; 1 where each is seen once."""
        return self._writer().parts_among_rows(_PROCESSED)

    def processed_tokens(self, window_seconds: int) -> str:
        """Prompt and generated tokens per second over a window; empty where no engine counts them."""
        writer = self._writer(window_seconds)
        plain = writer.plain_rates_by_workload(_PROCESSED) if self._is_seen_once else ""
        return plain or writer.sum_by_workload(_PROCESSED)

    def finished_requests(self, window_seconds: int) -> str:
        """Requests that have finished per second over a window; empty where no engine counts them."""
        return self._writer(window_seconds).sum_by_workload([Signal.REQUESTS_FINISHED])

    def waiting_requests(self) -> str:
        """Requests in the engines' queues; workloads without any have no row. Empty where no engine tells."""
        return self._writer().positive_by_workload(Signal.WAITING_REQUESTS)

    def _writer(self, window_seconds: int = 60) -> _Writer:
        settings = self._settings.model_copy(update={"rate_window_seconds": window_seconds})
        matcher = one_of(settings.namespace_label, self._namespaces)
        return _Writer(self._engines, matcher, settings, present=self._present)


def _questions(queries: Mapping[Purpose, str]) -> dict[Purpose, Question]:
    return {purpose: Question(purpose.value, promql) for purpose, promql in queries.items() if promql}


def _as_part(promql: str, part: Part) -> str:
    return f'label_replace({promql}, {quoted(PART_LABEL)}, {quoted(part.value)}, "", "")'


class _Writer:
    """Writes the queries; an empty text where none of the engines exposes what is asked for."""

    def __init__(
        self,
        engines: list[str],
        namespace_matcher: str,
        settings: QuerySettings,
        lag_seconds: int = 0,
        present: Collection[str] | None = None,
    ) -> None:
        self._lag_seconds = lag_seconds
        self._present = present
        self._engines = [ENGINES[name] for name in engines]
        self._namespace_matcher = namespace_matcher
        self._settings = settings
        self._pod = (settings.namespace_label, settings.pod_label)

    def sample_time(self) -> str:
        marks = [mark for engine in self._engines for mark in engine.page_marks]
        return self._chain(marks, lambda mark: f"{self._max(mark)} (timestamp({self._selector(mark)}))", plain=True)

    def window_start(self) -> str:
        marks = [mark for engine in self._engines for mark in engine.page_marks]
        window = self._settings.rate_window_seconds
        quarter = max(1, window // 4)
        begins_ago = window + self._lag_seconds

        def present(mark: Metric) -> str:
            selector = self._selector(mark)
            return f"{self._max(mark)} (present_over_time({selector}[{quarter}s] offset {begins_ago - quarter}s))"

        return self._chain(marks, present, plain=True)

    def by_pod(self, signal: Signal) -> str:
        chain = self._chain(self._metrics(signal), self._number_of(signal))
        return f"sum by ({', '.join(self._pod)}) ({chain})" if chain else ""

    def by_engine(self, signal: Signal) -> str:
        return self._chain(self._metrics(signal), self._number_of(signal))

    def sum_by_workload(self, signals: Iterable[Signal]) -> str:
        """The sum of signals that a pod tells together; empty where no engine exposes one of them.

        Pods are added up first: the name of a workload is made once a pod, which costs more than all the rest.
        """
        sums = [self.by_pod(signal) for signal in signals]
        return self._summed_by_workload(" + ".join(sums)) if all(sums) else ""

    def plain_rates_by_workload(self, signals: Iterable[Signal]) -> str:
        """The same where each signal has one name and nothing is seen twice; empty where a name has none or several."""
        window, sums = self._settings.rate_window_seconds, []
        for signal in signals:
            metrics = self._metrics(signal)
            if len(metrics) != 1 or metrics[0].times is not None or metrics[0].divided_by is not None:
                return ""
            sums.append(self._summed_by_workload(f"rate({self._selector(metrics[0])}[{window}s])"))
        return " + ".join(sums)

    def positive_by_workload(self, signal: Signal) -> str:
        """A gauge of those pods alone where it is more than zero, which are few and cost little."""
        chain = self._chain(self._metrics(signal), lambda gauge: f"{self._max(gauge)} ({self._selector(gauge)} > 0)")
        return self._summed_by_workload(chain) if chain else ""

    def present_names(self, signals: Iterable[Signal]) -> str:
        return f"count by (__name__) ({self._any_of(metric for signal in signals for metric in self._metrics(signal))})"

    def parts_among_rows(self, signals: Iterable[Signal]) -> str:
        parts, rows = [], []
        for signal in signals:
            metrics = self._metrics(signal)
            labels = dict.fromkeys((*self._pod, *(label for metric in metrics for label in metric.summed_over)))
            parts.append(f"count(count by ({', '.join(labels)}) ({self._any_of(metrics)}))")
            rows.append(f"count({self._any_of(metrics)})")
        return f"({' + '.join(parts)}) / ({' + '.join(rows)})"

    def _any_of(self, metrics: Iterable[Metric]) -> str:
        return f"{{{one_of('__name__', {metric.name for metric in metrics})}, {self._namespace_matcher}}}"

    def cache_config(self) -> str:
        infos = [
            metric
            for engine in self._engines
            if (source := engine.signals.get(Signal.CACHE_CONFIG)) is not None and source.kind is MetricKind.INFO
            for metric in source.metrics
        ]
        return self._chain(infos, lambda info: f"{self._max(info, *GEOMETRY_LABELS)} ({self._selector(info)})")

    def request_sizes(self) -> str:
        prompts, generations = Signal.PROMPT_TOKENS_PER_REQUEST, Signal.GENERATION_TOKENS_PER_REQUEST
        return self._by_workload(
            {
                Part.PROMPT_TOKENS: self._totals(prompts),
                Part.PROMPTS: self._counts(prompts),
                Part.GENERATED_TOKENS: self._totals(generations),
                Part.GENERATIONS: self._counts(generations),
            }
        )

    def prefix_cache(self) -> str:
        return self._by_workload(
            {
                Part.PREFIX_HITS: self._metrics(Signal.PREFIX_CACHE_HITS),
                Part.PREFIX_QUERIES: self._metrics(Signal.PREFIX_CACHE_QUERIES),
            }
        )

    def buckets(self, signal: Signal, window_seconds: int, *, with_sum: bool = False) -> str:
        """A histogram's buckets; empty where no engine has one of it."""

        def rate(counter: Metric, *labels: str) -> str:
            return f"{self._max(counter, *labels)} (rate({self._selector(counter)}[{window_seconds}s]))"

        # A ratio of two counters has no buckets.
        histograms = [metric for metric in self._metrics(signal) if metric.divided_by is None]
        chain = self._chain([replace(each, name=f"{each.name}_bucket") for each in histograms], lambda m: rate(m, "le"))
        if not chain:
            return ""
        buckets = self._summed_by_workload(chain, "le")
        if not with_sum:
            return buckets
        sums = self._chain([replace(each, name=f"{each.name}_sum") for each in histograms], rate)
        return f"{buckets} or {_as_part(self._summed_by_workload(sums), Part.SECONDS)}"

    def _metrics(self, signal: Signal) -> list[Metric]:
        sources = [engine.signals[signal] for engine in self._engines if signal in engine.signals]
        metrics = [metric for source in sources for metric in source.metrics]
        return [metric for metric in metrics if self._present is None or metric.name in self._present]

    def _totals(self, signal: Signal) -> list[Metric]:
        """The counters of the tokens: a histogram's sum, a ratio's upper part."""
        return [
            replace(metric, divided_by=None) if metric.divided_by else replace(metric, name=f"{metric.name}_sum")
            for metric in self._metrics(signal)
        ]

    def _counts(self, signal: Signal) -> list[Metric]:
        """The counters of the requests: a histogram's count, a ratio's lower part."""
        return [metric.divided_by or replace(metric, name=f"{metric.name}_count") for metric in self._metrics(signal)]

    def _number_of(self, signal: Signal) -> _Link:
        kinds = {engine.signals[signal].kind for engine in self._engines if signal in engine.signals}
        window = f"[{self._settings.rate_window_seconds}s]"
        if self._lag_seconds:
            window += f" offset {self._lag_seconds}s"

        def gauge(metric: Metric) -> str:
            return f"{self._max(metric)} ({self._selector(metric)})"

        def rate(metric: Metric) -> str:
            return f"{self._max(metric)} (rate({self._selector(metric)}{window}))"

        return rate if kinds == {MetricKind.COUNTER} else gauge

    def _by_workload(self, parts: Mapping[Part, list[Metric]]) -> str:
        window = self._settings.request_window_seconds

        def increase(counter: Metric) -> str:
            return f"{self._max(counter)} (increase({self._selector(counter)}[{window}s]))"

        queries = []
        for part, counters in parts.items():
            chain = self._chain(counters, increase)
            if chain:
                queries.append(_as_part(self._summed_by_workload(chain), part))
        return " or ".join(queries)

    def _summed_by_workload(self, chain: str, *labels: str) -> str:
        by = ", ".join((self._settings.namespace_label, WORKLOAD_LABEL, *labels))
        return f"sum by ({by}) ({with_workload(chain, self._settings.pod_label)})"

    def _chain(self, metrics: Iterable[Metric], link: _Link, *, plain: bool = False) -> str:
        """`plain` takes one number a pod: the labels of its parts do not matter."""
        expressions = []
        for metric in metrics:
            metric_here = replace(metric, summed_over=()) if plain else metric
            expression = link(metric_here)
            for sign, other in (("*", metric.times), ("/", metric.divided_by)):
                if other is not None:
                    expression = f"({expression} {sign} {link(other)})"
            expressions.append(expression)
        return f" or on ({', '.join(self._pod)}) ".join(dict.fromkeys(expressions))

    def _max(self, metric: Metric, *labels: str) -> str:
        return f"max by ({', '.join((*self._pod, *metric.summed_over, *labels))})"

    def _selector(self, metric: Metric) -> str:
        matchers = [f"{label}={quoted(value)}" for label, value in metric.where]
        return f"{metric.name}{{{', '.join([self._namespace_matcher, *matchers])}}}"
