"""Nodes of a simulated fleet: how they come, fill up, empty, and are lost."""

from __future__ import annotations

import pytest

from autoscaler.api.node_shape import NodeShape
from autoscaler.replay.faults import NodeShortage
from autoscaler.replay.node_setup import ListedLoss, NodeLosses, NodePoolSetup, OutOfCapacity
from autoscaler.replay.replica_profile import built_in_profile
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_node_pool import UNAVAILABLE_SECONDS
from autoscaler.replay.simulated_nodes import SimulatedNodes
from tests.autoscaler.replay.simulated_node_fleets import (
    IMAGE_SECONDS,
    LAUNCH_SECONDS,
    LOAD_SECONDS,
    a_node_fleet,
    after,
    node_pool,
    nodes_of,
    nodes_setup,
    only_pool,
)
from tests.autoscaler.replay.simulated_pools import STARTED_AT, a_setup, steady_requests

GPU = "nvidia.com/gpu"


def lost(at_seconds: float, nodes: int = 1) -> NodeLosses:
    return NodeLosses(0.0, (ListedLoss(at_seconds, nodes),))


@pytest.mark.parametrize(
    ("accelerators", "replicas", "nodes"),
    [
        pytest.param(1, 3, 3, id="one replica a node"),
        pytest.param(2, 3, 2, id="a half empty node is a whole node"),
        pytest.param(4, 8, 2, id="full nodes"),
        pytest.param(8, 9, 2, id="one replica too many for a node takes another whole one"),
    ],
)
def test_nodes_come_whole(accelerators: int, replicas: int, nodes: int) -> None:
    fleet = a_node_fleet(accelerators=accelerators, initial_replicas=1)
    only_pool(fleet).scale(replicas)
    after(fleet, 300.0)
    assert nodes_of(fleet) == {"od": nodes}
    assert only_pool(fleet).replicas.ready == replicas


def ready_at(replicas_before: int, replicas_after: int) -> float:
    """Seconds until all are ready, on nodes of two; the look is once a second."""
    fleet = a_node_fleet(initial_replicas=replicas_before)
    pool = only_pool(fleet)
    pool.scale(replicas_after)
    for second in range(1, 300):
        after(fleet, second)
        if pool.replicas.ready == replicas_after:
            return second
    raise AssertionError("never ready")


@pytest.mark.parametrize(
    ("before", "wanted", "seconds"),
    [
        pytest.param(1, 2, LOAD_SECONDS, id="on a warm node that has the image, only the load"),
        pytest.param(2, 3, LAUNCH_SECONDS + IMAGE_SECONDS + LOAD_SECONDS, id="without a free place all phases"),
        pytest.param(2, 4, LAUNCH_SECONDS + IMAGE_SECONDS + LOAD_SECONDS, id="two on a new node share its image"),
    ],
)
def test_a_start_has_the_phases_that_are_needed(before: int, wanted: int, seconds: float) -> None:
    assert ready_at(before, wanted) == pytest.approx(seconds, abs=2.0)


def test_the_controller_sees_how_long_a_replica_waited_for_its_node() -> None:
    fleet = a_node_fleet(initial_replicas=2)
    only_pool(fleet).scale(3)
    (start,) = only_pool(after(fleet, 200.0)).seen_starts.starts
    assert start.node_seconds == pytest.approx(LAUNCH_SECONDS, abs=2.0)
    assert start.seconds == pytest.approx(LAUNCH_SECONDS + IMAGE_SECONDS + LOAD_SECONDS, abs=2.0)


@pytest.mark.parametrize(
    ("limits", "replicas", "expected"),
    [
        pytest.param({}, 6, {"od": 3, "spot": 0}, id="without limits the larger weight makes all nodes"),
        pytest.param({GPU: "4"}, 6, {"od": 2, "spot": 1}, id="beyond its limit the next NodePool makes them"),
        pytest.param({GPU: "5"}, 6, {"od": 2, "spot": 1}, id="half a node of a limit is none"),
        pytest.param({GPU: "8", "cpu": "47"}, 6, {"od": 1, "spot": 2}, id="the resource that binds first decides"),
        pytest.param({"nodes": "1"}, 6, {"od": 1, "spot": 2}, id="a limit in nodes"),
    ],
)
def test_nodepools_are_asked_by_weight_and_within_their_limits(
    limits: dict[str, str], replicas: int, expected: dict[str, int]
) -> None:
    fleet = a_node_fleet(node_pool("spot", weight=1), node_pool("od", weight=5, limits=limits), initial_replicas=1)
    only_pool(fleet).scale(replicas)
    assert nodes_of(after(fleet, 300.0)) == expected


