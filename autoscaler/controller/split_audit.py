"""Which share of the nodes is really on demand, and what do they cost? Counted on those that are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.pool_observation import NodeCounts, NodesByPool, PoolNode, count_nodes
from autoscaler.clock import Clock
from autoscaler.controller.accelerator_pools import AcceleratorPoolSource
from autoscaler.controller.pool_report import PoolReport
from policies.capacity_split import CapacityType, is_split_kept
from policies.node_capacity import MICRO_DOLLARS


@dataclass(frozen=True, slots=True)
class _Audited:
    """One AcceleratorPool at the last tick; `broken_since_seconds` None: its split is kept, or it has none."""

    pool: str
    nodes: NodeCounts
    floor_percent: int | None
    broken_since_seconds: float | None
    dollars_per_hour: float | None = None  # None: nobody has said what a node costs


class SplitAudit(Collector):
    """A reporter that counts the nodes of all AcceleratorPools once a tick, and tells at each scrape."""

    def __init__(self, source: AcceleratorPoolSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._audited: tuple[_Audited, ...] = ()

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Looks at the nodes; what the reports say is not asked. A pool that has gone leaves no series."""
        del reports
        pools = [pool for pool in self._source.accelerator_pools() if isinstance(pool, AcceleratorPool)]
        nodes = NodesByPool(self._source.nodes() if pools else ())
        since = {each.pool: each.broken_since_seconds for each in self._audited}
        now_seconds = self._clock.monotonic_seconds()
        self._audited = tuple(_audit(pool, nodes.of(pool), since.get(pool.name), now_seconds) for pool in pools)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Nodes by kind and state, the share on demand in percent, for how long a split has been broken, dollars.

        Without nodes there is no share; a split that is kept has been broken for 0 s.
        """
        counts = GaugeMetricFamily(
            "tokenscaler_accelerator_pool_nodes",
            "Nodes that are there, by capacity type and by whether they are being deleted.",
            labels=["accelerator_pool", "capacity_type", "state"],
        )
        share = GaugeMetricFamily(
            "tokenscaler_accelerator_pool_on_demand_percent",
            "Share on demand of the nodes that are there and not being deleted.",
            labels=["accelerator_pool"],
        )
        broken = GaugeMetricFamily(
            "tokenscaler_accelerator_pool_split_broken_seconds",
            "For how long fewer nodes have been on demand than the split says; 0 while it is kept.",
            labels=["accelerator_pool"],
        )
        dollars = GaugeMetricFamily(
            "tokenscaler_accelerator_pool_dollars_per_hour",
            "What its nodes cost an hour by nodeDollarsPerHour, those that are being deleted too.",
            labels=["accelerator_pool"],
        )
        now_seconds = self._clock.monotonic_seconds()
        for each in self._audited:
            if each.dollars_per_hour is not None:
                dollars.add_metric([each.pool], each.dollars_per_hour)
            for kind in CapacityType:
                counts.add_metric([each.pool, kind.value, "staying"], each.nodes.staying(kind))
                counts.add_metric([each.pool, kind.value, "deleting"], each.nodes.deleting(kind))
            on_demand, spot = each.nodes.staying(CapacityType.ON_DEMAND), each.nodes.staying(CapacityType.SPOT)
            if on_demand + spot:
                share.add_metric([each.pool], 100.0 * on_demand / (on_demand + spot))
            if each.floor_percent is not None:
                since = each.broken_since_seconds
                broken.add_metric([each.pool], 0.0 if since is None else now_seconds - since)
        yield from (counts, share, broken, dollars)


def _audit(
    pool: AcceleratorPool, nodes: Iterable[PoolNode], broken_since_seconds: float | None, now_seconds: float
) -> _Audited:
    counts = count_nodes(pool, nodes)
    dollars_per_hour = _dollars_per_hour(pool, counts)
    if pool.spec.split is None:
        return _Audited(pool.name, counts, None, None, dollars_per_hour)
    floor = pool.spec.split.floor_percent
    on_demand, spot = counts.staying(CapacityType.ON_DEMAND), counts.staying(CapacityType.SPOT)
    if is_split_kept(on_demand, spot, floor):
        return _Audited(pool.name, counts, floor, None, dollars_per_hour)
    since = now_seconds if broken_since_seconds is None else broken_since_seconds
    return _Audited(pool.name, counts, floor, since, dollars_per_hour)


def _dollars_per_hour(pool: AcceleratorPool, counts: NodeCounts) -> float | None:
    prices = pool.spec.node_dollars_per_hour
    if prices is None:
        return None
    cost = prices.node_cost
    spent = sum((counts.staying(kind) + counts.deleting(kind)) * cost.price(kind) for kind in CapacityType)
    return spent / MICRO_DOLLARS
