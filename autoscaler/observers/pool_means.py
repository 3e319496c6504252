"""Request sizes, prefix-cache hits and latency of whole pools, from sums that Prometheus made by workload."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from autoscaler.observers.answer_tables import AnswerTables
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.prometheus_rows import WorkloadKey
from autoscaler.observers.request_lengths import SeenLengths
from autoscaler.observers.request_means import HitShare, RequestMean
from autoscaler.prometheus.quantiles import Quantile, evenness_floor, quantile, share_above
from autoscaler.prometheus.query_plan import Part, Purpose
from autoscaler.prometheus.workload_names import workload_of
from policies.capacity.objectives import LatencyObjectives
from policies.observation import PoolLatency

LATENCIES = frozenset({Purpose.TIME_TO_FIRST_TOKEN, Purpose.INTER_TOKEN_LATENCY, Purpose.TIME_PER_OUTPUT_TOKEN})
LENGTHS = frozenset({Purpose.PROMPT_LENGTHS, Purpose.ANSWER_LENGTHS})

_Key = TypeVar("_Key", Part, float)


class PoolMeans:
    """One pool's means over the last minutes; they stay as they are until something better is known."""

    def __init__(self) -> None:
        self.prompt_tokens = RequestMean()
        self.generated_tokens = RequestMean()
        self.prefix_hits = HitShare()
        self.lengths = SeenLengths()
        self.latency = PoolLatency()

    def update(
        self,
        workloads: Sequence[WorkloadKey],
        tables: AnswerTables,
        changed: Collection[Purpose],
        objectives: LatencyObjectives | None,
        now_seconds: float,
    ) -> None:
        """Takes up the tables that have changed; latencies of an emptied table become unknown."""
        window_seconds = float(tables.settings.request_window_seconds)
        if Purpose.REQUEST_SIZES in changed:
            sizes = _added(tables.parts.get(Purpose.REQUEST_SIZES, {}), workloads)
            prompts, answers = sizes.get(Part.PROMPTS), sizes.get(Part.GENERATIONS)
            self.prompt_tokens.update(sizes.get(Part.PROMPT_TOKENS), prompts, window_seconds, now_seconds)
            self.generated_tokens.update(sizes.get(Part.GENERATED_TOKENS), answers, window_seconds, now_seconds)
        if Purpose.PREFIX_CACHE in changed:
            cache = _added(tables.parts.get(Purpose.PREFIX_CACHE, {}), workloads)
            self.prefix_hits.update(cache.get(Part.PREFIX_HITS), cache.get(Part.PREFIX_QUERIES))
        if LENGTHS & set(changed):
            self.lengths.update(
                _added(tables.buckets.get(Purpose.PROMPT_LENGTHS, {}), workloads),
                _added(tables.buckets.get(Purpose.ANSWER_LENGTHS, {}), workloads),
                window_seconds,
                now_seconds,
            )
        if LATENCIES & set(changed):
            self.latency = latency(
                Distribution(_added(tables.buckets.get(Purpose.TIME_TO_FIRST_TOKEN, {}), workloads)),
                _distribution(Purpose.INTER_TOKEN_LATENCY, tables, workloads),
                _distribution(Purpose.TIME_PER_OUTPUT_TOKEN, tables, workloads),
                objectives,
                now_seconds,
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


@dataclass(frozen=True, slots=True)
class Distribution:
    """Cumulative counts by upper edge, and the sum of what was observed (None: not told)."""

    buckets: Mapping[float, float]
    seconds: float | None = None

    @property
    def mean(self) -> float | None:
        """None without a sum or without an observation."""
        count = self.buckets.get(math.inf, 0.0)
        return self.seconds / count if self.seconds is not None and count > 0 else None


def latency(
    first_token: Distribution,
    gaps: Distribution,
    per_request: Distribution,
    objectives: LatencyObjectives | None,
    now_seconds: float,
) -> PoolLatency:
    """What the distributions of a window say: of first tokens, of gaps between tokens, of a request's mean gap."""
    first, median, tail = quantile(0.99, first_token.buckets), quantile(0.5, gaps.buckets), quantile(0.99, gaps.buckets)
    mean = per_request.mean
    return PoolLatency(
        time_to_first_token_p99_seconds=_number(first),
        inter_token_latency_p50_seconds=_number(median),
        inter_token_latency_p99_seconds=_number(tail),
        inter_token_latency_evenness_floor=evenness_floor(gaps.buckets),
        is_censored=any(found is not None and found.is_censored for found in (first, median, tail)),
        mean_time_per_output_token_seconds=gaps.mean if mean is None else mean,
        outside_objectives_share=None if objectives is None else _outside(first_token, per_request, objectives),
        measured_at_seconds=now_seconds,
    )


def _outside(first_token: Distribution, per_request: Distribution, objectives: LatencyObjectives) -> float | None:
    """The larger share; what an engine does not tell is left out."""
    late = share_above(objectives.time_to_first_token_seconds, first_token.buckets)
    slow = share_above(objectives.inter_token_latency_seconds, per_request.buckets)
    return max((share for share in (late, slow) if share is not None), default=None)


def _distribution(purpose: Purpose, tables: AnswerTables, workloads: Sequence[WorkloadKey]) -> Distribution:
    seconds = tables.seconds.get(purpose, {})
    known = [seconds[workload] for workload in workloads if workload in seconds]
    return Distribution(_added(tables.buckets.get(purpose, {}), workloads), sum(known) if known else None)


def _number(found: Quantile | None) -> float | None:
    return None if found is None else found.value
