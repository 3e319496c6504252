"""The controller's own code on two simulated Deployments, on demand and on spot."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from autoscaler.actuators.actuator import Actuated
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.node_agreement import ReadAcceleratorPool, assumed_of_pools
from autoscaler.replay.node_setup import NodesSetup, OutOfCapacity
from autoscaler.replay.policy_files import reconciled_policy
from autoscaler.replay.pool_policy import ReconciledPolicy, with_one_target
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.virtual_clock import play
from policies.capacity_split import CapacityType, TargetCounts, is_split_kept
from policies.reasons import Reason
from tests.autoscaler.replay.simulated_node_fleets import a_node_fleet, after, node_pool, nodes_setup, only_pool
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_setup
from tests.autoscaler.replay.test_simulated_karpenter import (
    GPU,
    a_pool,
    a_referring_scaler,
    a_wave,
    on_demand,
    spot,
)

OD, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
FLOOR_PERCENT = 20
TWO_TARGETS = {
    "scale_target_ref": None,
    "capacity_types": {
        kind: {"scale_target_ref": {"api_version": "apps/v1", "kind": "Deployment", "name": name}}
        for kind, name in (("on_demand", "vllm-chat"), ("spot", "vllm-chat-spot"))
    },
}


@dataclass
class FloorWatch:
    """Looks at the nodes once a second; `broken` are the counts by which the floor was not kept."""

    nodes: SimulatedNodes
    interval_seconds: float = 1.0
    seen: list[tuple[int, int]] = field(default_factory=list)

    def tick(self, now_seconds: float) -> None:
        del now_seconds
        counts = dict.fromkeys((OD, SPOT), 0)
        for pool in self.nodes.pools.values():
            counts[pool.setup.capacity_type] += pool.nodes_in_use
        self.seen.append((counts[OD], counts[SPOT]))

    @property
    def broken(self) -> list[tuple[int, int]]:
        return [counts for counts in self.seen if not is_split_kept(*counts, FLOOR_PERCENT)]


def run_the_wave(**more: object) -> tuple[SimulatedFleet, FloorWatch]:
    cold_start = ColdStart((ColdStartPhase("load", 30.0, 0.0),))
    setup = a_setup(initial_replicas=2, cold_start=cold_start, spot_target_name="vllm-chat-spot")
    nodes = SimulatedNodes(nodes_setup(on_demand(), spot(**more)), 1, STARTED_AT, STARTED_AT)
    fleet = SimulatedFleet([(setup, a_wave())], STARTED_AT, 1, nodes)
    policy = ReconciledPolicy([a_referring_scaler(**TWO_TARGETS)], accelerator_pools=[a_pool()])
    watch = FloorWatch(nodes)
    play(fleet, (*policy.controllers(fleet), watch), STARTED_AT + 2700.0)
    return fleet, watch


def test_the_floor_holds_at_every_second_and_spot_carries_the_wave() -> None:
    fleet, watch = run_the_wave()
    assert watch.broken == []
    assert max(spot_nodes for _, spot_nodes in watch.seen) >= 2
    assert max(on_demand_nodes for on_demand_nodes, _ in watch.seen) <= 2
    pool = fleet.pools[KEY]
    assert pool.outcomes.dropped == 0
    assert pool.count_of(OD) + pool.count_of(SPOT) == pool.spec_replicas


def test_where_spot_cannot_be_had_all_is_on_demand_and_goes_back() -> None:
    _, watch = run_the_wave(out_of_capacity=(OutOfCapacity(0.0, 500.0),))
    assert watch.broken == []
    during, after_it = watch.seen[:500], watch.seen[500:]
    assert {spot_nodes for _, spot_nodes in during} == {0}
    assert max(on_demand_nodes for on_demand_nodes, _ in during) >= 2
    assert max(spot_nodes for _, spot_nodes in after_it) >= 1


def two_deployments(**more: object) -> SimulatedFleet:
    pools = (node_pool("od", limits={GPU: "8"}), node_pool("spot", limits={GPU: "8"}, weight=9))
    return a_node_fleet(*pools, initial_replicas=2, spot_target_name="vllm-chat-spot", **more)


def test_each_deployment_has_its_kind_of_node_whatever_the_weights_say() -> None:
    fleet = two_deployments()
    pool = only_pool(fleet)
    assert pool.counts_of(OD) == TargetCounts(2, 2, 2)
    pool.scale(3, capacity_type=SPOT)
    after(fleet, 50.0)
    assert pool.counts_of(SPOT) == TargetCounts(3, 0, 0), "they wait for their nodes"
    after(fleet, 200.0)
    assert pool.counts_of(SPOT) == TargetCounts(3, 3, 3)
    assert fleet.nodes is not None
    assert {name: node_pool.nodes_in_use for name, node_pool in fleet.nodes.pools.items()} == {"od": 1, "spot": 2}
    pool.scale(1, capacity_type=OD)
    assert (pool.count_of(OD), pool.count_of(SPOT), pool.spec_replicas) == (1, 3, 4)


def test_a_count_is_written_to_the_target_that_was_seen() -> None:
    fleet = two_deployments()
    workload = fleet.observe_workload(a_referring_scaler(**TWO_TARGETS), STARTED_AT)
    on_demand_part, spot_part = workload.parts  # type: ignore[union-attr]
    assert isinstance(fleet.scale(on_demand_part.target, 2, 3), Actuated)
    assert isinstance(fleet.scale(spot_part.target, 0, 1), Actuated), "the other target has not changed"
    again = fleet.scale(spot_part.target, 0, 2)
    assert again.reason is Reason.CONFLICT


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        pytest.param(nodes_setup(node_pool("od"), node_pool("spot")), "all first replicas are on demand", id="both"),
        pytest.param(nodes_setup(node_pool("od")), "replayed as one", id="a fleet without spot nodes"),
        pytest.param(None, "replayed as one", id="a fleet without nodes"),
    ],
)
def test_what_is_assumed_of_two_targets(nodes: NodesSetup | None, words: str) -> None:
    pools = [ReadAcceleratorPool(a_pool(), "a.yaml, line 1")]
    assumed = list(assumed_of_pools("chat", pools, nodes, has_two_targets=True))
    assert words in assumed[0]


def test_a_policy_with_two_targets_names_both() -> None:
    scaler = a_referring_scaler(**TWO_TARGETS)
    identity = reconciled_policy(scaler).identity
    assert (identity.target_name, identity.spot_target_name) == ("vllm-chat", "vllm-chat-spot")
    one = with_one_target(scaler).spec
    assert (one.capacity_types, one.first_target_ref.name) == (None, "vllm-chat")
