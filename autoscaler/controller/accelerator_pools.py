"""What every AcceleratorPool has and what is wanted of it, told after each tick over all pools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolStatus, InvalidAcceleratorPool
from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.pool_observation import (
    NodesByPool,
    PoolNode,
    PoolScaler,
    observe_accelerator_pool,
    refuse_accelerator_pool,
)
from autoscaler.clock import Clock
from autoscaler.controller.node_capacity import AcceleratorPoolLookup
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.observers.node_pools import NodePoolSource
from policies.disruption_hold import DisruptionOutcome
from policies.node_capacity import CapacityOutcome


class AcceleratorPoolSource(AcceleratorPoolLookup, NodePoolSource, Protocol):
    """The AcceleratorPools, their NodePools and the cluster's nodes. Never blocks on the network."""

    def nodes(self) -> Sequence[PoolNode]:
        """All nodes that have accelerators or belong to a NodePool."""
        ...


class AcceleratorPoolSink(Protocol):
    """Writes statuses of AcceleratorPools without making the loop wait."""

    def write_accelerator_pool(self, name: str, status: AcceleratorPoolStatus) -> None:
        """Takes one status."""
        ...


class AcceleratorPoolReporter:
    """A reporter that writes an AcceleratorPool's status where it differs from the one that stands in the object."""

    def __init__(
        self,
        source: AcceleratorPoolSource,
        sink: AcceleratorPoolSink,
        clock: Clock,
        outcome: Callable[[str], CapacityOutcome | None] = lambda _: None,
        disruption: Callable[[str], DisruptionOutcome | None] = lambda _: None,
    ) -> None:
        """`outcome` tells by name what came of planning an AcceleratorPool's limits; None where none are managed.

        `disruption` tells in the same way what came of managing when its nodes may be taken away.
        """
        self._outcome = outcome
        self._disruption = disruption
        self._source = source
        self._sink = sink
        self._clock = clock
        self._written: dict[str, tuple[str, AcceleratorPoolStatus]] = {}

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Counts once for all pools; a tick without AcceleratorPools looks at no node.

        Without reports (nobody is looked after, or somebody else leads) what was written is forgotten: the next
        comparison is with the object as it then stands.
        """
        pools = self._source.accelerator_pools()
        kept = {pool.name for pool in pools} if reports else set()
        self._written = {name: written for name, written in self._written.items() if name in kept}
        if not pools:
            return
        now_seconds = self._clock.now_seconds()
        nodes, wanting = NodesByPool(self._source.nodes()), _by_pool(reports)
        consolidation = {
            name: seen.disruption.settings for name, seen in self._source.node_pools().items() if seen.disruption
        }
        for pool in pools:
            if isinstance(pool, InvalidAcceleratorPool):
                status = refuse_accelerator_pool(pool, now_seconds)
            else:
                status = observe_accelerator_pool(
                    pool,
                    nodes.of(pool),
                    wanting.get(pool.name, ()),
                    now_seconds,
                    self._outcome(pool.name),
                    consolidation,
                    self._disruption(pool.name),
                )
            self._write_if_new(pool, status)

    def _write_if_new(self, pool: AcceleratorPool | InvalidAcceleratorPool, status: AcceleratorPoolStatus) -> None:
        document = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        written = self._written.get(pool.name)
        if document == pool.status or (written is not None and written == (pool.uid, status)):
            return
        self._sink.write_accelerator_pool(pool.name, status)
        self._written[pool.name] = (pool.uid, status)


def _by_pool(reports: Sequence[PoolReport]) -> Mapping[str, list[PoolScaler]]:
    wanting: dict[str, list[PoolScaler]] = defaultdict(list)
    for report in reports:
        scaler = report.scaler
        if not isinstance(scaler, InferenceScaler) or scaler.spec.accelerator_pool_ref is None:
            continue
        decided = report if isinstance(report, Decided) else None
        wanting[scaler.spec.accelerator_pool_ref.name].append(
            PoolScaler(
                scaler.namespace,
                scaler.name,
                decided.decision.desired_replicas if decided else None,
                decided.workload.accelerators_per_replica if decided else scaler.spec.accelerators_per_replica,
            )
        )
    return wanting
