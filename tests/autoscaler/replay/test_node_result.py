"""What nodes cost, worked out by hand."""

from __future__ import annotations

import pytest

from autoscaler.replay.cold_start import NEW_NODE
from autoscaler.replay.node_result import NodeResult, node_result
from autoscaler.replay.node_setup import ListedLoss, NodeLosses
from autoscaler.replay.planned_counts import PlannedCounts
from autoscaler.replay.replay import ReplayRun, replay
from policies.capacity_split import CapacityType
from tests.autoscaler.replay.simulated_node_fleets import a_node_fleet, after, node_pool, nodes_setup, only_pool
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_setup, steady_requests

ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


def an_hour() -> NodeResult:
    """Nodes of two accelerators at 3 and 1 dollars. Two on demand from the start; after 600 s two replicas more, for
    which spot makes a node; at 2400 s it is reclaimed, empty, and another one is launched a second later.
    """
    on_demand = node_pool("od", weight=9, limits={"nvidia.com/gpu": "4"})
    spot = node_pool("spot", reclaims=NodeLosses(0.0, (ListedLoss(2400.0),)))
    fleet = a_node_fleet(on_demand, spot, initial_replicas=4)
    only_pool(after(fleet, 600.0)).scale(6)
    after(fleet, 3600.0)
    assert fleet.nodes is not None
    return node_result(fleet.nodes, STARTED_AT + 3600.0)


def test_hours_and_dollars_of_whole_nodes_by_capacity_type() -> None:
    result = an_hour()
    on_demand, spot = result.by_capacity_type[ON_DEMAND], result.by_capacity_type[SPOT]
    # 2 nodes x 1 h x 2 accelerators x 3 dollars.
    assert (on_demand.node_hours, on_demand.accelerator_hours, on_demand.cost_dollars) == (2.0, 4.0, 12.0)
    # From second 601, when the pods were seen, until 2401, and from then on: 2999 s, 2 accelerators, 1 dollar.
    assert spot.node_hours == pytest.approx(2999.0 / 3600.0, abs=2.0 / 3600.0)
    assert spot.accelerator_hours == pytest.approx(2.0 * spot.node_hours)
    assert spot.cost_dollars == pytest.approx(1.0 * spot.accelerator_hours)
    assert result.node_hours == pytest.approx(2.0 + spot.node_hours)
    assert result.accelerator_hours == pytest.approx(4.0 + spot.accelerator_hours)
    assert result.cost_dollars == pytest.approx(12.0 + spot.cost_dollars)


def test_what_happened_is_counted() -> None:
    result = an_hour()
    assert (result.launched_nodes, result.spot_reclaims, result.node_deaths, result.refused_launches) == (4, 1, 0, 0)
    assert result.max_nodes in {3, 4}  # the reclaimed one may be there when the next is ordered


def test_a_sampled_fleet_stands_on_as_many_nodes_as_the_whole_one() -> None:
    def cost(sampled_one_in: int) -> tuple[float, int]:
        setup = a_setup(initial_replicas=8, sampled_one_in=sampled_one_in)
        run = ReplayRun(STARTED_AT, STARTED_AT + 600.0, nodes=nodes_setup(node_pool("od")))
        result = replay(PlannedCounts("eight", (8,)), setup, steady_requests(1.0), run)
        assert result.nodes is not None
        return result.cost_dollars, result.nodes.max_nodes

    # 4 nodes x 10 min x 2 accelerators x 3 dollars.
    for sampled_one_in in (1, 2, 4):
        dollars, nodes = cost(sampled_one_in)
        assert dollars == pytest.approx(4.0)
        assert nodes == 4


def test_without_nodes_replicas_are_paid_for() -> None:
    run = ReplayRun(STARTED_AT, STARTED_AT + 3600.0, dollars_per_accelerator_hour=3.0)
    result = replay(PlannedCounts("three", (3,)), a_setup(initial_replicas=3), steady_requests(0.1), run)
    assert result.nodes is None
    assert result.accelerator_hours == pytest.approx(3.0, abs=0.01)
    assert result.cost_dollars == pytest.approx(9.0, abs=0.03)


def test_a_run_on_nodes_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    def figures(seed: int) -> tuple[object, ...]:
        spot = node_pool("spot", reclaims=NodeLosses(4.0), deaths=NodeLosses(1.0), consolidate_after_seconds=60.0)
        setup = a_setup(initial_replicas=4, cold_start=NEW_NODE.without("node"))
        run = ReplayRun(STARTED_AT, STARTED_AT + 1800.0, seed=seed, nodes=nodes_setup(spot))
        result = replay(PlannedCounts("four", (4, 6, 3), 600.0), setup, steady_requests(10.0), run)
        return result.nodes, result.met, result.dropped, result.lost_to_reclaims, result.points

    first = figures(1)
    assert first == figures(1)
    assert first != figures(2)
