from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.pool_observation import PoolNode
from autoscaler.clock import ManualClock
from autoscaler.controller.split_audit import SplitAudit
from autoscaler.observers.node_pools import NodePoolSeen
from tests.builders import NOW


@dataclass
class Nodes:
    """The nodes of one AcceleratorPool with a floor of 20 % on demand."""

    there: list[PoolNode] = field(default_factory=list)
    is_gone: bool = False
    prices: dict[str, str] | None = None

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        document = {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": "h100"},
            "spec": {
                "nodePools": {"onDemand": "od", "spot": "spot"},
                "split": {"onDemandFloorPercent": 20},
                "nodeDollarsPerHour": self.prices,
            },
        }
        return () if self.is_gone else (parse_accelerator_pool(document),)

    def nodes(self) -> Sequence[PoolNode]:
        return self.there

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return {}


def nodes_of(kind: str, count: int, *, deleting: bool = False) -> list[PoolNode]:
    name = "spot" if kind == "spot" else "od"
    return [PoolNode(name, 8, True, kind, deleting)] * count


def test_the_real_share_is_told_and_for_how_long_it_has_been_broken() -> None:
    nodes, clock, registry = (
        Nodes(nodes_of("on-demand", 2) + nodes_of("spot", 8)),
        ManualClock(NOW),
        CollectorRegistry(),
    )
    audit = SplitAudit(nodes, clock)
    registry.register(audit)

    def told(name: str, **labels: str) -> float | None:
        whole = f"tokenscaler_accelerator_pool_{name}"
        return registry.get_sample_value(whole, {"accelerator_pool": "h100", **labels})

    audit.report(())
    assert (told("on_demand_percent"), told("split_broken_seconds")) == (20.0, 0.0)
    assert told("nodes", capacity_type="spot", state="staying") == 8.0

    nodes.there = nodes_of("reserved", 1) + nodes_of("on-demand", 1, deleting=True) + nodes_of("spot", 8)
    audit.report(())
    clock.advance(30.0)
    audit.report(())
    assert told("nodes", capacity_type="on-demand", state="deleting") == 1.0
    assert told("split_broken_seconds") == 30.0, "a node that leaves is none to count on; a reserved one is"

    assert told("dollars_per_hour") is None, "nobody has said what a node costs"
    nodes.prices = {"onDemand": "55.04", "spot": "20"}
    audit.report(())
    assert told("dollars_per_hour") == 2 * 55.04 + 8 * 20, "those that go are paid for"

    nodes.there = []
    audit.report(())
    assert (told("on_demand_percent"), told("split_broken_seconds")) == (None, 0.0)

    nodes.is_gone = True
    audit.report(())
    assert told("split_broken_seconds") is None
