"""The metrics of all pools, as a test sets them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoscaler.api.conditions import rfc3339
from autoscaler.api.published_metrics import PublishedMetric, PublishedMetrics
from autoscaler.external_metrics.values import NotKnownYet, PoolMetrics, pool_labels


def some_pool_metrics(
    values: Mapping[str, str | None],
    *,
    decided_at_seconds: float,
    namespace: str = "inference",
    name: str = "llama",
    mode: str = "ExternalMetric",
) -> PoolMetrics:
    """A pool whose target is called vllm-NAME; a value is a quantity, None is one that is not known."""
    time = rfc3339(decided_at_seconds)
    published = tuple(
        PublishedMetric(name=metric, value=value, problem="" if value else "the scrape failed", time=time)
        for metric, value in values.items()
    )
    labels = pool_labels(name, f"vllm-{name}", "vllm")
    return PoolMetrics(namespace, name, mode, labels, PublishedMetrics(decided_at=time, values=published))


class FakeMetricSource:
    """Holds the pools that the test gives it; may be set from another thread."""

    def __init__(self, *pools: PoolMetrics) -> None:
        self.pools: tuple[PoolMetrics, ...] | NotKnownYet = pools

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        if isinstance(self.pools, NotKnownYet):
            return self.pools
        return tuple(pool for pool in self.pools if pool.namespace == namespace)