def test_replicas_beyond_all_limits_start_in_time_at_first_and_are_stuck_after_two_minutes() -> None:
    fleet = a_node_fleet(node_pool(limits={GPU: "2"}), initial_replicas=2)
    pool = only_pool(fleet)
    pool.scale(4)
    assert (pool.replicas.starting, pool.replicas.stuck) == (2, 0)
    after(fleet, 121.0)
    assert (pool.replicas.ready, pool.replicas.starting, pool.replicas.stuck) == (2, 0, 2)
    assert fleet.nodes is not None
    fleet.nodes.set_limits("od", {GPU: "4"})
    after(fleet, 300.0)
    assert pool.replicas.ready == 4


def test_a_lowered_limit_takes_no_node_and_allows_none() -> None:
    fleet = a_node_fleet(node_pool(limits={GPU: "6"}), initial_replicas=6)
    assert fleet.nodes is not None
    fleet.nodes.set_limits("od", {GPU: "2"})
    only_pool(fleet).scale(8)
    assert nodes_of(after(fleet, 300.0)) == {"od": 3}
    assert only_pool(fleet).replicas.ready == 6


def test_an_empty_node_is_given_back_after_its_delay_and_paid_for_until_then() -> None:
    fleet = a_node_fleet(node_pool(consolidate_after_seconds=300.0), initial_replicas=2, accelerators=1)
    pool = only_pool(after(fleet, 100.0))
    pool.scale(1)
    assert nodes_of(after(fleet, 399.0)) == {"od": 2}
    assert nodes_of(after(fleet, 403.0)) == {"od": 1}
    assert fleet.nodes is not None
    assert fleet.nodes.pools["od"].node_seconds(STARTED_AT + 403.0) == pytest.approx(403.0 + 401.0, abs=1.0)


def test_a_node_with_one_replica_left_stays() -> None:
    fleet = a_node_fleet(node_pool(consolidate_after_seconds=0.0), initial_replicas=4)
    only_pool(fleet).scale(3)
    assert nodes_of(after(fleet, 60.0)) == {"od": 2}


def test_of_ready_replicas_the_ones_that_share_a_node_go_first_as_with_a_replica_set() -> None:
    """So that two replicas fewer, one after the other, leave two half empty nodes, and none is given back."""
    fleet = a_node_fleet(node_pool(consolidate_after_seconds=0.0), initial_replicas=4)
    only_pool(fleet).scale(3)
    only_pool(after(fleet, 30.0)).scale(2)
    assert nodes_of(after(fleet, 60.0)) == {"od": 2}


@pytest.mark.parametrize(
    ("output_tokens", "are_lost"),
    [
        pytest.param(4000, False, id="answers that end within 120 s are finished"),
        pytest.param(60_000, True, id="longer ones are lost with the node"),
    ],
)
def test_a_reclaim_gives_120_seconds_and_replicas_are_replaced_at_once(output_tokens: int, are_lost: bool) -> None:
    requests = iter([Request(STARTED_AT + 10.0 + place, 1000, output_tokens) for place in range(8)])
    fleet = a_node_fleet(node_pool("spot", reclaims=lost(50.0)), initial_replicas=4, requests=requests)
    pool = only_pool(after(fleet, 51.0))
    assert (pool.replicas.ready, pool.replicas.starting) == (2, 2)
    # The one with the notice, the other, and the replacement.
    assert nodes_of(fleet) == {"spot": 3}
    after(fleet, 169.0)
    if are_lost:
        assert pool.replicas.terminating == 2
    after(fleet, 250.0)
    assert nodes_of(fleet) == {"spot": 2}
    assert pool.replicas.ready == 4
    assert (pool.outcomes.lost_to_reclaims > 0) is are_lost
    assert pool.outcomes.dropped == pool.outcomes.lost_to_reclaims
    assert not pool.count_changes


def test_a_replica_gets_no_more_than_its_own_grace_of_a_notice() -> None:
    requests = iter([Request(STARTED_AT + 10.0, 1000, 60_000)])
    fleet = a_node_fleet(
        node_pool("spot", reclaims=lost(50.0)), initial_replicas=1, requests=requests, drain_grace_seconds=20.0
    )
    assert nodes_of(after(fleet, 65.0)) == {"spot": 2}
    assert nodes_of(after(fleet, 75.0)) == {"spot": 1}
    assert only_pool(fleet).outcomes.lost_to_reclaims == 1


