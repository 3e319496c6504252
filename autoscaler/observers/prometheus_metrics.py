"""The metrics observer: asks Prometheus for all pools at once and joins the answers to the pods that are alive."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from autoscaler.observers.kv_cache import kv_cache_of
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.pod_memory import PodMemory
from autoscaler.observers.pool_signals import (
    DERIVED_FROM_LABELS,
    PoolMemory,
    TickTrouble,
    has_replica_signals,
    read_pool,
)
from autoscaler.observers.prometheus_rows import (
    EngineKey,
    PodKey,
    WorkloadKey,
    buckets_by_workload,
    capacities_by_engine,
    numbers_by_engine,
    numbers_by_pod,
    parts_by_workload,
)
from autoscaler.observers.request_means import BoundedMean, HitShare
from autoscaler.observers.slow_queries import SlowQueries
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import PrometheusFailure, Vector
from autoscaler.prometheus.quantiles import Quantile, evenness_floor, quantile
from autoscaler.prometheus.query_plan import Part, Purpose, QueryPlan, plan_queries
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import Answer, QuerySource
from autoscaler.prometheus.user_queries import NotANumber, QueryResult, UserQueries
from autoscaler.prometheus.workload_names import workload_of
from policies.observation import (
    MetricsObservation,
    ObservationUnavailable,
    PoolLatency,
    QueryUnknown,
    QueryValue,
)
from policies.signals import PoolSignal, Signal

# Slow answers are kept this many intervals, so that one failure changes nothing.
_SLOW_ANSWERS_KEPT = 2.5

# A longer pause between two samples of a pod may have taken the older ones out of the rate window.
_GAP_INTERVALS = 1.5
# How long it may take until a new pod is scraped for the first time.
_DISCOVERY_SECONDS = 30.0

_BY_POD = (
    Purpose.RUNNING_REQUESTS,
    Purpose.WAITING_REQUESTS,
    Purpose.KV_CACHE_USED_TOKENS,
    Purpose.KV_CACHE_CAPACITY_TOKENS,
    Purpose.PROMPT_TOKENS,
    Purpose.GENERATION_TOKENS,
    Purpose.REQUESTS_FINISHED,
    Purpose.PREEMPTIONS,
)


@dataclass(slots=True)
class _Tables:
    """The newest answers, by pod and by workload. Those of slow queries outlive their tick."""

    numbers: dict[Purpose, dict[PodKey, float]] = field(default_factory=dict)
    usages: dict[PodKey, list[tuple[EngineKey, float]]] = field(default_factory=dict)
    capacities: dict[PodKey, dict[EngineKey, float]] = field(default_factory=dict)
    parts: dict[Purpose, dict[WorkloadKey, dict[Part, float]]] = field(default_factory=dict)
    buckets: dict[Purpose, dict[WorkloadKey, dict[float, float]]] = field(default_factory=dict)
    answered_at_seconds: dict[Purpose, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Pool:
    """All that is remembered of a pool."""

    signals: PoolMemory
    prompt_tokens: BoundedMean = field(default_factory=BoundedMean)
    generated_tokens: BoundedMean = field(default_factory=BoundedMean)
    prefix_hits: HitShare = field(default_factory=HitShare)
    first_token_buckets: Mapping[float, float] = field(default_factory=dict)
    gap_buckets: Mapping[float, float] = field(default_factory=dict)
    latency: PoolLatency = field(default_factory=PoolLatency)


@dataclass(frozen=True, slots=True)
class _Round:
    """One tick's answers: to the plan's questions and to the users'."""

    engines: Mapping[Purpose, Answer]
    users: Mapping[str, QueryResult]
    first_failure: PrometheusFailure | None
    is_all_dead: bool  # nothing at all was answered, and not because the queries are wrong

    @property
    def is_engine_dead(self) -> bool:
        """Whether nothing was answered of what was asked about the engines."""
        return bool(self.engines) and all(isinstance(answer, PrometheusFailure) for answer in self.engines.values())


