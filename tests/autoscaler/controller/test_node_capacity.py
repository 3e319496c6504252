from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.placeholder_pods import PlaceholderPods
from autoscaler.api.accelerator_pool import AcceleratorPool, AcceleratorPoolSpec, parse_accelerator_pool
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from autoscaler.api.prewarm import PlaceholderRef
from autoscaler.controller.limits_writer import FOREIGN_WRITE_SECONDS
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.prewarming import Prewarmer
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.placeholders import Placeholders
from autoscaler.observers.workload import ScaleTarget, TargetPart
from policies.capacity_split import CapacityType, TargetCounts
from policies.launch_breaker import LaunchFailure, LaunchResult, Offering
from policies.node_capacity import WarmOutcome
from policies.reasons import Reason

SHAPE = {"accelerators": 8, "cpu": 192, "memory": "2048Gi"}
MANAGED = {"mode": "Manage", "nodePools": {"onDemand": "od"}, "nodeShape": SHAPE}
SPLIT = MANAGED | {"nodePools": {"onDemand": "od", "spot": "spot"}, "split": {"onDemandFloorPercent": 20}}


@dataclass
class FakeCluster:
    """AcceleratorPools and NodePools; limits that are written are seen at once, by the field manager `tokenscaler`."""

    spec: dict[str, object] = field(default_factory=lambda: dict(MANAGED))
    seen: dict[str, NodePoolSeen] = field(
        default_factory=lambda: {"od": NodePoolSeen("od", {"nvidia.com/gpu": "8", "cpu": "192"}, 1)}
    )
    refusal: ActuationFailed | None = None
    written: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)

    def accelerator_pools(self) -> tuple[AcceleratorPool, ...]:
        document = {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": "h100"},
            "spec": self.spec,
        }
        pool = parse_accelerator_pool(document)
        assert isinstance(pool, AcceleratorPool), pool
        assert isinstance(pool.spec, AcceleratorPoolSpec)
        return (pool,)

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return self.seen

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated | ActuationFailed:
        assert before == self.seen[name].limits
        if self.refusal:
            return self.refusal
        self.written.append((name, after))
        self.seen[name] = replace(self.seen[name], limits=after, limit_managers=("tokenscaler",))
        return Actuated(Reason.LIMITS_IN_STEP, "written")

    def by_hand(self, name: str, limits: Mapping[str, str]) -> None:
        self.seen[name] = replace(self.seen[name], limits=limits, limit_managers=("tokenscaler", "kubectl-edit"))


def keeper_of(cluster: FakeCluster, *, dry_run: bool = False) -> NodeCapacityKeeper:
    return NodeCapacityKeeper(cluster, cluster, None if dry_run else cluster, "tokenscaler")


def wish(
    desired: int, current: int = 1, *, name: str = "chat", wanted: int | None = None, **more: object
) -> ReplicaWish:
    made = ReplicaWish(
        ("inference", name),
        "h100",
        8,
        desired if wanted is None else wanted,
        desired,
        current,
        1,
        0,
        will_be_written=True,
    )
    return replace(made, **more)  # type: ignore[arg-type]


def provide(keeper: NodeCapacityKeeper, *wishes: ReplicaWish, at: float = 0.0, also: tuple[str, ...] = ()) -> None:
    referring: dict[tuple[str, str], str | None] = {each.key: each.accelerator_pool for each in wishes}
    keeper.provide(wishes, referring | {("inference", name): "h100" for name in also}, at)


def test_limits_grow_in_all_limited_keys_together_before_replicas() -> None:
    cluster = FakeCluster()
    provide(keeper_of(cluster), wish(3))
    assert cluster.written == [("od", {"nvidia.com/gpu": "32", "cpu": "768"})]


def test_what_is_in_step_is_not_written_again() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    for tick in range(5):
        provide(keeper, wish(3), at=15.0 * tick)
    assert len(cluster.written) == 1
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (
        Reason.LIMITS_IN_STEP,
        "od: 4 nodes (replicas take 3 nodes, 3 of them here; 1 node to spare)",
    )