def test_a_reclaimed_node_goes_with_its_last_replica() -> None:
    fleet = a_node_fleet(node_pool("spot", reclaims=lost(50.0)), initial_replicas=2)
    assert nodes_of(after(fleet, 55.0)) == {"spot": 1}


def test_a_node_with_a_notice_does_not_count_against_the_limit() -> None:
    requests = iter([Request(STARTED_AT + 10.0 + place, 1000, 60_000) for place in range(8)])
    pool = node_pool("spot", reclaims=lost(50.0), limits={GPU: "4"})
    fleet = a_node_fleet(pool, initial_replicas=4, requests=requests)
    assert nodes_of(after(fleet, 60.0)) == {"spot": 3}
    assert fleet.nodes is not None
    assert fleet.nodes.pools["spot"].nodes_in_use == 2
    assert fleet.nodes.most_nodes == 3


def test_a_node_that_dies_takes_its_requests_with_it() -> None:
    fleet = a_node_fleet(node_pool(deaths=lost(50.0)), initial_replicas=4, requests=steady_requests(8.0))
    pool = only_pool(after(fleet, 52.0))
    assert (pool.replicas.ready, pool.replicas.starting) == (2, 2)
    assert pool.outcomes.dropped > 0
    assert pool.outcomes.lost_to_reclaims == 0
    assert only_pool(after(fleet, 260.0)).replicas.ready == 4


def out_of_capacity(*others: NodePoolSetup) -> dict[int, dict[str, int]]:
    """Nodes while spot has none from second 10 to 400; another replica is wanted from second 20."""
    drought = (OutOfCapacity(10.0, 390.0),)
    spot = node_pool("spot", weight=9, out_of_capacity=drought)
    fleet = a_node_fleet(spot, *others, initial_replicas=2)
    only_pool(after(fleet, 20.0)).scale(3)
    return {second: nodes_of(after(fleet, second)) for second in (30, 300, 400 + int(UNAVAILABLE_SECONDS))}


def test_without_capacity_replicas_wait_and_it_is_asked_again_every_three_minutes() -> None:
    assert out_of_capacity() == {30: {"spot": 1}, 300: {"spot": 1}, 580: {"spot": 2}}


def test_without_capacity_another_nodepool_makes_the_node() -> None:
    assert out_of_capacity(node_pool("od"))[30] == {"spot": 1, "od": 1}


def test_a_replica_larger_than_a_node_takes_whole_ones_and_starts_when_all_are_there() -> None:
    four = built_in_profile("llama-3.1-70b-bf16-4xh100-vllm")
    fleet = a_node_fleet(node_pool(initial_nodes=3), initial_replicas=1, profile=four)
    pool = only_pool(fleet)
    assert nodes_of(fleet) == {"od": 3}
    pool.scale(2)
    assert nodes_of(after(fleet, 2.0)) == {"od": 4}
    assert only_pool(after(fleet, LAUNCH_SECONDS)).waiting_pods
    assert only_pool(after(fleet, LAUNCH_SECONDS + 60.0)).replicas.ready == 2


def test_losing_one_node_of_a_large_replica_loses_the_replica() -> None:
    four = built_in_profile("llama-3.1-70b-bf16-4xh100-vllm")
    fleet = a_node_fleet(node_pool(deaths=lost(50.0)), initial_replicas=1, profile=four)
    assert only_pool(after(fleet, 60.0)).replicas.ready == 0
    assert only_pool(after(fleet, 300.0)).replicas.ready == 1
    assert nodes_of(fleet) == {"od": 2}


def test_a_rate_of_reclaims_is_met_on_average_and_is_the_same_for_the_same_seed() -> None:
    def notices(seed: int) -> int:
        pool = node_pool("spot", reclaims=NodeLosses(2.0))
        fleet = after(a_node_fleet(pool, initial_replicas=20, accelerators=1, seed=seed), 3600.0)
        assert fleet.nodes is not None
        return fleet.nodes.pools["spot"].reclaimed

    first, second = notices(1), notices(2)
    assert 25 <= first <= 55
    assert first == notices(1)
    assert first != second


def test_initial_nodes_stand_and_are_filled_first() -> None:
    fleet = a_node_fleet(node_pool("od"), node_pool("spot", initial_nodes=2), initial_replicas=3)
    assert nodes_of(fleet) == {"od": 0, "spot": 2}


