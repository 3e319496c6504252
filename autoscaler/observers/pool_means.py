"""Request sizes, prefix-cache hits and latency of whole pools, from sums that Prometheus made by workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from autoscaler.observers.answer_tables import AnswerTables
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.prometheus_rows import WorkloadKey
from autoscaler.observers.request_means import BoundedMean, HitShare
from autoscaler.prometheus.quantiles import Quantile, evenness_floor, quantile
from autoscaler.prometheus.query_plan import Part, Purpose
from autoscaler.prometheus.workload_names import workload_of
from policies.observation import PoolLatency

LATENCIES = frozenset({Purpose.TIME_TO_FIRST_TOKEN, Purpose.INTER_TOKEN_LATENCY})

_Key = TypeVar("_Key", Part, float)


class PoolMeans:
    """One pool's means over the last minutes; they stay as they are until something better is known."""

    def __init__(self) -> None:
        self.prompt_tokens = BoundedMean()
        self.generated_tokens = BoundedMean()
        self.prefix_hits = HitShare()
        self.latency = PoolLatency()

    def update(
        self,
        workloads: Sequence[WorkloadKey],
        tables: AnswerTables,
        changed: Collection[Purpose],
        now_seconds: float,
    ) -> None:
        """Takes up the tables that have changed; latencies of an emptied table become unknown."""
        if Purpose.REQUEST_SIZES in changed:
            sizes = _added(tables.parts.get(Purpose.REQUEST_SIZES, {}), workloads)
            self.prompt_tokens.update(sizes.get(Part.PROMPT_TOKENS), sizes.get(Part.PROMPTS), now_seconds)
            self.generated_tokens.update(sizes.get(Part.GENERATED_TOKENS), sizes.get(Part.GENERATIONS), now_seconds)
        if Purpose.PREFIX_CACHE in changed:
            cache = _added(tables.parts.get(Purpose.PREFIX_CACHE, {}), workloads)
            self.prefix_hits.update(cache.get(Part.PREFIX_HITS), cache.get(Part.PREFIX_QUERIES))
        if LATENCIES & set(changed):
            self.latency = _latency(
                _added(tables.buckets.get(Purpose.TIME_TO_FIRST_TOKEN, {}), workloads),
                _added(tables.buckets.get(Purpose.INTER_TOKEN_LATENCY, {}), workloads),
            )


def workloads_of_pools(pools: Iterable[PoolQuery]) -> dict[PoolKey, list[WorkloadKey]]:
    """The workloads of each pool as Prometheus derives them from its pods' names; without pods, its target's name.

    Two pools whose pods' names come down to the same workload cannot be told apart there: neither gets it.
    """
    names = {
        pool.key: {(pool.key[0], workload_of(pod.name)) for pod in pool.pods} or {(pool.key[0], pool.target_name)}
        for pool in pools
    }
    claims = Counter(workload for workloads in names.values() for workload in workloads)
    return {key: [each for each in workloads if claims[each] == 1] for key, workloads in names.items()}


def _added(table: Mapping[WorkloadKey, Mapping[_Key, float]], workloads: Iterable[WorkloadKey]) -> dict[_Key, float]:
    total: dict[_Key, float] = {}
    for workload in workloads:
        for key, number in table.get(workload, {}).items():
            total[key] = total.get(key, 0.0) + number
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