def test_an_equal_amount_in_another_unit_is_in_step() -> None:
    cluster = FakeCluster(seen={"od": NodePoolSeen("od", {"nvidia.com/gpu": "16", "memory": "4Ti"}, 1)})
    provide(keeper_of(cluster), wish(1))
    assert cluster.written == []


def test_limits_come_down_when_nodes_have_gone_and_then_at_once() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    cluster.seen["od"] = replace(cluster.seen["od"], nodes_in_use=4)
    provide(keeper, wish(1, 3), at=70.0)
    provide(keeper, wish(1, 1), at=140.0)
    assert len(cluster.written) == 1, "four nodes are there"
    cluster.seen["od"] = replace(cluster.seen["od"], nodes_in_use=1)
    provide(keeper, wish(1, 1), at=210.0)
    assert cluster.written[1:] == [("od", {"nvidia.com/gpu": "16", "cpu": "384"})]
    cluster.seen["od"] = replace(cluster.seen["od"], nodes_in_use=0)
    provide(keeper, wish(0, 0), at=215.0)
    assert cluster.written[2:] == [("od", {"nvidia.com/gpu": "8", "cpu": "192"})], "spot would grow into what is left"


def test_a_floor_on_demand_is_kept_by_two_limits() -> None:
    cluster = FakeCluster(
        spec=SPLIT, seen={name: NodePoolSeen(name, {"nvidia.com/gpu": "0"}, 0) for name in ("od", "spot")}
    )
    keeper = keeper_of(cluster)
    provide(keeper, wish(10))
    assert cluster.written == [("od", {"nvidia.com/gpu": "24"})]
    cluster.seen["od"] = replace(cluster.seen["od"], nodes_in_use=2)
    provide(keeper, wish(10), at=15.0)
    assert cluster.written[1:] == [("spot", {"nvidia.com/gpu": "64"})], "when the two that it needs beside it are there"


@pytest.mark.parametrize(
    ("cluster", "reason", "words"),
    [
        pytest.param(
            FakeCluster(seen={}),
            Reason.NODE_POOL_NOT_FOUND,
            "there is no NodePool od",
            id="a NodePool that is not there",
        ),
        pytest.param(
            FakeCluster(seen={"od": NodePoolSeen("od", {"nvidia.com/gpu": "8"}, 1, problem="no NodeClass")}),
            Reason.NODE_POOL_NOT_READY,
            "od makes no nodes: no NodeClass",
            id="a NodePool that makes no nodes",
        ),
        pytest.param(
            FakeCluster(seen={"od": NodePoolSeen("od", {"ephemeral-storage": "1Ti"}, 1)}),
            Reason.NODE_SHAPE_CONTRADICTED,
            "limits ephemeral-storage, and nodeShape does not say",
            id="a limit on something that the shape does not name",
        ),
        pytest.param(
            FakeCluster(seen={"od": NodePoolSeen("od", {}, 1, capacities=({"cpu": "384", "nvidia.com/gpu": "8"},))}),
            Reason.NODE_SHAPE_CONTRADICTED,
            "cpu: 384 on a node, 192 in nodeShape",
            id="a real node that is larger than the shape",
        ),
        pytest.param(
            FakeCluster(refusal=ActuationFailed(Reason.FORBIDDEN, "403")),
            Reason.FORBIDDEN,
            "403",
            id="a refused write",
        ),
    ],
)
def test_what_is_in_the_way_is_said(cluster: FakeCluster, reason: Reason, words: str) -> None:
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is reason
    assert words in outcome.message


def test_limits_are_set_for_nodes_as_large_as_the_real_ones() -> None:
    real = {"cpu": "384", "nvidia.com/gpu": "16", "memory": "2000Gi"}
    seen = {"od": NodePoolSeen("od", {"nvidia.com/gpu": "8", "cpu": "192"}, 1, capacities=(real,))}
    cluster = FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 40}}, seen=seen)
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    assert cluster.written == [("od", {"nvidia.com/gpu": "32", "cpu": "768"})], "two such nodes within 40 accelerators"
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert "nvidia.com/gpu: 16 on a node, 8 in nodeShape; limits are set for what nodes bring" in outcome.message


