"""Replicas that go so that whole nodes of a simulated fleet become empty."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.actuators.victim_marker import CountFall
from autoscaler.observers.workload import ScaleTarget
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.simulated_victims import SimulatedVictims
from policies.reasons import Reason
from policies.victims import NodesOfSplit
from tests.autoscaler.replay.simulated_node_fleets import (
    a_node_fleet,
    after,
    node_pool,
    nodes_of,
    nodes_setup,
    only_pool,
)
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_setup

TARGET = ScaleTarget(KEY[0], "Deployment", "vllm-chat", "/scale", "1", "1")


def fall(fleet: SimulatedFleet, to_replicas: int, is_marked: bool) -> str:
    """Lowers the count by one replica after the other, each after a second; what the last marking came to."""
    pool, message = only_pool(fleet), ""
    assert fleet.nodes is not None
    victims = SimulatedVictims(fleet.nodes, fleet.pool_of)
    while pool.spec_replicas > to_replicas:
        if is_marked:
            message = victims.mark(CountFall(TARGET, pool.pods, 1, 0)).message
        pool.scale(pool.spec_replicas - 1)
        after(fleet, fleet.now_seconds - STARTED_AT + 1.0)
    return message


@pytest.mark.parametrize(
    ("is_marked", "nodes"),
    [
        pytest.param(False, 3, id="left to the ReplicaSet every node keeps one"),
        pytest.param(True, 2, id="marked, what stays stands on as few nodes as it can"),
    ],
)
def test_falling_counts_empty_whole_nodes_where_they_are_marked(is_marked: bool, nodes: int) -> None:
    fleet = a_node_fleet(node_pool(consolidate_after_seconds=0.0), initial_replicas=6)
    fall(fleet, 3, is_marked)
    assert nodes_of(after(fleet, 30.0)) == {"od": nodes}
    assert only_pool(fleet).replicas.ready == 3


def test_what_is_saved_is_said_in_nodes() -> None:
    fleet = a_node_fleet(node_pool(), initial_replicas=4)
    assert fall(fleet, 3, is_marked=True) == "0 nodes will be empty"
    assert fall(fleet, 2, is_marked=True) == "1 node will be empty"


def test_a_replica_that_starts_goes_before_those_that_are_marked() -> None:
    fleet = a_node_fleet(node_pool(), initial_replicas=2)
    pool = only_pool(fleet)
    pool.scale(3)
    after(fleet, 5.0)
    fall(fleet, 2, is_marked=True)
    assert (pool.replicas.ready, pool.replicas.starting, pool.replicas.terminating) == (2, 0, 0)


def test_marks_of_an_earlier_choice_are_taken_away() -> None:
    fleet = a_node_fleet(node_pool(), initial_replicas=4)
    assert fleet.nodes is not None
    victims, pool = SimulatedVictims(fleet.nodes, fleet.pool_of), only_pool(fleet)
    victims.mark(CountFall(TARGET, pool.pods, 3, 0))
    assert sorted(pod.deletion_cost for pod in pool.existing_pods) == [-3, -2, -1, 0]
    victims.mark(CountFall(TARGET, pool.pods, 1, 0))
    assert sorted(pod.deletion_cost for pod in pool.existing_pods) == [-1, 0, 0, 0]


def test_a_target_that_is_not_simulated_has_no_victims() -> None:
    fleet = a_node_fleet(node_pool(), initial_replicas=1)
    assert fleet.nodes is not None
    other = ScaleTarget(KEY[0], "Deployment", "other", "/scale", "1", "1")
    assert SimulatedVictims(fleet.nodes, fleet.pool_of).mark(CountFall(other, (), 1, 0)).emptied_nodes == 0


def test_an_emptied_node_that_still_stands_does_not_count_for_the_floor() -> None:
    """Of three on demand beside two on spot at 50 % one may go; the next is of spot, though the first still stands."""
    on_demand = node_pool(weight=9, limits={"nvidia.com/gpu": "6"})
    fleet = a_node_fleet(on_demand, node_pool("spot"), initial_replicas=10)
    assert fleet.nodes is not None
    pool, victims = only_pool(fleet), SimulatedVictims(fleet.nodes, fleet.pool_of)
    emptied = []
    for to_replicas in (8, 6):
        split = NodesOfSplit(50, nodes_of(fleet)["od"], nodes_of(fleet)["spot"])
        assert split == NodesOfSplit(50, 3, 2)
        chosen = victims.mark(CountFall(TARGET, pool.pods, to_replicas + 2, to_replicas, split))
        emptied += [
            name for name in ("od", "spot") if chosen.emptied_nodes and _stand_on(fleet, chosen.names) == {name}
        ]
        pool.scale(to_replicas)
        after(fleet, fleet.now_seconds - STARTED_AT + 1.0)
    assert emptied == ["od", "spot"]


def test_pools_that_fall_together_keep_the_floor_in_all_that_stays() -> None:
    """Four a node: the first has both nodes on demand, the second both on spot, of which at 50 % none may go alone."""
    setup = nodes_setup(node_pool(weight=9, limits={"nvidia.com/gpu": "4"}), node_pool("spot"), accelerators=2)
    nodes = SimulatedNodes(setup, 1, STARTED_AT, STARTED_AT)
    setups = [a_setup(initial_replicas=4), a_setup(initial_replicas=4, name="other", target_name="vllm-other")]
    fleet = SimulatedFleet([(each, iter(())) for each in setups], STARTED_AT, 1, nodes)
    assert nodes_of(fleet) == {"od": 2, "spot": 2}
    victims, split = SimulatedVictims(nodes, fleet.pool_of), NodesOfSplit(50, 2, 2)
    other = replace(TARGET, name="vllm-other")

    held = victims.mark(CountFall(TARGET, (), 4, 2, split))
    assert (held.to_replicas, held.emptied_nodes, held.reason) == (3, 0, Reason.ON_DEMAND_FLOOR)
    assert victims.mark(CountFall(other, (), 4, 2, split)).emptied_nodes == 1
    assert victims.mark(CountFall(TARGET, (), 4, 2, replace(split, spot=1))).to_replicas == 2


def _stand_on(fleet: SimulatedFleet, names: tuple[str, ...]) -> set[str]:
    """The NodePools on which these replicas are."""
    assert fleet.nodes is not None
    nodes = [fleet.nodes.node_of(pod) for pod in only_pool(fleet).existing_pods if pod.name in names]
    return {node.node_pool for node in nodes if node is not None}
