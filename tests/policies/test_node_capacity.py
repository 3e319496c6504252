from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType, split_nodes
from policies.dollar_sharing import NodeCost
from policies.node_capacity import (
    MICRO_DOLLARS,
    DollarCeiling,
    NodeCapacityParameters,
    NodePoolState,
    PlanStep,
    plan_node_capacity,
)
from policies.node_packing import NodeRoom, nodes_for
from policies.reasons import Reason

ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


def wants(replicas: int, accelerators: int = 8, *, stands: int = 0, name: str = "a") -> AcceleratorDemand:
    return AcceleratorDemand(name, replicas, stands, 0, accelerators)


@pytest.mark.parametrize(
    ("demands", "nodes"),
    [
        pytest.param([], 0, id="nobody wants anything"),
        pytest.param([wants(3)], 3, id="a replica takes a whole node"),
        pytest.param([wants(5, 4)], 3, id="two replicas of half a node share one, the fifth opens a third"),
        pytest.param([wants(3, 16)], 6, id="a replica of two nodes takes two"),
        pytest.param([wants(2, 12)], 4, id="a replica of a node and a half takes two whole ones"),
        pytest.param([wants(1, 4), wants(4, 1), wants(2, 2)], 2, id="small replicas fill what larger ones leave"),
        pytest.param([wants(1, 3), wants(1, 3), wants(1, 3)], 2, id="what does not divide leaves a rest"),
        pytest.param([wants(2, stands=5)], 5, id="replicas that still stand keep their place"),
    ],
)
def test_replicas_are_packed_into_whole_nodes(demands: list[AcceleratorDemand], nodes: int) -> None:
    assert nodes_for(NodeRoom(8), demands) == nodes


@pytest.mark.parametrize(
    ("nodes", "floor_percent", "split"),
    [
        pytest.param(5, 20, (1, 4), id="20 % of 5"),
        pytest.param(6, 20, (2, 4), id="20 % of 6 is more than one node"),
        pytest.param(15, 20, (3, 12), id="20 % of 15, where floating point is wrong"),
        pytest.param(3, 70, (3, 0), id="a spot cap of 30 % means no spot below four nodes"),
        pytest.param(10, 70, (7, 3), id="a spot cap of 30 % of 10"),
        pytest.param(4, 100, (4, 0), id="no spot at all"),
        pytest.param(0, 20, (0, 0), id="nothing"),
    ],
)
def test_the_on_demand_floor_is_exact_in_whole_nodes(nodes: int, floor_percent: int, split: tuple[int, int]) -> None:
    assert split_nodes(nodes, floor_percent) == split


def a_pool(in_use: int = 0, kind: CapacityType = ON_DEMAND, *, ready: bool = True) -> NodePoolState:
    return NodePoolState(kind.value, kind, in_use, ready)


@pytest.mark.parametrize(
    ("replicas", "parameters", "pools", "limits"),
    [
        pytest.param(4, {}, [a_pool()], [5], id="what replicas take and one node to spare"),
        pytest.param(2, {}, [a_pool(6)], [6], id="nodes that are there leave first"),
        pytest.param(9, {"ceiling_nodes": 6}, [a_pool()], [6], id="the ceiling binds, slack included"),
        pytest.param(2, {"ceiling_nodes": 4}, [a_pool(7)], [7], id="a ceiling below what is there deletes nothing"),
        pytest.param(
            10, {"on_demand_floor_percent": 20}, [a_pool(2), a_pool(kind=SPOT)], [3, 8], id="slack is on demand"
        ),
        pytest.param(
            10, {"on_demand_floor_percent": 20}, [a_pool(kind=SPOT), a_pool(2)], [3, 8], id="in whatever order"
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20},
            [a_pool(1), a_pool(kind=SPOT)],
            [3, 4],
            id="spot waits for the nodes on demand that it needs beside it",
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20},
            [a_pool(2), a_pool(5, SPOT, ready=False)],
            [6, 5],
            id="where spot cannot be had, on demand takes what spot nodes do not hold",
        ),
        pytest.param(
            9,
            {"ceiling_nodes": 9},
            [NodePoolState("on-demand", ON_DEMAND, 5, nodes_deleting=2)],
            [7],
            id="nodes that are still leaving count against the ceiling",
        ),
        pytest.param(
            10,
            {
                "on_demand_floor_percent": 20,
                "dollar_ceiling": DollarCeiling(100 * MICRO_DOLLARS, NodeCost(20_000_000, 8_000_000)),
            },
            [a_pool(2), a_pool(kind=SPOT)],
            [2, 7],
            id="dollars pay for two nodes on demand and seven on spot",
        ),
        pytest.param(
            10,
            {
                "on_demand_floor_percent": 20,
                "dollar_ceiling": DollarCeiling(100 * MICRO_DOLLARS, NodeCost(20_000_000, 8_000_000)),
            },
            [a_pool(2), a_pool(2, SPOT, ready=False)],
            [4, 2],
            id="where spot cannot be had, what is added is paid at the price on demand",
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20},
            [a_pool(), a_pool(kind=SPOT, ready=False)],
            [11, 0],
            id="a spot pool that makes no nodes leaves all to on demand",
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20, "ceiling_nodes": 10},
            [a_pool(2), a_pool(9, SPOT)],
            [2, 9],
            id="spot nodes that are too many leave before on-demand ones may come",
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20, "ceiling_nodes": 12},
            [a_pool(2), a_pool(8, SPOT)],
            [3, 8],
            id="the ceiling holds over both",
        ),
    ],
)
def test_limits_in_whole_nodes(
    replicas: int, parameters: dict[str, Any], pools: list[NodePoolState], limits: list[int]
) -> None:
    plan = plan_node_capacity(NodeCapacityParameters(8, **parameters), [wants(replicas)], pools)
    assert [each.limit_nodes for each in plan.node_pools] == limits