def test_nodes_with_fewer_accelerators_than_stated_are_planned_as_they_are() -> None:
    real = {"cpu": "96", "nvidia.com/gpu": "4"}
    seen = {"od": NodePoolSeen("od", {"nvidia.com/gpu": "8", "cpu": "192"}, 1, capacities=(real,))}
    cluster = FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 64}}, seen=seen)
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    assert cluster.written == [("od", {"nvidia.com/gpu": "28", "cpu": "1344"})], "three replicas of two nodes, one more"
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.NODE_SHAPE_CONTRADICTED
    assert "nvidia.com/gpu: 4 on a node, 8 in nodeShape; limits are set for what nodes bring" in outcome.message


def test_where_nodes_differ_replicas_are_packed_as_on_the_smallest() -> None:
    capacities = ({"nvidia.com/gpu": "4"}, {"nvidia.com/gpu": "8"}, {"nvidia.com/gpu": "0"})
    cluster = FakeCluster(seen={"od": NodePoolSeen("od", {"nvidia.com/gpu": "8"}, 1, capacities=capacities)})
    provide(keeper_of(cluster), replace(wish(4), accelerators_per_replica=4))
    assert cluster.written == [("od", {"nvidia.com/gpu": "40"})], "four nodes of any size, and one more"


ASKS = PodRequests(cpu_millis=45_000, memory_bytes=400 * 2**30)


def small_wish(requests: PodRequests) -> ReplicaWish:
    """Eight replicas of two accelerators each."""
    return replace(wish(8, wanted=8), accelerators_per_replica=2, requests=requests)


@pytest.mark.parametrize(
    ("requests", "seen", "nodes"),
    [
        pytest.param(NO_REQUESTS, {}, 2, id="four to a node by accelerators"),
        pytest.param(ASKS, {}, 2, id="four to a node by the stated CPU and memory too"),
        pytest.param(ASKS, {"daemons": PodRequests(cpu_millis=13_000)}, 3, id="DaemonSets leave room for three"),
        pytest.param(
            ASKS, {"allocatables": ({"cpu": "178", "memory": "2000Gi"},)}, 3, id="the system leaves room for three"
        ),
        pytest.param(
            ASKS,
            {"allocatables": ({"cpu": "191450m", "memory": "1938410Mi"},), "daemons": PodRequests(0, 350 * 2**30)},
            3,
            id="three by memory",
        ),
        pytest.param(ASKS, {"daemons": PodRequests(accelerators=1)}, 3, id="a DaemonSet has an accelerator"),
    ],
)
def test_limits_hold_the_nodes_that_replicas_take_beside_daemon_sets(
    requests: PodRequests, seen: dict[str, Any], nodes: int
) -> None:
    limits = {"nvidia.com/gpu": "0", "cpu": "0", "memory": "0"}
    cluster = FakeCluster(seen={"od": replace(NodePoolSeen("od", limits, 0), **seen)})
    keeper = keeper_of(cluster)
    provide(keeper, small_wish(requests))
    slack = nodes + 1
    limits = {"nvidia.com/gpu": str(8 * slack), "cpu": str(192 * slack), "memory": f"{2048 * slack}Gi"}
    assert cluster.written == [("od", limits)]
    outcome = keeper.outcome("h100")
    assert outcome is not None
    told = "leave room for 3 of inference/chat a node instead of 4" in outcome.message
    assert (outcome.reason, told) == (Reason.LIMITS_IN_STEP, nodes == 3)


def test_a_share_is_of_the_replicas_that_nodes_have_room_for() -> None:
    seen = {"od": NodePoolSeen("od", {}, 0, daemons=PodRequests(cpu_millis=60_000))}
    cluster = FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 16}}, seen=seen)
    keeper = keeper_of(cluster)
    provide(keeper, small_wish(ASKS))
    allowance = keeper.allowance(("inference", "chat"))
    assert allowance is not None
    assert allowance.replicas == 4, "two to a node"