class PrometheusMetricsObserver:
    """A MetricsObserver on Prometheus; keeps what it needs to judge the next answers, a few hundred bytes a pod."""

    def __init__(self, source: QuerySource, settings: QuerySettings) -> None:
        self._source = source
        self._settings = settings
        self._plans: dict[tuple[frozenset[str], frozenset[str]], QueryPlan] = {}
        self._slow = SlowQueries(settings.slow_interval_seconds)
        self._urgent: frozenset[Purpose] = frozenset()
        self._user_queries = UserQueries(settings.user_queries_per_request)
        self._tables = _Tables()
        self._pods: dict[PodKey, PodMemory] = {}
        self._pools: dict[PoolKey, _Pool] = {}
        self._prometheus_is_ahead_seconds = 0.0

    def observe_metrics(
        self, pools: Sequence[PoolQuery], now_seconds: float
    ) -> Mapping[PoolKey, MetricsObservation | ObservationUnavailable]:
        """An entry for every pool that was asked for, whatever happened. Takes at most two rounds of the source."""
        self._remember_pools(pools)
        asked = self._ask(pools, now_seconds)
        prometheus_now = self._prometheus_time(asked.engines, now_seconds)
        trouble, warnings = self._take(asked.engines, now_seconds)
        self._update_pods(pools, asked.engines, prometheus_now)
        self._update_means(pools, asked.engines, now_seconds)
        return {
            pool.key: self._observe_pool(pool, asked, trouble, warnings, prometheus_now, now_seconds) for pool in pools
        }

    # Asking.

    def _plan(self, pools: Sequence[PoolQuery]) -> QueryPlan:
        with_signals = [pool for pool in pools if has_replica_signals(pool.engine)]
        engines = frozenset(pool.engine for pool in with_signals)
        namespaces = frozenset(pool.key[0] for pool in with_signals)
        if not engines:
            return QueryPlan({}, {})
        key = (engines, namespaces)
        if key not in self._plans:
            # Only the newest: the set of namespaces changes seldom.
            self._plans = {key: plan_queries(engines, namespaces, self._settings)}
        return self._plans[key]

    def _ask(self, pools: Sequence[PoolQuery], now_seconds: float) -> _Round:
        plan = self._plan(pools)
        room = self._settings.maximum_queries_per_tick - len(plan.every_tick)
        due = self._slow.due(plan.slow, self._urgent, room, now_seconds)
        questions = {**plan.every_tick, **{purpose: plan.slow[purpose] for purpose in due}}
        expressions = [promql for pool in pools for promql in pool.queries.values()]
        batches = self._user_queries.batches(expressions, now_seconds)
        answers = list(self._source.ask([*questions.values(), *(batch.question for batch in batches)]))
        engines = dict(zip(questions, answers, strict=False))
        users, again = self._user_queries.read(batches, answers[len(questions) :], now_seconds)
        if again:
            alone = self._user_queries.alone(again)
            single_answers = list(self._source.ask([batch.question for batch in alone]))
            users |= self._user_queries.read(alone, single_answers, now_seconds)[0]
            self._user_queries.learn_culprits(again, now_seconds)
            answers += single_answers
        for purpose in due:
            if isinstance(engines[purpose], PrometheusFailure):
                self._slow.failed(purpose, now_seconds)
        failures = [answer for answer in answers if isinstance(answer, PrometheusFailure)]
        is_all_dead = bool(answers) and len(failures) == len(answers)
        is_all_dead = is_all_dead and not any(failure.is_of_the_query for failure in failures)
        return _Round(engines, users, failures[0] if failures else None, is_all_dead)

    def _prometheus_time(self, answers: Mapping[Purpose, Answer], now_seconds: float) -> float:
        """Prometheus' clock: ages are differences of its own times, so that our clock may be wrong."""
        for answer in answers.values():
            if isinstance(answer, Vector) and answer.evaluated_at_seconds is not None:
                self._prometheus_is_ahead_seconds = answer.evaluated_at_seconds - now_seconds
                break
        return now_seconds + self._prometheus_is_ahead_seconds

    # Taking up the answers.

    def _take(self, answers: Mapping[Purpose, Answer], now_seconds: float) -> tuple[TickTrouble, tuple[str, ...]]:
        failed: dict[Signal, str] = {}
        partial: set[Signal] = set()
        warnings: list[str] = []
        for purpose, answer in answers.items():
            if isinstance(answer, PrometheusFailure):
                warnings.append(answer.message)
                if not self._is_slow_and_kept(purpose, now_seconds):
                    failed |= dict.fromkeys(_signals_of(purpose), answer.message)
                continue
            warnings += [f"query {purpose.value}: {warning}" for warning in answer.warnings]
            if answer.is_partial:
                partial.update(_signals_of(purpose))
            self._store(purpose, answer, now_seconds)
        trouble = TickTrouble(failed, frozenset(partial), self._settings.rate_window_seconds)
        return trouble, tuple(warnings)

    def _is_slow_and_kept(self, purpose: Purpose, now_seconds: float) -> bool:
        answered_at = self._tables.answered_at_seconds.get(purpose)
        kept = _SLOW_ANSWERS_KEPT * self._settings.slow_interval_seconds
        return purpose in _SLOW and answered_at is not None and now_seconds - answered_at < kept

    def _store(self, purpose: Purpose, answer: Vector, now_seconds: float) -> None:
        tables, settings = self._tables, self._settings
        tables.answered_at_seconds[purpose] = now_seconds
        if purpose in _BY_POD:
            numbers = numbers_by_pod(answer, settings)
            # A part of a slow answer is laid over the last whole one, which is kept for longer than a tick anyway.
            lies_over = tables.numbers.get(purpose, {}) if answer.is_partial and purpose in _SLOW else {}
            tables.numbers[purpose] = {**lies_over, **numbers} if lies_over else numbers
        elif purpose is Purpose.KV_CACHE_USAGE:
            tables.usages = numbers_by_engine(answer, settings)
        elif purpose is Purpose.CACHE_CONFIG:
            capacities = capacities_by_engine(answer, settings)
            tables.capacities = {**tables.capacities, **capacities} if answer.is_partial else capacities
        elif purpose in _BY_WORKLOAD and not answer.is_partial:
            # Sums over a part of the pods would be taken for sums over all.
            if purpose in (Purpose.REQUEST_SIZES, Purpose.PREFIX_CACHE):
                tables.parts[purpose] = parts_by_workload(answer, settings)
            else:
                tables.buckets[purpose] = buckets_by_workload(answer, settings)

    # Pods.

    def _remember_pools(self, pools: Sequence[PoolQuery]) -> None:
        known, self._pools = self._pools, {}
        for pool in pools:
            remembered = known.get(pool.key)
            if remembered is None or remembered.signals.engine != pool.engine:
                remembered = _Pool(PoolMemory(pool.engine))
            self._pools[pool.key] = remembered

    def _update_pods(
        self, pools: Sequence[PoolQuery], answers: Mapping[Purpose, Answer], prometheus_now: float
    ) -> None:
        """Takes over the newest samples of live pods; pods that are gone are forgotten with all they showed."""
        newest = self._numbers(answers.get(Purpose.SAMPLE_TIME))
        filling = self._numbers(answers.get(Purpose.WINDOW_START))
        known, self._pods = self._pods, {}
        without_size = False
        for pool in pools:
            if not has_replica_signals(pool.engine):
                continue
            interval_seconds = self._pools[pool.key].signals.interval.seconds
            advances = 0.0
            advanced = 0
            for pod in pool.pods:
                key = (pool.key[0], pod.name)
                memory = known.get(key)
                sampled_at = newest.get(key)
                if sampled_at is not None and math.isfinite(sampled_at):
                    if memory is None:
                        memory = PodMemory(sampled_at, prometheus_now)
                    newer_by = memory.advance(sampled_at, prometheus_now)
                    if newer_by > 0:
                        advances += newer_by
                        advanced += 1
                    if key in filling:
                        memory.fills_rate_window = True
                    elif newer_by > _GAP_INTERVALS * interval_seconds:
                        memory.fills_rate_window = False
                    has_rates = memory.fills_rate_window or self._is_young(pod, prometheus_now)
                    memory.values, size_is_known = self._values(key, has_rates)
                    without_size = without_size or not size_is_known
                if memory is not None:
                    self._pods[key] = memory
            if advanced:
                self._pools[pool.key].signals.interval.learn(advances / advanced)
        self._urgent = (
            frozenset({Purpose.CACHE_CONFIG, Purpose.KV_CACHE_CAPACITY_TOKENS}) if without_size else frozenset()
        )

    def _numbers(self, answer: Answer | None) -> dict[PodKey, float]:
        return numbers_by_pod(answer, self._settings) if isinstance(answer, Vector) else {}

    def _is_young(self, pod: LivePod, now_seconds: float) -> bool:
        """Whether a pod's counters began inside the rate window: what they show is all it has done in that time.

        Of an older pod whose samples begin inside the window (Prometheus was down, or scrapes it only now) the rate
        would be a fraction of the truth.
        """
        since = pod.ready_since_seconds
        return since is not None and now_seconds - since < self._settings.rate_window_seconds + _DISCOVERY_SECONDS

    def _values(self, key: PodKey, has_rates: bool) -> tuple[list[float | None], bool]:
        """A pod's signals in the order of REPLICA_SIGNALS, and whether the size of its KV cache has been asked for."""
        numbers, nothing = self._tables.numbers, _NOTHING
        usages, capacities = self._tables.usages.get(key, ()), self._tables.capacities.get(key)
        used = numbers.get(Purpose.KV_CACHE_USED_TOKENS, nothing).get(key)
        capacity = numbers.get(Purpose.KV_CACHE_CAPACITY_TOKENS, nothing).get(key)
        cache = kv_cache_of(usages, capacities, used, capacity)
        values = [
            numbers.get(Purpose.RUNNING_REQUESTS, nothing).get(key),
            numbers.get(Purpose.WAITING_REQUESTS, nothing).get(key),
            cache.usage,
            cache.used_tokens,
            cache.capacity_tokens,
        ]
        for purpose in _RATES:
            rate = numbers.get(purpose, nothing).get(key)
            values.append(rate if rate is None or has_rates else math.nan)
        return values, not usages or capacities is not None or capacity is not None

    # Means and quantiles of whole pools.

    def _update_means(self, pools: Sequence[PoolQuery], answers: Mapping[Purpose, Answer], now_seconds: float) -> None:
        fresh = {
            purpose
            for purpose in _BY_WORKLOAD
            if isinstance(answer := answers.get(purpose), Vector) and not answer.is_partial
        }
        outdated = {
            purpose
            for purpose in (Purpose.TIME_TO_FIRST_TOKEN, Purpose.INTER_TOKEN_LATENCY)
            if purpose in answers and purpose not in fresh and not self._is_slow_and_kept(purpose, now_seconds)
        }
        for purpose in outdated:
            self._tables.buckets[purpose] = {}
        if not fresh | outdated:
            return
        owned = {pool.key: _workloads_of(pool) for pool in pools if has_replica_signals(pool.engine)}
        claims = Counter(workload for workloads in owned.values() for workload in workloads)
        for key, workloads in owned.items():
            # Two pools whose pods' names come down to the same cannot be told apart: neither gets the numbers.
            mine = [workload for workload in workloads if claims[workload] == 1]
            self._update_pool_means(self._pools[key], mine, fresh, outdated, now_seconds)

    def _update_pool_means(
        self,
        pool: _Pool,
        workloads: Sequence[WorkloadKey],
        fresh: set[Purpose],
        outdated: set[Purpose],
        now_seconds: float,
    ) -> None:
        if Purpose.REQUEST_SIZES in fresh:
            sizes = _added_parts(self._tables.parts[Purpose.REQUEST_SIZES], workloads)
            pool.prompt_tokens.update(sizes.get(Part.PROMPT_TOKENS), sizes.get(Part.PROMPTS), now_seconds)
            pool.generated_tokens.update(sizes.get(Part.GENERATED_TOKENS), sizes.get(Part.GENERATIONS), now_seconds)
        if Purpose.PREFIX_CACHE in fresh:
            cache = _added_parts(self._tables.parts[Purpose.PREFIX_CACHE], workloads)
            pool.prefix_hits.update(cache.get(Part.PREFIX_HITS), cache.get(Part.PREFIX_QUERIES))
        changed = fresh | outdated
        if Purpose.TIME_TO_FIRST_TOKEN in changed:
            table = self._tables.buckets.get(Purpose.TIME_TO_FIRST_TOKEN, {})
            pool.first_token_buckets = _added_buckets(table, workloads)
        if Purpose.INTER_TOKEN_LATENCY in changed:
            table = self._tables.buckets.get(Purpose.INTER_TOKEN_LATENCY, {})
            pool.gap_buckets = _added_buckets(table, workloads)
        if changed & {Purpose.TIME_TO_FIRST_TOKEN, Purpose.INTER_TOKEN_LATENCY}:
            pool.latency = _latency(pool.first_token_buckets, pool.gap_buckets)

    # One pool's observation.

    def _observe_pool(
        self,
        pool: PoolQuery,
        asked: _Round,
        trouble: TickTrouble,
        warnings: tuple[str, ...],
        prometheus_now: float,
        now_seconds: float,
    ) -> MetricsObservation | ObservationUnavailable:
        memory = self._pools[pool.key]
        results = {name: asked.users[promql] for name, promql in pool.queries.items()}
        is_dead = asked.is_engine_dead if has_replica_signals(pool.engine) else asked.is_all_dead
        if is_dead and asked.first_failure and not any(isinstance(result, QueryValue) for result in results.values()):
            return ObservationUnavailable(asked.first_failure.reason, asked.first_failure.message)
        pods = [(pod, self._pods.get((pool.key[0], pod.name))) for pod in pool.pods]
        reading = read_pool(memory.signals, pods, trouble, prometheus_now)
        own_warnings = warnings + reading.warnings if has_replica_signals(pool.engine) else ()
        if has_replica_signals(pool.engine) and reading.ready_replicas and all(page is None for _, page in pods):
            own_warnings += (self._nothing_seen(pool.pods),)
        is_idle = _is_proven_idle(reading.signals, reading.ready_replicas)
        return MetricsObservation(
            signals=reading.signals,
            queries={name: _value_of(result, is_idle) for name, result in results.items()},
            ready_replicas=reading.ready_replicas,
            fresh_replicas=reading.fresh_replicas,
            prompt_tokens_per_request=memory.prompt_tokens.value,
            generation_tokens_per_request=memory.generated_tokens.value,
            prefix_cache_hit_share=memory.prefix_hits.value,
            latency=memory.latency,
            warnings=own_warnings,
        )

    def _nothing_seen(self, pods: Sequence[LivePod]) -> str:
        settings = self._settings
        return (
            f"no sample of any of the pool's {len(pods)} pods is in Prometheus: are they scraped, and do their series "
            f"carry the labels {settings.namespace_label} and {settings.pod_label}?"
        )