@pytest.mark.parametrize(
    ("replicas", "parameters", "pools", "steps"),
    [
        pytest.param(
            9,
            {"ceiling_nodes": 6},
            [a_pool(7)],
            [
                (
                    "replicas",
                    0,
                    6,
                    Reason.ACCELERATOR_CEILING,
                    "replicas take 9 nodes, the ceiling leaves 6, 6 of them here",
                ),
                ("slack", 6, 6, Reason.SLACK_NODES, "0 nodes to spare"),
                ("inUse", 6, 7, Reason.NODES_IN_USE, "7 nodes are there; the limit follows when they have gone"),
            ],
            id="a ceiling, and nodes that leave first",
        ),
        pytest.param(
            1,
            {},
            [a_pool()],
            [
                ("replicas", 0, 1, Reason.NODES_NEEDED, "replicas take 1 node, 1 of them here"),
                ("slack", 1, 2, Reason.SLACK_NODES, "1 node to spare"),
            ],
            id="what replicas take, and one to spare",
        ),
        pytest.param(
            9,
            {"ceiling_nodes": 9},
            [NodePoolState("on-demand", ON_DEMAND, 5, nodes_deleting=2)],
            [
                ("replicas", 0, 9, Reason.NODES_NEEDED, "replicas take 9 nodes, 9 of them here"),
                ("slack", 9, 9, Reason.SLACK_NODES, "0 nodes to spare"),
                (
                    "ceiling",
                    9,
                    7,
                    Reason.ACCELERATOR_CEILING,
                    "wanted 9 nodes; with the nodes that are there elsewhere or still leaving the ceiling leaves 7",
                ),
            ],
            id="nodes that are being deleted",
        ),
        pytest.param(
            10,
            {"on_demand_floor_percent": 20},
            [a_pool(kind=SPOT), a_pool(1)],
            [
                ("replicas", 0, 8, Reason.NODES_NEEDED, "replicas take 10 nodes, 8 of them here"),
                ("floor", 8, 4, Reason.ON_DEMAND_FLOOR, "1 node on demand are there, which allows 4 on spot"),
            ],
            id="spot that waits for what it needs beside it",
        ),
        pytest.param(
            10,
            {"dollar_ceiling": DollarCeiling(100 * MICRO_DOLLARS, NodeCost(20_000_000, 8_000_000))},
            [NodePoolState("on-demand", ON_DEMAND, 1, nodes_deleting=2)],
            [
                (
                    "replicas",
                    0,
                    5,
                    Reason.DOLLAR_CEILING,
                    "replicas take 10 nodes, the ceiling leaves 5, 5 of them here",
                ),
                ("slack", 5, 5, Reason.SLACK_NODES, "0 nodes to spare"),
                (
                    "ceiling",
                    5,
                    3,
                    Reason.DOLLAR_CEILING,
                    "wanted 5 nodes; with the nodes that are there elsewhere or still leaving the ceiling leaves 3",
                ),
            ],
            id="a ceiling of dollars, of which nodes that are being deleted take theirs",
        ),
        pytest.param(
            10,
            {
                "on_demand_floor_percent": 20,
                "dollar_ceiling": DollarCeiling(100 * MICRO_DOLLARS, NodeCost(20_000_000, 8_000_000)),
            },
            [a_pool(1)],
            [
                (
                    "replicas",
                    0,
                    5,
                    Reason.DOLLAR_CEILING,
                    "replicas take 10 nodes, the ceiling leaves 5, 5 of them here",
                ),
                ("slack", 5, 5, Reason.SLACK_NODES, "0 nodes to spare"),
            ],
            id="dollars pay for nodes on demand alone where there is no pool of spot",
        ),
    ],
)
def test_a_plan_says_how_it_came_about(
    replicas: int, parameters: dict[str, Any], pools: list[NodePoolState], steps: list[tuple[Any, ...]]
) -> None:
    plan = plan_node_capacity(NodeCapacityParameters(8, **parameters), [wants(replicas)], pools)
    assert plan.needed_nodes == replicas
    assert plan.node_pools[-1].steps == tuple(PlanStep(*step) for step in steps)


def test_large_replicas_are_placed_first() -> None:
    demands = [AcceleratorDemand("small", 2, 2, 0, 3), AcceleratorDemand("large", 2, 2, 0, 5)]
    assert nodes_for(NodeRoom(8), demands) == 2


_demands = st.lists(
    st.builds(
        AcceleratorDemand,
        scaler=st.uuids().map(str),
        wanted_replicas=st.integers(0, 300),
        current_replicas=st.integers(0, 300),
        minimum_replicas=st.just(0),
        accelerators_per_replica=st.sampled_from([1, 2, 3, 4, 8, 12, 16]),
    ),
    max_size=12,
)


@given(_demands, st.sampled_from([1, 4, 8]))
def test_sizes_that_divide_a_node_waste_nothing(demands: list[AcceleratorDemand], accelerators_per_node: int) -> None:
    whole = [demand for demand in demands if accelerators_per_node % demand.accelerators_per_replica == 0]
    accelerators = sum(max(d.wanted_replicas, d.current_replicas) * d.accelerators_per_replica for d in whole)
    assert nodes_for(NodeRoom(accelerators_per_node), whole) == -(-accelerators // accelerators_per_node)