def test_a_replica_that_fits_on_no_node_is_told() -> None:
    seen = {"od": NodePoolSeen("od", {}, 0, daemons=PodRequests(cpu_millis=13_000))}
    keeper = keeper_of(FakeCluster(seen=seen))
    provide(keeper, replace(wish(2), requests=PodRequests(cpu_millis=180_000)))
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (
        Reason.REPLICA_FITS_NO_NODE,
        "a replica of inference/chat fits on no node: it asks for 180 CPUs, and beside the system and DaemonSets a "
        "node leaves 179",
    )
    assert outcome.plan is not None
    assert outcome.plan.needed_nodes == 2


def test_a_dry_run_says_what_it_would_write() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster, dry_run=True)
    provide(keeper, wish(3))
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert (outcome.reason, outcome.message) == (Reason.DRY_RUN, "NodePool od would be limited to 4 nodes")


def test_who_has_just_set_a_limit_by_hand_is_left_alone_for_a_while() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    cluster.by_hand("od", {"nvidia.com/gpu": "16", "cpu": "384"})
    provide(keeper, wish(3), at=15.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.COMPETING_WRITER
    assert '"kubectl-edit" has just set the limits of NodePool od' in outcome.message
    assert len(cluster.written) == 1
    provide(keeper, wish(3), at=15.0 + FOREIGN_WRITE_SECONDS)
    assert len(cluster.written) == 2


def test_nothing_is_planned_before_all_who_share_the_pool_are_known() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3), also=("other",))
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert (outcome.plan, outcome.reason) == (None, Reason.ACCELERATORS_UNKNOWN)
    assert "inference/other" in outcome.message
    assert cluster.written == []


def test_who_cannot_be_seen_for_a_while_keeps_its_place() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3), wish(2, name="other"))
    provide(keeper, wish(3), at=15.0, also=("other",))
    keeper.provide([wish(3)], {("inference", "chat"): "h100", ("inference", "other"): None}, 30.0)
    assert cluster.written == [("od", {"nvidia.com/gpu": "48", "cpu": "1152"})]
    provide(keeper, wish(3), at=100.0)
    assert cluster.written[-1] == ("od", {"nvidia.com/gpu": "32", "cpu": "768"}), "it was deleted"


def test_a_pool_that_writes_nothing_has_place_for_what_stands() -> None:
    cluster = FakeCluster()
    provide(keeper_of(cluster), wish(9, 2, will_be_written=False))
    assert cluster.written == [("od", {"nvidia.com/gpu": "24", "cpu": "576"})]


def test_what_is_forgotten_limits_nobody_until_all_are_known_again() -> None:
    keeper = keeper_of(FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 64}}))
    provide(keeper, wish(6, wanted=6), wish(6, name="batch", wanted=6))
    assert keeper.allowance(("inference", "batch")) is not None
    keeper.forget_all()
    assert keeper.allowance(("inference", "batch")) is None
    provide(keeper, wish(6, wanted=6), also=("batch",))
    assert keeper.allowance(("inference", "chat")) is None
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.ACCELERATORS_UNKNOWN


def test_a_ceiling_comes_back_as_an_allowance_by_priority() -> None:
    cluster = FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 68}})
    keeper = keeper_of(cluster)
    assert keeper.allowance(("inference", "chat")) is None
    provide(keeper, wish(6, wanted=6, priority=100), wish(6, name="batch", wanted=6))
    chat, batch = keeper.allowance(("inference", "chat")), keeper.allowance(("inference", "batch"))
    assert chat is not None
    assert batch is not None
    assert (chat.replicas, batch.replicas) == (7, 2)
    assert chat.because == "64 accelerators of h100, shared by priority"
    assert cluster.written == [("od", {"nvidia.com/gpu": "64", "cpu": "1536"})], "never more than the ceiling"


def first_shares(keeper: NodeCapacityKeeper, *wishes: ReplicaWish) -> dict[str, int]:
    return {key[1]: each.replicas for key, each in keeper.first_allowances(wishes, 0.0).items()}


