"""The metrics observer: asks Prometheus for all pools at once and joins the answers to the pods that are alive.

Read beside it: `answer_tables.py` (answers as tables), `replica_signals.py` (what an engine shows of a replica),
`pod_memory.py` (is a sample still good?), `pool_signals.py` (one reading a replica), `pool_means.py` (request sizes and
latency).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autoscaler.observers.answer_tables import BY_WORKLOAD, AnswerTables, signals_of
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.pod_memory import PodMemory
from autoscaler.observers.pool_means import PoolMeans, workloads_of_pools
from autoscaler.observers.pool_signals import LEAST_DISCOVERY_SECONDS, PoolMemory, TickTrouble, read_pool
from autoscaler.observers.prometheus_rows import PodKey, numbers_by_pod
from autoscaler.observers.replica_signals import REPLICA_SIGNALS, has_replica_signals, take_values
from autoscaler.observers.slow_queries import SlowQueries
from autoscaler.observers.steady_lag import SteadyLag
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import PrometheusFailure, Vector
from autoscaler.prometheus.query_plan import Purpose, QueryPlan, plan_queries
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import Answer, QuerySource
from autoscaler.prometheus.user_queries import NotANumber, QueryResult, UserQueries
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown, QueryValue
from policies.signals import PoolSignal, Signal

# A longer pause between two samples of a pod may have taken the older ones out of the rate window.
_GAP_INTERVALS = 1.5

# What is on a page from its first sample on, and where it stands in a pod's memory.
_GAUGES = tuple(
    (purpose, REPLICA_SIGNALS.index(Signal(purpose.value)))
    for purpose in (Purpose.RUNNING_REQUESTS, Purpose.WAITING_REQUESTS, Purpose.KV_CACHE_USAGE)
)
_SIZES = frozenset({Purpose.CACHE_CONFIG, Purpose.KV_CACHE_CAPACITY_TOKENS})


@dataclass(slots=True)
class _Pool:
    """All that is remembered of a pool."""

    signals: PoolMemory
    means: PoolMeans = field(default_factory=PoolMeans)


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
        self._lag = SteadyLag()
        self._plan_key: tuple[frozenset[str], frozenset[str], int] = (frozenset(), frozenset(), 0)
        self._newest_plan = QueryPlan({}, {})
        self._slow = SlowQueries(settings.slow_interval_seconds)
        self._urgent: frozenset[Purpose] = frozenset()
        self._user_queries = UserQueries(settings.user_queries_per_request)
        self._tables = AnswerTables(settings)
        self._in_vain: dict[Purpose, str] = {}  # why a query that no answer is kept of has failed when last asked
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
        return {pool.key: self._observe_pool(pool, asked, trouble, warnings, prometheus_now) for pool in pools}

    def _remember_pools(self, pools: Sequence[PoolQuery]) -> None:
        known, self._pools = self._pools, {}
        for pool in pools:
            remembered = known.get(pool.key)
            if remembered is None or remembered.signals.engine != pool.engine:
                remembered = _Pool(PoolMemory(pool.engine))
            self._pools[pool.key] = remembered

    def _plan(self, pools: Sequence[PoolQuery]) -> QueryPlan:
        with_signals = [pool for pool in pools if has_replica_signals(pool.engine)]
        engines = frozenset(pool.engine for pool in with_signals)
        namespaces, lag_seconds = frozenset(pool.key[0] for pool in with_signals), self._lag.seconds
        key = (engines, namespaces, lag_seconds)
        if key != self._plan_key:
            self._plan_key = key
            self._newest_plan = (
                plan_queries(engines, namespaces, self._settings, lag_seconds) if with_signals else QueryPlan({}, {})
            )
        return self._newest_plan

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

    def _take(self, answers: Mapping[Purpose, Answer], now_seconds: float) -> tuple[TickTrouble, tuple[str, ...]]:
        """Stores the answers; returns what is therefore unknown, and the warnings that concern every pool."""
        partial: set[Signal] = set()
        warnings: list[str] = []
        for purpose, answer in answers.items():
            if isinstance(answer, PrometheusFailure):
                warnings.append(answer.message)
                if not self._tables.is_kept(purpose):
                    self._in_vain[purpose] = answer.message
                continue
            self._in_vain.pop(purpose, None)
            warnings += [f"query {purpose.value}: {warning}" for warning in answer.warnings]
            if answer.is_partial:
                partial.update(signals_of(purpose))
            self._tables.store(purpose, answer, now_seconds)
        sample_times = answers.get(Purpose.SAMPLE_TIME)
        trouble = TickTrouble(
            self._failed_signals(),
            frozenset(partial),
            pages_are_unknown=not isinstance(sample_times, Vector) or sample_times.is_partial,
            rate_window_seconds=self._settings.rate_window_seconds,
        )
        return trouble, tuple(warnings)

    def _failed_signals(self) -> dict[Signal, str]:
        """What is unknown of everybody until its query is answered, also at ticks that do not ask it."""
        plan = self._newest_plan
        return {
            signal: why
            for purpose, why in self._in_vain.items()
            if purpose in plan.every_tick or purpose in plan.slow
            for signal in signals_of(purpose)
        }

    def requests_in_flight(self, namespace: str, pod: str) -> tuple[float, float] | None:
        """When a pod's newest sample was taken, and what ran and waited there; None for one that was never seen."""
        memory = self._pods.get((namespace, pod))
        return memory.in_flight[-1] if memory is not None and memory.in_flight else None

    def _update_pods(
        self, pools: Sequence[PoolQuery], answers: Mapping[Purpose, Answer], prometheus_now: float
    ) -> None:
        """Takes over the newest samples of live pods; pods that are gone are forgotten with all they showed."""
        sample_times = self._numbers(answers.get(Purpose.SAMPLE_TIME))
        newest = {key: at for key, at in sample_times.items() if math.isfinite(at)}
        filling = self._numbers(answers.get(Purpose.WINDOW_START))
        gauges = [(gauge, place) for gauge, place in _GAUGES if _is_whole(answers.get(gauge))]
        known, self._pods = self._pods, {}
        is_size_missing = False
        ages_at_arrival: list[float] = []
        for pool in pools:
            interval = self._pools[pool.key].signals.interval
            advances = []
            for pod in pool.pods if has_replica_signals(pool.engine) else ():
                key = (pool.key[0], pod.name)
                memory = known.get(key)
                sampled_at = newest.get(key)
                if sampled_at is not None and not (memory is not None and self._is_torn(key, memory, gauges)):
                    if memory is None:
                        memory = PodMemory(sampled_at, prometheus_now)
                    newer_by = memory.advance(sampled_at, prometheus_now)
                    if newer_by > 0:
                        advances.append(newer_by)
                        ages_at_arrival.append(prometheus_now - sampled_at)
                    if key in filling:
                        memory.fills_rate_window = True
                    elif newer_by > _GAP_INTERVALS * interval.seconds:
                        memory.fills_rate_window = False
                    has_rates = memory.fills_rate_window or self._is_young(pod, prometheus_now)
                    take_values(memory, self._tables.values_of(key, has_rates))
                    is_size_missing = is_size_missing or not self._tables.has_size_of(key)
                if memory is not None:
                    self._pods[key] = memory
            if advances:
                interval.learn(sum(advances) / len(advances))
        self._lag.learn(ages_at_arrival)
        self._urgent = _SIZES if is_size_missing else frozenset()

    def _is_torn(self, key: PodKey, memory: PodMemory, gauges: Sequence[tuple[Purpose, int]]) -> bool:
        """Whether a gauge is missing that the page had before: its scrape failed while the queries were answered.

        What came before stands then, and grows old. What is missing at two looks in a row has really gone.
        """
        memory.was_torn = not memory.was_torn and any(
            memory.values[place] is not None and self._tables.lacks(gauge, key) for gauge, place in gauges
        )
        return memory.was_torn

    def _numbers(self, answer: Answer | None) -> dict[PodKey, float]:
        return numbers_by_pod(answer, self._settings) if isinstance(answer, Vector) else {}

    def _is_young(self, pod: LivePod, now_seconds: float) -> bool:
        """Whether a pod's counters began inside the rate window: what they show is all it has done in that time.

        Of an older pod whose samples begin inside the window (Prometheus was down, or scrapes it only now) the rate
        would be a fraction of the truth.
        """
        since = pod.ready_since_seconds
        window_begins_ago = self._settings.rate_window_seconds + self._lag.seconds
        return since is not None and now_seconds - since < window_begins_ago + LEAST_DISCOVERY_SECONDS

    def _update_means(self, pools: Sequence[PoolQuery], answers: Mapping[Purpose, Answer], now_seconds: float) -> None:
        answered = {purpose for purpose in BY_WORKLOAD if _is_whole(answers.get(purpose))}
        changed = answered | self._tables.expire(now_seconds)
        if not changed:
            return
        owned = workloads_of_pools(pool for pool in pools if has_replica_signals(pool.engine))
        for pool in pools:
            workloads = owned.get(pool.key)
            if workloads is not None:
                means = self._pools[pool.key].means
                means.update(workloads, self._tables, changed, pool.objectives, now_seconds)

    def _observe_pool(
        self,
        pool: PoolQuery,
        asked: _Round,
        trouble: TickTrouble,
        warnings: tuple[str, ...],
        prometheus_now: float,
    ) -> MetricsObservation | ObservationUnavailable:
        memory = self._pools[pool.key]
        results = {name: asked.users[promql] for name, promql in pool.queries.items()}
        has_signals = has_replica_signals(pool.engine)
        is_dead = asked.is_engine_dead if has_signals else asked.is_all_dead
        if is_dead and asked.first_failure and not any(isinstance(result, QueryValue) for result in results.values()):
            return ObservationUnavailable(asked.first_failure.reason, asked.first_failure.message)
        pods = [(pod, self._pods.get((pool.key[0], pod.name))) for pod in pool.pods]
        reading = read_pool(memory.signals, pods, trouble, prometheus_now)
        own_warnings = warnings + reading.warnings if has_signals else ()
        if has_signals and reading.ready_replicas and all(page is None for _, page in pods):
            own_warnings += (self._nothing_seen(pool.pods),)
        is_idle = _is_proven_idle(reading.signals, reading.ready_replicas)
        return MetricsObservation(
            signals=reading.signals,
            queries={name: _value_of(result, is_idle) for name, result in results.items()},
            ready_replicas=reading.ready_replicas,
            fresh_replicas=reading.fresh_replicas,
            prompt_tokens_per_request=memory.means.prompt_tokens.value,
            generation_tokens_per_request=memory.means.generated_tokens.value,
            request_lengths=memory.means.lengths.value,
            prefix_cache_hit_share=memory.means.prefix_hits.value,
            latency=memory.means.latency,
            warnings=own_warnings,
            wedged_replicas=reading.wedged,
            unsteady_replicas=reading.unsteady,
        )

    def _nothing_seen(self, pods: Sequence[LivePod]) -> str:
        settings = self._settings
        return (
            f"no sample of any of the pool's {len(pods)} pods is in Prometheus: are they scraped, and do their series "
            f"carry the labels {settings.namespace_label} and {settings.pod_label}?"
        )


def _is_whole(answer: Answer | None) -> bool:
    return isinstance(answer, Vector) and not answer.is_partial


def _is_proven_idle(signals: Mapping[Signal, PoolSignal], ready_replicas: int) -> bool:
    """Whether every ready replica was scraped just now and says that nothing runs, waits, or has finished."""
    needed = (Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.REQUESTS_FINISHED)
    return ready_replicas > 0 and all(
        signal in signals
        and signals[signal].fresh_replicas == ready_replicas
        and signals[signal].total == signals[signal].unsteady_total == 0
        for signal in needed
    )


def _value_of(result: QueryResult, is_idle: bool) -> QueryValue | QueryUnknown:
    if not isinstance(result, NotANumber):
        return result
    # 0 / 0: a mean or share of no traffic.
    return QueryValue(0.0, 0.0) if is_idle else QueryUnknown("the query is not a number")