_RATES = (Purpose.PROMPT_TOKENS, Purpose.GENERATION_TOKENS, Purpose.REQUESTS_FINISHED, Purpose.PREEMPTIONS)
_NOTHING: Mapping[PodKey, float] = {}
_BY_WORKLOAD = (
    Purpose.REQUEST_SIZES,
    Purpose.PREFIX_CACHE,
    Purpose.TIME_TO_FIRST_TOKEN,
    Purpose.INTER_TOKEN_LATENCY,
)
_SLOW = frozenset((*_BY_WORKLOAD, Purpose.CACHE_CONFIG, Purpose.KV_CACHE_CAPACITY_TOKENS, Purpose.PREEMPTIONS))


def _signals_of(purpose: Purpose) -> tuple[Signal, ...]:
    """The replicas' signals that need this query's answer."""
    if purpose is Purpose.KV_CACHE_USAGE:
        return (Signal.KV_CACHE_USAGE, *DERIVED_FROM_LABELS)
    if purpose is Purpose.CACHE_CONFIG:
        return DERIVED_FROM_LABELS
    if purpose in _BY_POD:
        return (Signal(purpose.value),)
    return ()


def _workloads_of(pool: PoolQuery) -> set[WorkloadKey]:
    """As Prometheus derives them from the pods' names; of a pool without pods that of its target."""
    names = {workload_of(pod.name) for pod in pool.pods} or {pool.target_name}
    return {(pool.key[0], name) for name in names}