def test_a_new_leader_shares_by_the_wishes_of_its_first_look() -> None:
    keeper = keeper_of(FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 64}}))
    both = (wish(6, wanted=6, priority=100), wish(6, name="batch", wanted=6))
    assert first_shares(keeper, *both) == {"chat": 7, "batch": 2}
    assert first_shares(keeper, both[0]) == {"chat": 8}, "of the other nothing is known yet"
    assert first_shares(keeper, replace(both[0], accelerators_per_replica=None)) == {}
    provide(keeper, *both)
    assert first_shares(keeper, *both) == {}, "now the last tick's count"
    assert first_shares(keeper, *both, wish(1, name="new", wanted=4)) == {"new": 1}, "and one that is new has its own"


def test_without_a_ceiling_nobody_has_a_share() -> None:
    assert first_shares(keeper_of(FakeCluster()), wish(6)) == {}


def split_wish(desired: int, on_demand: int, spot: int, *, name: str = "chat", **more: object) -> ReplicaWish:
    """The wish of a pool with two targets, all of whose replicas serve."""
    targets = tuple(
        TargetPart(
            kind,
            ScaleTarget("inference", "Deployment", f"{name}-{kind}", "", "", ""),
            TargetCounts(count, count, count),
        )
        for kind, count in ((CapacityType.ON_DEMAND, on_demand), (CapacityType.SPOT, spot))
    )
    return wish(desired, **{"current": on_demand + spot, "name": name, "parts": targets} | more)  # type: ignore[arg-type]


def split_cluster(on_demand: int, spot: int, **more: object) -> FakeCluster:
    seen = {
        name: NodePoolSeen(name, {"nvidia.com/gpu": "0"}, nodes) for name, nodes in (("od", on_demand), ("spot", spot))
    }
    return FakeCluster(spec=SPLIT | more, seen=seen)


def split_of(keeper: NodeCapacityKeeper, *wishes: ReplicaWish) -> dict[str, tuple[int, int]]:
    splits = keeper.provide(wishes, {each.key: each.accelerator_pool for each in wishes}, 0.0)
    return {key[1]: (split.on_demand, split.spot) for key, split in splits.items()}


def test_two_targets_share_by_the_split_and_each_has_its_nodes() -> None:
    cluster = split_cluster(2, 0)
    assert split_of(keeper_of(cluster), split_wish(10, 2, 3)) == {"chat": (2, 8)}
    assert cluster.written == [("od", {"nvidia.com/gpu": "24"}), ("spot", {"nvidia.com/gpu": "64"})]


def test_nodes_that_another_pool_goes_on_to_fill_need_not_be_held() -> None:
    keeper = keeper_of(split_cluster(4, 8))
    assert split_of(keeper, split_wish(5, 2, 4), split_wish(5, 2, 4, name="code")) == {"chat": (1, 4), "code": (1, 4)}
    keeper = keeper_of(split_cluster(2, 8))
    assert split_of(keeper, split_wish(0, 1, 4), split_wish(5, 1, 4, name="code")) == {"chat": (1, 0), "code": (1, 4)}


def test_a_split_is_remembered_until_somebody_else_has_decided() -> None:
    keeper = keeper_of(split_cluster(2, 8))
    shrinking = split_wish(5, 2, 8)
    assert split_of(keeper, shrinking) == {"chat": (2, 4)}, "held: eight spot nodes still stand"
    now = split_wish(5, 2, 4).parts
    assert keeper.asked_for(shrinking.key, now) == 5
    assert keeper.asked_for(shrinking.key, shrinking.parts) is None
    assert keeper.asked_for(shrinking.key, split_wish(5, 2, 6).parts) is None, "those that drain are still its own"
    keeper.forget_all()
    assert keeper.asked_for(shrinking.key, now) is None


def test_replicas_that_drain_on_the_way_back_to_spot_are_not_read_back_as_a_count() -> None:
    keeper = keeper_of(split_cluster(8, 4))
    returning = split_wish(8, 6, 4, current=8)
    assert split_of(keeper, returning) == {"chat": (4, 6)}
    for on_demand in (6, 5, 4):
        assert keeper.asked_for(returning.key, split_wish(8, on_demand, 6).parts) == 8
    assert keeper.asked_for(returning.key, split_wish(8, 7, 6).parts) is None, "somebody else has set it"


