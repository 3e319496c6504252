"""The controller's own code on simulated NodePools: limits before replicas, and after nodes have gone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.api.inference_scaler import InferenceScaler, InferenceScalerSpec
from autoscaler.observers.workload import ScaleTarget
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.node_result import node_result
from autoscaler.replay.node_setup import NodePoolSetup, OutOfCapacity
from autoscaler.replay.pool_policy import ReconciledPolicy
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_karpenter import SimulatedKarpenter
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.virtual_clock import play
from policies.reasons import Reason
from tests.autoscaler.replay.simulated_node_fleets import a_node_fleet, after, node_pool, nodes_setup
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_scaler, a_setup

GPU = "nvidia.com/gpu"
PER_NODE = 2


def a_pool(**more: object) -> AcceleratorPool:
    parsed = parse_accelerator_pool(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": "a100"},
            "spec": {
                "mode": "Manage",
                "nodePools": {"onDemand": "od", "spot": "spot"},
                "nodeShape": {"accelerators": PER_NODE},
                "split": {"onDemandFloorPercent": 20},
                "slackNodes": 0,
                **more,
            },
        }
    )
    assert isinstance(parsed, AcceleratorPool), parsed
    return parsed


def a_referring_scaler(**more: object) -> InferenceScaler:
    scaler = a_scaler()
    changed = {**scaler.spec.model_dump(), "accelerator_pool_ref": {"name": "a100"}, **more}
    return replace(scaler, spec=InferenceScalerSpec.model_validate(changed))


def a_busy_scaler(name: str, priority: int) -> InferenceScaler:
    target = {"api_version": "apps/v1", "kind": "Deployment", "name": f"vllm-{name}"}
    return replace(a_referring_scaler(priority=priority, scale_target_ref=target), name=name)


class WatchedNodes(SimulatedNodes):
    """Asserts that no limit is ever written below the nodes that are there."""

    def set_limits(self, node_pool: str, limits: Mapping[str, str]) -> None:
        assert int(limits[GPU]) >= PER_NODE * self.pools[node_pool].nodes_in_use
        super().set_limits(node_pool, limits)


def a_rush() -> Iterator[Request]:
    """Ten minutes with the work of nine replicas."""
    return (Request(STARTED_AT + number / 50.0, 1000, 200) for number in range(1, 50 * 600))


class WatchedFleet(SimulatedFleet):
    """Keeps what the limits had room for at the moment in which each count was written."""

    rooms: list[tuple[int, int, int]]

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        assert self.nodes is not None
        room = sum(int(pool.limits[GPU]) for pool in self.nodes.pools.values())
        self.rooms.append((from_replicas, to_replicas, room))
        return super().scale(target, from_replicas, to_replicas)


def a_wave() -> Iterator[Request]:
    """Half an hour in which the work of two replicas becomes that of nine and falls back."""
    at = 0.0
    while at < 1800.0:
        at += 1.0 / (10.0 + 45.0 * math.sin(math.pi * at / 1800.0) ** 4)
        yield Request(STARTED_AT + at, 1000, 200)


def run_the_wave(*pools: NodePoolSetup, **scaler: object) -> WatchedFleet:
    setup = a_setup(initial_replicas=2, cold_start=ColdStart((ColdStartPhase("load", 30.0, 0.0),)))
    nodes = WatchedNodes(nodes_setup(*pools), 1, STARTED_AT, STARTED_AT)
    fleet = WatchedFleet([(setup, a_wave())], STARTED_AT, 1, nodes)
    fleet.rooms = []
    policy = ReconciledPolicy([a_referring_scaler(**scaler)], accelerator_pools=[a_pool()])
    play(fleet, policy.controllers(fleet), STARTED_AT + 2700.0)
    return fleet


def on_demand() -> NodePoolSetup:
    return node_pool("od", weight=9, limits={GPU: "2"}, consolidate_after_seconds=30.0)


def spot(**more: object) -> NodePoolSetup:
    return node_pool("spot", limits={GPU: "0"}, consolidate_after_seconds=30.0, **more)


@pytest.fixture(scope="module")
def wave() -> WatchedFleet:
    return run_the_wave(on_demand(), spot())


def test_limits_have_room_for_replicas_before_they_are_asked_for(wave: WatchedFleet) -> None:
    raised = [(wanted, room) for before, wanted, room in wave.rooms if wanted > before]
    assert max(wanted for wanted, _ in raised) >= 6
    # And for no node more.
    assert all(wanted <= room < wanted + PER_NODE for wanted, room in raised)


def test_limits_come_down_when_the_nodes_have_gone(wave: WatchedFleet) -> None:
    assert wave.nodes is not None
    changes = wave.nodes.limit_changes
    assert any((change.to_nodes or 0) < (change.from_nodes or 0) for change in changes)
    assert {change.node_pool: change.to_nodes for change in changes} == {"od": 1, "spot": 0}
    assert {name: pool.existing_nodes for name, pool in wave.nodes.pools.items()} == {"od": 1, "spot": 0}
    # A first count is lowered before the limit is.
    lowered = [count.at_seconds for count in wave.pools[KEY].count_changes if count.to_replicas < count.from_replicas]
    cut = [change.at_seconds for change in changes if (change.to_nodes or 0) < (change.from_nodes or 0)]
    assert min(lowered) < min(cut)


def test_the_load_is_carried_by_spot_beside_the_floor(wave: WatchedFleet) -> None:
    assert wave.nodes is not None
    assert wave.nodes.pools["spot"].launched >= 2
    assert wave.nodes.pools["od"].launched <= 2


def test_on_demand_takes_over_where_spot_cannot_be_had() -> None:
    fleet = run_the_wave(on_demand(), spot(out_of_capacity=(OutOfCapacity(0.0, 2700.0),)))
    assert fleet.nodes is not None
    assert fleet.nodes.pools["spot"].launched == 0
    assert fleet.nodes.pools["spot"].refused_launches >= 1
    assert fleet.nodes.pools["od"].launched >= 3


def test_whole_nodes_become_empty_sooner_where_the_policy_chooses_who_goes(wave: WatchedFleet) -> None:
    def node_hours(fleet: WatchedFleet) -> float:
        assert fleet.nodes is not None
        return node_result(fleet.nodes, fleet.now_seconds).node_hours

    chosen = run_the_wave(on_demand(), spot(), scale_down_victims="WholeNodes")
    assert node_hours(chosen) < node_hours(wave)


def test_what_is_seen_of_a_nodepool() -> None:
    pools = (node_pool("od", limits={GPU: "4"}), spot(out_of_capacity=(OutOfCapacity(0.0, 100.0),)))
    fleet = a_node_fleet(*pools, initial_replicas=4)
    fleet.pools[KEY].scale(6)
    after(fleet, 5.0)
    assert fleet.nodes is not None
    fleet.nodes.set_limits("spot", {GPU: "2"})
    after(fleet, 10.0)
    seen = SimulatedKarpenter(fleet.nodes).node_pools()
    assert (seen["od"].limits, seen["od"].nodes_in_use, seen["od"].nodes_deleting) == ({GPU: "4"}, 2, 0)
    assert seen["od"].makes_nodes
    assert seen["od"].capacities == ({GPU: "2", "cpu": "24"},)
    assert not seen["spot"].at(STARTED_AT + 10.0).makes_nodes


@pytest.mark.parametrize(
    ("name", "before", "reason"),
    [
        pytest.param("od", {GPU: "4"}, Reason.LIMITS_IN_STEP, id="what was seen stands there"),
        pytest.param("od", {GPU: "6"}, Reason.CONFLICT, id="somebody has written since"),
        pytest.param("other", {}, Reason.NODE_POOL_NOT_FOUND, id="there is no such NodePool"),
    ],
)
def test_limits_are_written_only_over_what_was_seen(name: str, before: dict[str, str], reason: Reason) -> None:
    fleet = a_node_fleet(node_pool("od", limits={GPU: "4"}), initial_replicas=1)
    assert fleet.nodes is not None
    assert SimulatedKarpenter(fleet.nodes).write(name, before, {GPU: "8"}).reason is reason
    assert fleet.nodes.pools["od"].limits == {GPU: "8" if reason is Reason.LIMITS_IN_STEP else "4"}


def test_two_pools_share_what_the_ceiling_leaves_by_priority() -> None:
    """Both want more than all of eight accelerators; the second keeps its minimum, and the first gets the rest."""
    scalers = [a_busy_scaler("first", 100), a_busy_scaler("second", 0)]
    setups = [
        (a_setup(initial_replicas=1, name=each.name, target_name=f"vllm-{each.name}"), a_rush()) for each in scalers
    ]
    nodes = WatchedNodes(nodes_setup(on_demand(), spot()), 1, STARTED_AT, STARTED_AT)
    fleet = SimulatedFleet(setups, STARTED_AT, 1, nodes)
    policy = ReconciledPolicy(scalers, accelerator_pools=[a_pool(ceilings={"accelerators": 8})])
    play(fleet, policy.controllers(fleet), STARTED_AT + 600.0)
    counts = {name: pool.replicas for (_, name), pool in fleet.pools.items()}
    assert counts["first"].ready == 7
    assert counts["second"].ready == 1
    assert nodes.most_nodes <= 4


PLACEHOLDERS = {"method": "PlaceholderPods", "placeholderRef": {"namespace": "inference", "name": "holds-nodes"}}
# Ten minutes in, four replicas are wanted, whatever the load. Nodes take 100 s and replicas 50 s more.
WINDOW = {"name": "noon", "start": "10 8 15 1 *", "end": "0 9 15 1 *", "min_replicas": 4}


def run_the_window(prewarm: Mapping[str, object] | None) -> SimulatedFleet:
    fleet = a_node_fleet(on_demand(), requests=iter(()), initial_replicas=1)
    pool = a_pool(nodePools={"onDemand": "od"}, split=None, prewarm=prewarm)
    scaler = a_referring_scaler(schedules=[WINDOW], cold_start={"prior_seconds": 50})
    policy = ReconciledPolicy([scaler], accelerator_pools=[pool])
    play(fleet, policy.controllers(fleet), STARTED_AT + 900.0)
    return fleet


def ready_after(fleet: SimulatedFleet, replicas: int) -> float:
    """Seconds from when they were asked for until so many were ready."""
    pool = fleet.pools[KEY]
    asked = next(change.at_seconds for change in pool.count_changes if change.to_replicas == replicas)
    return max(pod.ready_at for pod in pool.existing_pods) - asked


@pytest.mark.parametrize(
    "prewarm",
    [
        pytest.param({**PLACEHOLDERS, "spareNodes": 0, "leadSeconds": 200}, id="by placeholders"),
        pytest.param({"method": "CapacityBuffer", "spareNodes": 0, "leadSeconds": 200}, id="by a buffer"),
    ],
)
def test_nodes_are_there_before_the_replicas_of_a_window(prewarm: Mapping[str, object]) -> None:
    """The story of a window: its nodes are ordered before it, and handed over to its replicas."""
    fleet, without = run_the_window(prewarm), run_the_window(None)
    assert ready_after(without, 4) == pytest.approx(150.0, abs=5.0)
    assert ready_after(fleet, 4) == pytest.approx(50.0, abs=5.0)
    assert fleet.nodes is not None
    assert without.nodes is not None
    assert fleet.nodes.held_ready("od") == 0
    assert fleet.nodes.most_nodes == without.nodes.most_nodes == 2
    paid, paid_without = (node_result(nodes, STARTED_AT + 900.0).node_hours for nodes in (fleet.nodes, without.nodes))
    assert paid_without < paid < paid_without + 300.0 / 3600.0


def test_a_spare_node_is_paid_for_all_the_time() -> None:
    fleet = run_the_window({"method": "CapacityBuffer", "spareNodes": 1, "leadSeconds": 0})
    assert fleet.nodes is not None
    assert fleet.nodes.held_ready("od") == 1
    assert fleet.nodes.most_nodes == 3