def _added_parts(
    table: Mapping[WorkloadKey, Mapping[Part, float]], workloads: Iterable[WorkloadKey]
) -> dict[Part, float]:
    total: dict[Part, float] = {}
    for workload in workloads:
        for part, number in table.get(workload, {}).items():
            total[part] = total.get(part, 0.0) + number
    return total


def _added_buckets(
    table: Mapping[WorkloadKey, Mapping[float, float]], workloads: Iterable[WorkloadKey]
) -> dict[float, float]:
    total: dict[float, float] = {}
    for workload in workloads:
        for edge, number in table.get(workload, {}).items():
            total[edge] = total.get(edge, 0.0) + number
    return total


def _latency(first_token: Mapping[float, float], gaps: Mapping[float, float]) -> PoolLatency:
    first, median, tail = quantile(0.99, first_token), quantile(0.50, gaps), quantile(0.99, gaps)
    return PoolLatency(
        time_to_first_token_p99_seconds=_number(first),
        inter_token_latency_p50_seconds=_number(median),
        inter_token_latency_p99_seconds=_number(tail),
        inter_token_latency_evenness_floor=evenness_floor(gaps),
        is_censored=any(found is not None and found.is_censored for found in (first, median, tail)),
    )


def _number(found: Quantile | None) -> float | None:
    return None if found is None else found.value


def _is_proven_idle(signals: Mapping[Signal, PoolSignal], ready_replicas: int) -> bool:
    """Whether every ready replica was scraped just now and says that nothing runs, waits, or has finished."""
    needed = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
    return ready_replicas > 0 and all(
        signal in signals and signals[signal].fresh_replicas == ready_replicas and signals[signal].total == 0
        for signal in needed
    )


def _value_of(result: QueryResult, is_idle: bool) -> QueryValue | QueryUnknown:
    if not isinstance(result, NotANumber):
        return result
    # 0 / 0: a mean or share of no traffic.
    return QueryValue(0.0, 0.0) if is_idle else QueryUnknown("the query is not a number")