def test_without_a_spot_nodepool_all_is_on_demand() -> None:
    cluster = FakeCluster(seen={"od": NodePoolSeen("od", {"nvidia.com/gpu": "8"}, 1)})
    assert split_of(keeper_of(cluster), split_wish(4, 1, 0)) == {"chat": (4, 0)}


def test_a_spot_nodepool_that_makes_no_nodes_sends_replicas_on_demand() -> None:
    cluster = split_cluster(2, 0)
    cluster.seen["spot"] = replace(cluster.seen["spot"], problem="no NodeClass")
    asked = split_wish(10, 2, 8)
    waiting = tuple(replace(part, counts=TargetCounts(part.counts.spec, 0, 0)) for part in asked.parts)
    assert split_of(keeper_of(cluster), replace(asked, parts=waiting)) == {"chat": (10, 0)}


def test_what_waits_for_a_spot_node_that_boots_stays_there() -> None:
    cluster = split_cluster(2, 5)
    cluster.seen["spot"] = replace(cluster.seen["spot"], problem="no capacity")
    chat, code = split_wish(10, 2, 8), split_wish(5, 1, 4, name="code")
    chat = replace(chat, parts=(chat.parts[0], replace(chat.parts[1], counts=TargetCounts(8, 1, 1))))
    code = replace(code, parts=(code.parts[0], replace(code.parts[1], counts=TargetCounts(4, 3, 3))))
    assert split_of(keeper_of(cluster), chat, code) == {"chat": (8, 2), "code": (2, 3)}


def test_a_pool_that_may_only_grow_lowers_neither_target() -> None:
    keeper = keeper_of(split_cluster(6, 8))
    assert split_of(keeper, split_wish(10, 6, 4, may_lower=False)) == {"chat": (6, 8)}


def test_dollars_leave_an_allowance() -> None:
    prices = {"nodeDollarsPerHour": {"onDemand": "50"}, "ceilings": {"dollarsPerHour": "275.5"}}
    cluster = FakeCluster(spec=MANAGED | prices)
    keeper = keeper_of(cluster)
    provide(keeper, wish(9, wanted=9))
    allowance = keeper.allowance(("inference", "chat"))
    assert allowance is not None
    assert allowance.replicas == 5
    assert cluster.written == [("od", {"nvidia.com/gpu": "40", "cpu": "960"})]


NO_SPOT = LaunchResult(0.0, (Offering("p5.48xlarge", "a", "spot"),), LaunchFailure.CAPACITY, "none left")


