"""What is the newest that this process knows: its own last decisions, or what another has written into the statuses?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.controller.published_metrics import publish
from autoscaler.external_metrics.values import MetricSource, NotKnownYet, PoolMetrics, pool_labels
from policies.parameters import Mode


class NewestMetrics:
    """A reporter and a MetricSource. A decision of this process counts at once, before its status has been written.

    Without `statuses` (the objects are files, and nothing is written) only what this process decides is known.
    """

    def __init__(self, statuses: MetricSource | None) -> None:
        self._statuses = statuses
        self._decided: Mapping[str, Mapping[str, PoolMetrics]] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Takes the decisions of a tick (one assignment: readers need no lock); none where this process stands down."""
        decided: dict[str, dict[str, PoolMetrics]] = {}
        for report in reports:
            if isinstance(report, Decided):
                pool = _pool(report)
                decided.setdefault(pool.namespace, {})[pool.name] = pool
        self._decided = decided

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        """The pools of a namespace by name, each with the newer of the two."""
        own = self._decided.get(namespace, {})
        if self._statuses is None:
            if self._decided:
                return tuple(own[name] for name in sorted(own))
            return NotKnownYet("this replica has decided nothing, and policies from files have no status to read")
        pools = self._statuses.pools_in(namespace)
        if not own or isinstance(pools, NotKnownYet):
            return pools
        return tuple(_newer(pool, own.get(pool.name)) for pool in pools)


def _newer(in_status: PoolMetrics, own: PoolMetrics | None) -> PoolMetrics:
    """The one that was decided later. A mode that has been changed since counts at once."""
    if own is None or own.published is None or in_status.mode != own.mode:
        return in_status
    # Both times are in one form, so they compare as texts.
    is_older = in_status.published is not None and own.published.decided_at < in_status.published.decided_at
    return in_status if is_older else replace(own, object_labels=in_status.object_labels)


def _pool(report: Decided) -> PoolMetrics:
    scaler = report.scaler
    return PoolMetrics(
        namespace=scaler.namespace,
        name=scaler.name,
        mode=scaler.spec.mode.value,
        labels=pool_labels(scaler.name, scaler.spec.first_target_ref.name, scaler.spec.engine.value),
        published=publish(report) if scaler.spec.mode is Mode.EXTERNAL_METRIC else None,
    )
