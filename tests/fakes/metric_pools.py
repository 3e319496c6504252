"""Pools as the API's source has them, of which a test shows only what its case is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoscaler.api.conditions import rfc3339
from autoscaler.api.published_metrics import PublishedMetric, PublishedMetrics
from autoscaler.external_metrics.values import NotKnownYet, PoolMetrics, pool_labels
from tests.builders import NOW


def a_pool(
    name: str = "llama",
    *,
    mode: str = "ExternalMetric",
    decided_seconds_ago: float | None = 5.0,
    namespace: str = "inference",
    engine: str = "vllm",
    metrics: Mapping[str, str | None] | None = None,
) -> PoolMetrics:
    """A pool that wants 7 replicas; a metric given as None has a problem and no value."""
    values = {"tokenscaler-desired-replicas": "7", "waiting-requests": "12", **(metrics or {})}
    published = None
    if decided_seconds_ago is not None:
        decided_at = rfc3339(NOW - decided_seconds_ago)
        published = PublishedMetrics(
            decided_at=decided_at,
            values=tuple(
                PublishedMetric(name=metric, value=value, problem="" if value else "it is too dark", time=decided_at)
                for metric, value in values.items()
            ),
        )
    return PoolMetrics(namespace, name, mode, pool_labels(name, f"vllm-{name}", engine), published)


class FakePools:
    """A MetricSource of these pools; `not_known_yet` is the answer where it is set."""

    def __init__(self, *pools: PoolMetrics) -> None:
        self.pools = list(pools)
        self.not_known_yet: NotKnownYet | None = None

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        return self.not_known_yet or [pool for pool in self.pools if pool.namespace == namespace]