def test_while_spot_cannot_be_had_all_is_on_demand_and_said() -> None:
    limits = {"nvidia.com/gpu": "0"}
    cluster = FakeCluster(
        spec=SPLIT,
        seen={"od": NodePoolSeen("od", limits, 0), "spot": NodePoolSeen("spot", limits, 0, launches=(NO_SPOT,))},
    )
    keeper = keeper_of(cluster)

    provide(keeper, wish(10), at=10.0)

    assert cluster.written == [("od", {"nvidia.com/gpu": "88"})]
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.OUT_OF_CAPACITY
    assert "NodePool spot makes no nodes: the cloud has none to give (none left)" in outcome.message

    provide(keeper, wish(10), at=181.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP, "it is worth another try"


def test_limits_that_nobody_looks_at_are_said() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    cluster.seen["od"] = replace(cluster.seen["od"], is_judged=False)

    provide(keeper, wish(3), at=29.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP, "it may yet be judged"

    provide(keeper, wish(3), at=45.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.KARPENTER_SILENT
    assert outcome.message == (
        "nobody has looked at the limits of NodePool od that were written 45 s ago: is Karpenter up?"
    )
    assert len(cluster.written) == 1


def test_a_load_that_moves_does_not_hide_that_nobody_looks_at_limits() -> None:
    cluster = FakeCluster()
    keeper = keeper_of(cluster)
    provide(keeper, wish(3))
    cluster.seen["od"] = replace(cluster.seen["od"], is_judged=False)
    for replicas, at in ((4, 20.0), (5, 40.0)):
        provide(keeper, wish(replicas), at=at)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.KARPENTER_SILENT
    assert len(cluster.written) == 3

    cluster.seen["od"] = replace(cluster.seen["od"], is_judged=True)
    provide(keeper, wish(6), at=60.0)
    cluster.seen["od"] = replace(cluster.seen["od"], is_judged=False)
    provide(keeper, wish(6), at=80.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP, "somebody has looked since, and may do so again"


def test_nodes_that_are_held_ready_have_their_place_within_the_limits() -> None:
    warm = {"method": "PlaceholderPods", "placeholderRef": {"namespace": "inference", "name": "warm"}, "spareNodes": 1}
    cluster, placeholders = FakeCluster(spec=MANAGED | {"prewarm": warm}), FakePlaceholders()
    keeper = warming_keeper_of(cluster, placeholders)
    provide(keeper, wish(3))
    assert cluster.written == [("od", {"nvidia.com/gpu": "40", "cpu": "960"})], "three, one to spare and one held ready"
    assert placeholders.written == [1]
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP
    assert outcome.warm == WarmOutcome(
        Reason.NODES_HELD_READY,
        "1 node held ready by Deployment inference/warm (0 for what is expected, 1 to spare)",
    )


def test_placeholders_that_are_not_there_are_told_and_limits_follow_all_the_same() -> None:
    warm = {"method": "PlaceholderPods", "placeholderRef": {"namespace": "inference", "name": "warm"}, "spareNodes": 1}
    cluster, placeholders = FakeCluster(spec=MANAGED | {"prewarm": warm}), FakePlaceholders(missing="there is none")
    keeper = warming_keeper_of(cluster, placeholders)
    provide(keeper, wish(3))
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP
    assert outcome.warm == WarmOutcome(Reason.PLACEHOLDERS_NOT_FOUND, "there is none")
    assert cluster.written == [("od", {"nvidia.com/gpu": "32", "cpu": "768"})]


def warming_keeper_of(cluster: FakeCluster, placeholders: FakePlaceholders) -> NodeCapacityKeeper:
    prewarmer = Prewarmer(PlaceholderPods(placeholders, placeholders), None, is_dry_run=False)
    return NodeCapacityKeeper(cluster, cluster, cluster, "tokenscaler", prewarmer)


@dataclass
class FakePlaceholders:
    """A Deployment of placeholders of a node each."""

    missing: str = ""
    written: list[int] = field(default_factory=list)

    def placeholders(self, reference: PlaceholderRef) -> Placeholders | str:
        target = ScaleTarget(reference.namespace, "Deployment", reference.name, "", "", "")
        return self.missing or Placeholders(target, 0, 8)

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        self.written.append(to_replicas)
        return Actuated(Reason.SUCCEEDED_RESCALE, target.name)


def test_a_scaler_for_which_nothing_can_be_decided_holds_up_the_others_for_a_minute() -> None:
    cluster = FakeCluster(spec=MANAGED | {"ceilings": {"accelerators": 64}})
    keeper = keeper_of(cluster)
    provide(keeper, wish(2))
    written = len(cluster.written)
    for at in (15.0, 30.0, 45.0, 60.0):
        provide(keeper, wish(3), at=at, also=("typo",))
    assert len(cluster.written) == written, "it may yet be decided"
    provide(keeper, wish(3), at=75.0, also=("typo",))
    assert cluster.written[written:] == [("od", {"nvidia.com/gpu": "32", "cpu": "768"})]
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.ACCELERATORS_UNKNOWN
    assert outcome.message.startswith("planned without inference/typo, for which nothing can be decided; od: 4 nodes")
    allowance = keeper.allowance(("inference", "chat"))
    assert allowance is not None
    assert allowance.replicas == 8, "its share follows the wishes again"
    provide(keeper, wish(3), wish(1, name="typo"), at=90.0)
    outcome = keeper.outcome("h100")
    assert outcome is not None
    assert outcome.reason is Reason.LIMITS_IN_STEP