def test_limits_without_room_for_the_first_replicas_are_no_setup() -> None:
    with pytest.raises(ValueError, match="no room for the first replicas"):
        a_node_fleet(node_pool(limits={GPU: "2"}), initial_replicas=3)


def test_a_shortage_of_nodes_is_said_of_the_nodepool_where_nodes_are_simulated() -> None:
    pool = only_pool(a_node_fleet(initial_replicas=1))
    begins, _ = NodeShortage(at_seconds=10.0, lasts_seconds=10.0).events(pool, STARTED_AT)
    with pytest.raises(ValueError, match="outOfCapacity"):
        begins.act()


@pytest.mark.parametrize(
    ("limits", "accelerators_per_replica", "copies", "replicas"),
    [
        pytest.param([{}, {GPU: "8"}], 2, 1, None, id="one NodePool without limits is no limit"),
        pytest.param([{GPU: "16"}, {GPU: "8"}], 2, 1, 12, id="four to a node of eight"),
        pytest.param([{GPU: "20"}, {GPU: "7"}], 3, 1, 4, id="whole nodes, and whole replicas on each"),
        pytest.param([{GPU: "32"}], 16, 1, 2, id="a replica of two nodes"),
        pytest.param([{GPU: "40"}], 2, 2, 16, id="nodes that stand for two each"),
    ],
)
def test_how_many_replicas_the_limits_have_room_for(
    limits: list[dict[str, str]], accelerators_per_replica: int, copies: int, replicas: int | None
) -> None:
    pools = [node_pool(f"od-{number}", limits=each) for number, each in enumerate(limits)]
    setup = nodes_setup(*pools, accelerators=8)
    assert setup.shape == NodeShape({GPU: "8", "cpu": "96"})
    assert setup.most_replicas(accelerators_per_replica, copies) == replicas


def held_ready(fleet: SimulatedFleet, nodes: int, name: str = "od") -> None:
    assert fleet.nodes is not None
    fleet.nodes.hold_ready(name, nodes)


def test_nodes_that_are_held_ready_stand_beside_those_of_replicas_and_stay() -> None:
    fleet = a_node_fleet(node_pool(consolidate_after_seconds=30.0), initial_replicas=2)
    held_ready(fleet, 2)
    assert nodes_of(after(fleet, 2.0)) == {"od": 3}
    assert nodes_of(after(fleet, 900.0)) == {"od": 3}
    held_ready(fleet, 1)
    assert nodes_of(after(fleet, 902.0)) == {"od": 2}


def test_a_replica_takes_a_node_that_is_held_and_another_is_launched() -> None:
    fleet = a_node_fleet(initial_replicas=2)
    held_ready(fleet, 1)
    after(fleet, 200.0)
    only_pool(fleet).scale(3)
    after(fleet, 201.0 + IMAGE_SECONDS + LOAD_SECONDS)
    assert only_pool(fleet).replicas.ready == 3
    assert nodes_of(fleet) == {"od": 3}


def test_a_node_that_is_handed_over_is_not_bought_twice() -> None:
    fleet = a_node_fleet(initial_replicas=2)
    held_ready(fleet, 1)
    after(fleet, 200.0)
    held_ready(fleet, 0)
    only_pool(fleet).scale(4)
    assert nodes_of(after(fleet, 400.0)) == {"od": 2}


def test_nodes_on_their_way_to_waiting_replicas_are_not_held() -> None:
    fleet = a_node_fleet(initial_replicas=2)
    only_pool(fleet).scale(6)
    after(fleet, 5.0)
    held_ready(fleet, 1)
    assert nodes_of(after(fleet, 300.0)) == {"od": 4}


def test_no_more_are_held_than_the_limits_allow() -> None:
    fleet = a_node_fleet(node_pool(limits={GPU: "4"}), node_pool("spot"), initial_replicas=2)
    held_ready(fleet, 5)
    assert nodes_of(after(fleet, 300.0)) == {"od": 2, "spot": 0}


def test_in_a_sampled_fleet_a_node_that_is_held_stands_for_several() -> None:
    nodes = SimulatedNodes(nodes_setup(), 1, STARTED_AT, STARTED_AT, copies=4)
    fleet = SimulatedFleet([(a_setup(initial_replicas=4, sampled_one_in=4), iter(()))], STARTED_AT, 1, nodes)
    held_ready(fleet, 5)
    assert nodes_of(after(fleet, 300.0)) == {"od": 12}
