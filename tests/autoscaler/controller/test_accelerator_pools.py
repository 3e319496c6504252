from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autoscaler.api.accelerator_pool import (
    AcceleratorPool,
    AcceleratorPoolStatus,
    InvalidAcceleratorPool,
    parse_accelerator_pool,
)
from autoscaler.api.pool_observation import PoolNode
from autoscaler.clock import ManualClock
from autoscaler.controller.accelerator_pools import AcceleratorPoolReporter
from autoscaler.controller.pool_report import Decided
from autoscaler.observers.node_pools import DisruptionSeen, NodePoolSeen
from policies.latency_class import ConsolidationSettings
from tests.builders import NOW
from tests.pool_builders import a_decision_report, a_scaler

UNFIT = DisruptionSeen(ConsolidationSettings("Balanced", 60.0, None), "60s", ())


class Nodes:
    """Two Ready nodes of 8 accelerators behind the pool `h100`."""

    def __init__(self) -> None:
        parsed = parse_accelerator_pool(
            {
                "apiVersion": "tokenscaler.io/v1alpha1",
                "kind": "AcceleratorPool",
                "metadata": {"name": "h100", "uid": "1", "generation": 1},
                "spec": {"nodePools": {"onDemand": "h100-od"}},
            }
        )
        assert isinstance(parsed, AcceleratorPool)
        self.pools: list[AcceleratorPool | InvalidAcceleratorPool] = [parsed]
        self.written: list[AcceleratorPoolStatus] = []

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        return self.pools

    def nodes(self) -> Sequence[PoolNode]:
        return (PoolNode("h100-od", 8, True), PoolNode("h100-od", 8, True), PoolNode(None, 8, True))

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return {"h100-od": NodePoolSeen("h100-od", {}, 2, disruption=UNFIT)}

    def write_accelerator_pool(self, name: str, status: AcceleratorPoolStatus) -> None:
        self.written.append(status)


def a_report() -> Decided:
    return a_decision_report(scaler=a_scaler(acceleratorPoolRef={"name": "h100"}), accelerators_per_replica=8)


def test_what_is_wanted_is_counted_against_what_is_there_and_written_once() -> None:
    nodes = Nodes()
    reporter = AcceleratorPoolReporter(nodes, nodes, ManualClock(NOW))

    for _ in range(3):
        reporter.report([a_report()])

    assert [(each.nodes, each.accelerators_present, each.scalers) for each in nodes.written] == [(2, 16, 1)]
    assert nodes.written[0].accelerators_wanted == 8 * a_report().decision.desired_replicas


def test_a_pool_that_no_scaler_refers_to_is_told_too() -> None:
    nodes = Nodes()

    AcceleratorPoolReporter(nodes, nodes, ManualClock(NOW)).report([])

    assert [(each.accelerators_wanted, each.scalers) for each in nodes.written] == [(0, 0)]


def test_after_standing_down_the_object_itself_is_compared_with() -> None:
    nodes = Nodes()
    reporter = AcceleratorPoolReporter(nodes, nodes, ManualClock(NOW))
    reporter.report([a_report()])
    standing = nodes.written[-1].model_dump(mode="json", by_alias=True, exclude_none=True)

    nodes.pools = [replace(pool, status=standing) for pool in nodes.pools]
    reporter.report([a_report()])
    reporter.report([])
    # Somebody else has led meanwhile, and has written something else.
    nodes.pools = [replace(pool, status={**standing, "nodes": 1}) for pool in nodes.pools]
    nodes.written.clear()
    reporter.report([a_report()])

    assert [each.nodes for each in nodes.written] == [2]
