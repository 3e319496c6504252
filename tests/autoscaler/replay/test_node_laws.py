"""Laws of simulated nodes, whatever is scaled, limited and lost, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.replay.node_result import NodeResult, node_result
from autoscaler.replay.node_setup import ListedLoss, NodeLosses, NodePoolSetup, OutOfCapacity
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_node_pool import SimulatedNodePool
from policies.capacity_split import CapacityType
from tests.autoscaler.replay.simulated_node_fleets import PRICES, a_node_fleet, node_pool, only_pool
from tests.autoscaler.replay.simulated_pools import STARTED_AT

GPU = "nvidia.com/gpu"
ACCELERATORS = 4
RUN_SECONDS = 600.0


@dataclass(frozen=True)
class Act:
    """Something that is done after so many seconds: another count, or another limit of spot."""

    after_seconds: int
    replicas: int | None = None
    spot_accelerators: int | None = None


losses = st.builds(
    NodeLosses,
    st.sampled_from([0.0, 2.0, 20.0]),
    st.lists(st.builds(ListedLoss, st.integers(0, 600).map(float), st.integers(1, 3)), max_size=3).map(tuple),
)
droughts = st.lists(
    st.builds(OutOfCapacity, st.integers(0, 600).map(float), st.integers(1, 300).map(float)), max_size=2
).map(tuple)
spot_pools = st.builds(
    node_pool,
    st.just("spot"),
    weight=st.integers(0, 10),
    limits=st.sampled_from([{}, {GPU: "8"}, {GPU: "15", "cpu": "96"}]),
    consolidate_after_seconds=st.sampled_from([0.0, 60.0]),
    reclaims=losses,
    deaths=losses,
    out_of_capacity=droughts,
)
on_demand_pools = st.builds(
    node_pool,
    st.just("od"),
    weight=st.just(5),
    limits=st.sampled_from([{GPU: "8"}, {GPU: "24"}, {"nodes": "3"}]),
    consolidate_after_seconds=st.sampled_from([0.0, 90.0]),
    deaths=losses,
)
acts = st.lists(
    st.one_of(
        st.builds(Act, st.integers(1, 120), replicas=st.integers(0, 30)),
        st.builds(Act, st.integers(1, 120), spot_accelerators=st.integers(0, 40)),
    ),
    max_size=8,
)


def second_by_second(fleet: SimulatedFleet, todo: list[Act]) -> list[dict[str, tuple[int, int]]]:
    """Nodes in use and nodes that exist of each NodePool after every second; every law of a moment is asserted."""
    assert fleet.nodes is not None
    seen: list[dict[str, tuple[int, int]]] = []
    due = {}
    at = 0
    for act in todo:
        at += act.after_seconds
        due[at] = act
    for second in range(1, int(RUN_SECONDS) + 1):
        before = {name: pool.nodes_in_use for name, pool in fleet.nodes.pools.items()}
        fleet.advance(STARTED_AT + second)
        for name, pool in fleet.nodes.pools.items():
            assert_limits(pool, before[name])
        assert_places(fleet)
        seen.append({name: (pool.nodes_in_use, pool.existing_nodes) for name, pool in fleet.nodes.pools.items()})
        act = due.get(second)
        if act is not None and act.replicas is not None:
            only_pool(fleet).scale(act.replicas)
        if act is not None and act.spot_accelerators is not None:
            fleet.nodes.set_limits("spot", {GPU: str(act.spot_accelerators)})
    return seen


def assert_limits(pool: SimulatedNodePool, before: int) -> None:
    """A node is launched only where whole nodes fit into every limit; a limit takes none away."""
    accelerators, cpu = pool.limits.get(GPU), pool.limits.get("cpu")
    allowed = [int(accelerators) // ACCELERATORS] if accelerators else []
    allowed += [int(cpu) // (12 * ACCELERATORS)] if cpu else []
    allowed += [int(pool.limits["nodes"])] if "nodes" in pool.limits else []
    if allowed and pool.nodes_in_use > min(allowed):
        assert pool.nodes_in_use <= before


def assert_places(fleet: SimulatedFleet) -> None:
    """Every started replica has its place, no node is overfull, and what is free is free."""
    assert fleet.nodes is not None
    now = fleet.now_seconds
    nodes = [node for pool in fleet.nodes.pools.values() for node in pool.nodes]
    pods = only_pool(fleet).existing_pods
    with_node = len(pods) - len(only_pool(fleet).waiting_pods)
    taken = sum(ACCELERATORS - node.free_accelerators for node in nodes)
    # Replicas of a node that died in this second are gone with the next look.
    dying = sum(pod.ends_at <= now for pod in pods)
    assert with_node - dying <= taken <= with_node
    for node in nodes:
        assert 0 <= node.free_accelerators <= ACCELERATORS
        assert node.ready_at <= now or node.free_accelerators == ACCELERATORS
        assert node.gone_at > now


def a_fleet(spot: NodePoolSetup, on_demand: NodePoolSetup, seed: int = 1) -> SimulatedFleet:
    return a_node_fleet(on_demand, spot, accelerators=ACCELERATORS, initial_replicas=3, seed=seed)


@settings(max_examples=40, deadline=None)
@given(spot_pools, on_demand_pools, acts)
def test_nodes_are_whole_within_limits_and_paid_for_while_they_exist(
    spot: NodePoolSetup, on_demand: NodePoolSetup, todo: list[Act]
) -> None:
    fleet = a_fleet(spot, on_demand)
    first = {name: pool.existing_nodes for name, pool in fleet.nodes.pools.items()} if fleet.nodes else {}
    seen = second_by_second(fleet, todo)
    assert fleet.nodes is not None
    result = node_result(fleet.nodes, STARTED_AT + RUN_SECONDS)
    for name, kind in (("od", CapacityType.ON_DEMAND), ("spot", CapacityType.SPOT)):
        # Nodes come and go on whole seconds: those after second n are paid for until second n + 1.
        seconds = first[name] + sum(each[name][1] for each in seen[:-1])
        use = result.by_capacity_type[kind]
        assert use.node_hours == pytest.approx(seconds / 3600.0, abs=1e-6)
        assert use.accelerator_hours == pytest.approx(ACCELERATORS * use.node_hours)
        assert use.cost_dollars == pytest.approx(PRICES[kind] * use.accelerator_hours)
    assert result.max_nodes >= max(sum(exists for _, exists in each.values()) for each in seen)


def result_of(spot: NodePoolSetup, on_demand: NodePoolSetup, todo: list[Act], seed: int) -> NodeResult:
    fleet = a_fleet(spot, on_demand, seed)
    second_by_second(fleet, todo)
    assert fleet.nodes is not None
    return node_result(fleet.nodes, STARTED_AT + RUN_SECONDS)


@settings(max_examples=10, deadline=None)
@given(spot_pools, on_demand_pools, acts, st.integers(0, 1000))
def test_the_same_seed_gives_the_same_nodes(
    spot: NodePoolSetup, on_demand: NodePoolSetup, todo: list[Act], seed: int
) -> None:
    assert result_of(spot, on_demand, todo, seed) == result_of(spot, on_demand, todo, seed)
