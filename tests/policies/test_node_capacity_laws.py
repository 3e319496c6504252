"""What no plan and no split may ever break, over random plans and over random lives of nodes.

TOKENSCALER_PLANS sets how many random plans are looked at: some thousands by default, a million by `make proof-plans`.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType, SplitRule, is_split_kept, on_demand_beside, split_replicas
from policies.dollar_sharing import NodeCost
from policies.node_capacity import (
    DollarCeiling,
    NodeCapacityParameters,
    NodePoolState,
    ceiling_nodes,
    plan_node_capacity,
)
from policies.node_packing import NodeRoom, nodes_for
from tests.policies.node_plant import NodePlant, by_kind

PLANS = int(os.environ.get("TOKENSCALER_PLANS", "5000"))
# A long look takes as long as it takes: a million some minutes.
pytestmark = pytest.mark.timeout(max(300, PLANS // 100))
ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT

Case = tuple[NodeCapacityParameters, tuple[AcceleratorDemand, ...], tuple[NodePoolState, ...]]


def a_random_case(chance: random.Random) -> Case:
    """Parameters, demands and NodePools from all corners: empty ones, full ones, ceilings below what is there."""
    each = chance.choice([1, 4, 8])
    most = chance.choice([3, 40, 400])
    dollars = DollarCeiling(
        chance.randrange(0, 60 * most * 1_000_000),
        NodeCost(chance.randrange(1, 60_000_000), chance.randrange(1, 60_000_000)),
    )
    parameters = NodeCapacityParameters(
        each,
        slack_nodes=chance.choice([0, 0, 1, 3]),
        ceiling_nodes=chance.choice([None, chance.randrange(most + 1)]),
        on_demand_floor_percent=chance.choice([0, 20, 70, 100, chance.randrange(101)]),
        dollar_ceiling=chance.choice([None, dollars]),
    )
    has_spot = chance.random() < 0.75
    tied = [None, None, ON_DEMAND, SPOT] if has_spot else [None, ON_DEMAND]
    demands = tuple(
        AcceleratorDemand(
            f"pool-{number}",
            chance.randrange(most),
            chance.randrange(most),
            0,
            chance.choice([1, 2, 3, 4, 8, 12, 16]),
            capacity_type=chance.choice(tied),
        )
        for number in range(chance.randrange(6))
    )

    def a_pool(kind: CapacityType) -> NodePoolState:
        in_use, deleting = chance.choice([0, chance.randrange(most)]), chance.choice([0, 0, chance.randrange(9)])
        return NodePoolState(kind.value, kind, in_use, chance.random() < 0.85, deleting)

    return parameters, demands, (a_pool(ON_DEMAND), a_pool(SPOT)) if has_spot else (a_pool(ON_DEMAND),)


def check(case: Case) -> None:
    """Every law that one plan must keep by itself."""
    parameters, demands, pools = case
    plan = plan_node_capacity(parameters, demands, pools)
    limits = by_kind({each.name: each.limit_nodes for each in plan.node_pools})
    in_use = {pool.capacity_type: pool.nodes_in_use for pool in pools}
    deleting = {pool.capacity_type: pool.nodes_deleting for pool in pools}
    floor = parameters.on_demand_floor_percent
    grown = {kind for kind in in_use if limits[kind] > in_use[kind]}

    assert all(limits[kind] >= in_use[kind] for kind in in_use), "no limit below what is there"
    accelerators = sum(max(d.wanted_replicas, d.current_replicas) * d.accelerators_per_replica for d in demands)
    assert plan.needed_nodes * parameters.accelerators_per_node >= accelerators, "whole nodes hold all replicas"
    assert sum(limits.values()) <= max(plan.needed_nodes + parameters.slack_nodes, 0) + sum(in_use.values())
    if grown and parameters.ceiling_nodes is not None:
        assert sum(limits.values()) + sum(deleting.values()) <= parameters.ceiling_nodes, "accelerators"
    dollars = parameters.dollar_ceiling
    if grown and dollars is not None:
        cost = sum((limits[kind] + deleting[kind]) * dollars.prices.price(kind) for kind in in_use)
        assert cost <= dollars.ceiling_per_hour, "dollars, with nodes that still leave"
    if SPOT in grown:
        # Whatever of the limits is used: spot beside what is on demand now keeps the floor.
        assert is_split_kept(in_use[ON_DEMAND], limits[SPOT], floor), "spot never runs ahead of on demand"
    if ceiling_nodes(parameters, pools) is None and SPOT not in in_use:
        assert limits[ON_DEMAND] >= plan.needed_nodes + parameters.slack_nodes, "every replica finds a place"
    for pool in plan.node_pools:
        assert pool.steps[-1].after == pool.limit_nodes, "the steps end at the limit"
        for step, following in zip(pool.steps, pool.steps[1:], strict=False):
            assert step.after == following.before, "and lead to each other"


def test_no_random_plan_breaks_a_law() -> None:
    chance = random.Random(20261130)
    for _ in range(PLANS):
        case = a_random_case(chance)
        try:
            check(case)
        except AssertionError as broken:
            raise AssertionError(f"{broken}: {case}") from broken


@settings(max_examples=max(100, PLANS // 50))
@given(st.randoms(use_true_random=False))
def test_no_plan_that_is_looked_for_breaks_a_law(chance: random.Random) -> None:
    check(a_random_case(chance))


@settings(max_examples=max(100, PLANS // 50))
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_more_replicas_never_mean_fewer_nodes_on_demand(chance: random.Random, more: int) -> None:
    parameters, demands, pools = a_random_case(chance)
    grown = (*demands, AcceleratorDemand("one more", more, 0, 0, 8))
    before, after = (plan_node_capacity(parameters, each, pools) for each in (demands, grown))
    if ceiling_nodes(parameters, pools) is None:
        assert after.node_pools[0].limit_nodes >= before.node_pools[0].limit_nodes


class TwoTargets:
    """One scaler that steers two targets by the product's split and plan, on a plant of nodes."""

    def __init__(self, plant: NodePlant, floor_percent: int, size: int, slack_nodes: int) -> None:
        self.plant = plant
        self.size = size
        self.parameters = NodeCapacityParameters(8, slack_nodes, on_demand_floor_percent=floor_percent)
        self.replicas = 0

    def tick(self) -> None:
        """Limits where they grow, counts, then what Karpenter makes of both."""
        plant = self.plant
        on_demand, spot = plant.target(ON_DEMAND), plant.target(SPOT)
        floor = self.parameters.on_demand_floor_percent
        rule = SplitRule(floor, 8 // self.size, plant.buys[SPOT], on_demand_beside(plant.count(SPOT), floor))
        split = split_replicas(self.replicas, on_demand, spot, rule)
        assert split.replicas >= self.replicas, "never fewer than asked for"
        demands = [
            AcceleratorDemand("on-demand", split.on_demand, on_demand.spec, 0, self.size, capacity_type=ON_DEMAND),
            AcceleratorDemand("spot", split.spot, spot.spec, 0, self.size, capacity_type=SPOT),
        ]
        plan = plan_node_capacity(self.parameters, demands, plant.states())
        plant.limits = dict(by_kind({each.name: each.limit_nodes for each in plan.node_pools}))
        assert all(plant.limits[kind] >= plant.count(kind) for kind in CapacityType), "no limit under use"
        plant.scale(ON_DEMAND, split.on_demand, self.size)
        plant.scale(SPOT, split.spot, self.size)
        plant.tick()

    def is_kept(self) -> bool:
        """By the nodes that are really there."""
        floor = self.parameters.on_demand_floor_percent
        return is_split_kept(self.plant.count(ON_DEMAND), self.plant.count(SPOT), floor)


@pytest.mark.parametrize("floor_percent", [20, 70], ids=["a floor of 20 %", "a spot cap of 30 %"])
@pytest.mark.parametrize("size", [8, 4, 1], ids=["a node a replica", "two a node", "eight a node"])
def test_the_floor_holds_over_200_changes_of_the_count(floor_percent: int, size: int) -> None:
    chance = random.Random(floor_percent + size)
    pool = TwoTargets(NodePlant(7), floor_percent, size, slack_nodes=1)
    for _ in range(200):
        pool.replicas = chance.choice([0, chance.randrange(12), chance.randrange(80)])
        for _ in range(chance.randrange(1, 25)):
            pool.tick()
            assert pool.is_kept(), "at every moment, growing and shrinking"
    for _ in range(120):
        pool.tick()
    _assert_settled(pool)


@pytest.mark.parametrize("floor_percent", [20, 70], ids=["a floor of 20 %", "a spot cap of 30 %"])
def test_the_floor_comes_back_where_nodes_are_lost_and_spot_cannot_be_had(floor_percent: int) -> None:
    chance = random.Random(floor_percent)
    plant = NodePlant(11)
    pool = TwoTargets(plant, floor_percent, 8, slack_nodes=1)
    for _ in range(200):
        event = chance.randrange(4)
        if event == 0:
            plant.delete_a_node()
        elif event == 1:
            plant.buys[SPOT] = not plant.buys[SPOT]
        else:
            pool.replicas = chance.choice([0, chance.randrange(12), chance.randrange(60)])
        for _ in range(chance.randrange(1, 12)):
            pool.tick()
            opened_spot = sum(node.kind is SPOT for node in plant.opened)
            assert pool.is_kept() or not opened_spot, "no spot node is ever added beside too few on demand"
        for _ in range(30):
            pool.tick()
        assert pool.is_kept(), "and what was lost has been replaced"
    plant.buys[SPOT] = True
    for _ in range(200):
        pool.tick()
    _assert_settled(pool)


def _assert_settled(pool: TwoTargets) -> None:
    """All replicas have their place, no more than asked for, with the most spot that the floor allows."""
    plant = pool.plant
    on_demand, spot = plant.target(ON_DEMAND), plant.target(SPOT)
    assert plant.waiting == []
    assert on_demand.spec + spot.spec == pool.replicas
    rule = SplitRule(pool.parameters.on_demand_floor_percent, 8 // pool.size)
    share = split_replicas(pool.replicas, on_demand, spot, rule)
    assert (on_demand.spec, spot.spec) == (share.on_demand, share.spot)
    for kind, target in ((ON_DEMAND, on_demand), (SPOT, spot)):
        demand = AcceleratorDemand("all", target.spec, target.spec, 0, pool.size)
        assert pool.size != 8 or plant.count(kind) == nodes_for(NodeRoom(8), [demand])


@pytest.mark.parametrize("floor_percent", [20, 70], ids=["a floor of 20 %", "a spot cap of 30 %"])
def test_one_target_never_gets_a_spot_node_before_its_on_demand_ones(floor_percent: int) -> None:
    chance = random.Random(floor_percent)
    plant = NodePlant(13)
    parameters = NodeCapacityParameters(8, 1, on_demand_floor_percent=floor_percent)
    replicas = 0
    for _ in range(200):
        replicas = chance.choice([replicas, chance.randrange(40)])
        if chance.random() < 0.2:
            plant.delete_a_node()
        for _ in range(chance.randrange(1, 15)):
            there = plant.target(None)
            demand = AcceleratorDemand("all", replicas, there.spec, 0, 8)
            plan = plan_node_capacity(parameters, [demand], plant.states())
            plant.limits = dict(by_kind({each.name: each.limit_nodes for each in plan.node_pools}))
            plant.scale(None, replicas, 8)
            plant.tick()
            is_kept = is_split_kept(plant.count(ON_DEMAND), plant.count(SPOT), floor_percent)
            assert is_kept or not any(node.kind is SPOT for node in plant.opened)
            assert len(plant.opened) <= demand.wanted_replicas, "never a node more than the plan"


@pytest.mark.parametrize("floor_percent", [20, 70], ids=["a floor of 20 %", "a spot cap of 30 %"])
@pytest.mark.parametrize("size", [8, 4], ids=["a node a replica", "two a node"])
def test_one_target_keeps_the_floor_also_on_the_way_down_where_victims_are_chosen(
    floor_percent: int, size: int
) -> None:
    chance = random.Random(floor_percent + size)
    plant = NodePlant(17)
    parameters = NodeCapacityParameters(8, 0, on_demand_floor_percent=floor_percent)
    for _ in range(200):
        replicas = chance.choice([0, chance.randrange(12), chance.randrange(60)])
        for _ in range(40):
            held = plant.shrink_by_choice(replicas, floor_percent)
            there = plant.target(None)
            demand = AcceleratorDemand("all", replicas, there.spec, 0, size)
            plan = plan_node_capacity(parameters, [demand], plant.states())
            plant.limits = dict(by_kind({each.name: each.limit_nodes for each in plan.node_pools}))
            plant.scale(None, replicas + held, size)
            plant.tick()
            assert is_split_kept(plant.count(ON_DEMAND), plant.count(SPOT), floor_percent), "at every moment"
        assert plant.waiting == []
        assert held == 0
