"""Which scaler may move replicas to nodes of the other kind, and what its AcceleratorPool's limits are meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from autoscaler.actuators.actuator import Actuated
from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.replica_places import Places, PoolNodes
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.capacity_split import CapacityType
from policies.node_move import NodeMove
from policies.reasons import Reason
from policies.victims import PlacedReplica
from tests.pool_builders import a_workload

SPEC = {
    "mode": "Manage",
    "nodePools": {"onDemand": "od", "spot": "spot"},
    "nodeShape": {"accelerators": 8},
    "split": {"onDemandFloorPercent": 20},
}
CHAT, OTHER = ("inference", "chat"), ("inference", "other")


@dataclass
class Cluster:
    """Four nodes on demand and six on spot, with a replica of one pool on each."""

    spec: dict[str, object] = field(default_factory=lambda: dict(SPEC))
    on_demand: int = 4
    spot: int = 6
    problem: str | None = None
    limits: dict[str, Mapping[str, str]] = field(default_factory=dict)
    empty: int = 0
    per_node: int = 1
    others: int = 0  # replicas of the other scaler, each on a node of its own on demand

    def accelerator_pools(self) -> tuple[AcceleratorPool, ...]:
        pool = parse_accelerator_pool(
            {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
            | {"spec": self.spec}
        )
        assert isinstance(pool, AcceleratorPool), pool
        return (pool,)

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return {
            "od": NodePoolSeen("od", self.limits.get("od", {"nvidia.com/gpu": "0"}), self.on_demand),
            "spot": NodePoolSeen(
                "spot", self.limits.get("spot", {"nvidia.com/gpu": "0"}), self.spot, problem=self.problem
            ),
        }

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated:
        del before
        self.limits[name] = dict(after)
        return Actuated(Reason.LIMITS_IN_STEP, "written")

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        del pods
        if target.name == "other":
            others = [PlacedReplica(f"x{each}", f"x{each}", is_ready=True) for each in range(self.others)]
            return Places(others, 0, self.nodes_of("od").filled)
        mine = [f"o{each}" for each in range(self.on_demand - self.empty - self.others)]
        on_demand = [PlacedReplica(name, name, is_ready=True) for name in mine]
        spot = [
            PlacedReplica(f"s{each}-{place}", f"s{each}", is_ready=True, is_on_spot=True)
            for each in range(self.spot)
            for place in range(self.per_node)
        ]
        return Places((*on_demand, *spot), self.empty)

    def nodes_of(self, node_pool: str) -> PoolNodes:
        if node_pool == "od":
            mine = [f"o{each}" for each in range(self.on_demand - self.empty - self.others)]
            return PoolNodes(frozenset([*mine, *(f"x{each}" for each in range(self.others))]), self.empty)
        return PoolNodes(frozenset(f"s{each}" for each in range(self.spot)), 0)

    def nodes(self, name: str) -> int:
        return int(self.limits[name]["nvidia.com/gpu"]) // 8


def a_wish(key: tuple[str, str] = CHAT, desired: int = 10, current: int = 10, **more: object) -> ReplicaWish:
    made = ReplicaWish(
        key, "h100", 8, desired, desired, current, 1, 0, will_be_written=True,
        workload=a_workload(current), empties_nodes=True,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def keeper_after(cluster: Cluster, *wishes: ReplicaWish) -> NodeCapacityKeeper:
    keeper = NodeCapacityKeeper(cluster, cluster, cluster, "tokenscaler", places=cluster)
    keeper.provide(wishes, {wish.key: wish.accelerator_pool for wish in wishes}, 0.0)
    return keeper


def test_one_more_replica_would_move_a_node_back_to_spot() -> None:
    found = keeper_after(Cluster(), a_wish()).node_move(CHAT)
    assert found == NodeMove(CapacityType.SPOT, can_buy=True, replicas_there=6, nodes_beyond_floor=2, surge_replicas=1)


@pytest.mark.parametrize(
    ("cluster", "wishes", "because", "waits"),
    [
        pytest.param(
            Cluster(spec=SPEC | {"ceilings": {"accelerators": 80}}),
            [a_wish()],
            "limits and ceilings leave no room",
            False,
            id="the ceiling is reached",
        ),
        pytest.param(Cluster(), [a_wish(empties_nodes=False)], "WholeNodes", False, id="nobody chooses who goes"),
        pytest.param(Cluster(empty=1), [a_wish()], "1 empty on-demand node must go first", True, id="a node is going"),
        pytest.param(
            Cluster(),
            [a_wish(), a_wish(OTHER, desired=3, current=2)],
            "inference/other changes its count",
            True,
            id="another scaler grows",
        ),
        pytest.param(
            Cluster(),
            [a_wish(), a_wish(OTHER, 3, 2, moved_replicas=1)],
            "inference/other",
            True,
            id="another scaler goes back",
        ),
    ],
)
def test_why_replicas_stay(cluster: Cluster, wishes: list[ReplicaWish], because: str, waits: bool) -> None:
    found = keeper_after(cluster, *wishes).node_move(CHAT)
    assert found is not None
    assert (found.surge_replicas, found.waits) == (0, waits)
    assert because in found.because


@pytest.mark.parametrize(
    ("cluster", "wish"),
    [
        pytest.param(Cluster(on_demand=2, spot=8), a_wish(), id="the split is as it should be"),
        pytest.param(Cluster(), a_wish(will_be_written=False), id="nobody writes the count"),
        pytest.param(Cluster(), a_wish(accelerators_per_replica=None), id="nobody knows what a replica takes"),
        pytest.param(Cluster(), a_wish(workload=None), id="nobody has seen the target"),
        pytest.param(
            Cluster(spec={key: value for key, value in SPEC.items() if key != "split"}), a_wish(), id="spot is not used"
        ),
    ],
)
def test_where_nothing_is_to_be_moved_nothing_is_offered(cluster: Cluster, wish: ReplicaWish) -> None:
    assert keeper_after(cluster, wish).node_move(wish.key) is None


def test_without_spot_on_sale_that_is_all_that_is_said() -> None:
    found = keeper_after(Cluster(problem="its NodeClass is missing"), a_wish()).node_move(CHAT)
    assert found == NodeMove(CapacityType.SPOT, can_buy=False, replicas_there=6)


def test_while_another_scaler_is_not_known_what_was_offered_stands() -> None:
    keeper = keeper_after(Cluster(), a_wish())
    before = keeper.node_move(CHAT)
    assert before is not None
    keeper.provide([a_wish()], {CHAT: "h100", OTHER: "h100"}, 15.0)
    assert keeper.node_move(CHAT) == before
    keeper.forget_all()
    assert keeper.node_move(CHAT) is None


def test_who_may_begin_and_does_not_keeps_nobody_from_it() -> None:
    keeper = keeper_after(Cluster(), a_wish(desired=5, current=5), a_wish(OTHER, desired=5, current=5))
    for key in (CHAT, OTHER):
        found = keeper.node_move(key)
        assert found is not None
        assert found.surge_replicas == 1


@pytest.mark.parametrize(
    ("wish", "limits"),
    [
        pytest.param(a_wish(), (4, 8), id="before: what stands on demand, and the share on spot"),
        pytest.param(a_wish(desired=11, moved_replicas=1), (4, 8), id="begun: its place is on spot"),
        pytest.param(a_wish(desired=11, current=11, moved_replicas=1, moved_standing=1), (4, 8), id="while it starts"),
        pytest.param(a_wish(current=11, moved_standing=1), (4, 8), id="given up, and not gone yet"),
    ],
)
def test_no_room_on_demand_is_left_for_what_is_to_go_on_spot(wish: ReplicaWish, limits: tuple[int, int]) -> None:
    cluster = Cluster()
    keeper_after(cluster, wish)
    assert (cluster.nodes("od"), cluster.nodes("spot")) == limits


def test_with_few_nodes_the_one_to_spare_is_held_back() -> None:
    """Two on demand and three on spot: with a node to spare on demand the sixth replica would go there, by weight."""
    cluster = Cluster(on_demand=2, spot=3)
    keeper_after(cluster, a_wish(desired=5, current=5))
    assert (cluster.nodes("od"), cluster.nodes("spot")) == (2, 4)
    keeper_after(cluster, a_wish(desired=6, current=5, moved_replicas=1))
    assert (cluster.nodes("od"), cluster.nodes("spot")) == (2, 4)
    keeper_after(cluster, a_wish(desired=6, current=5))
    assert cluster.nodes("od") == 3, "a sixth that is wanted may go there"


PRICES = {"onDemand": "98.32", "spot": "25"}


@pytest.mark.parametrize(
    ("ceiling", "surge"),
    [
        pytest.param(5000, 1, id="far above what is spent"),
        pytest.param(4 * 98.32 + 7 * 25.0, 1, id="it pays for just one more on spot"),
        pytest.param(4 * 98.32 + 7 * 25.0 - 1.0, 0, id="it does not"),
    ],
)
def test_the_dollars_of_all_pools_pay_for_a_way_back(ceiling: float, surge: int) -> None:
    cluster = Cluster(spec=SPEC | {"nodeDollarsPerHour": PRICES})
    keeper = NodeCapacityKeeper(
        cluster, cluster, cluster, "tokenscaler", places=cluster, ceiling_per_hour=round(ceiling * 1_000_000)
    )
    keeper.provide([a_wish()], {CHAT: "h100"}, 0.0)
    found = keeper.node_move(CHAT)
    assert found is not None
    assert (found.surge_replicas, found.nodes_beyond_floor) == (surge, 2), found
    if surge:
        keeper.provide([a_wish(desired=11, moved_replicas=1)], {CHAT: "h100"}, 15.0)
        assert (cluster.nodes("od"), cluster.nodes("spot") >= 7) == (4, True)


def test_of_two_that_may_begin_one_at_a_time_does_where_one_node_is_to_go_back() -> None:
    """Both at once would bring two on spot, for which one on demand could not go; and both again after their rest."""
    cluster, both = Cluster(on_demand=3, spot=7), [a_wish(), a_wish(OTHER)]
    keeper = keeper_after(cluster, *both)
    offered = []
    for tick in range(4):
        found = {key: keeper.node_move(key) for key in (CHAT, OTHER)}
        assert all(each is not None and each.nodes_beyond_floor == 1 for each in found.values())
        offered.append([key for key, each in found.items() if each is not None and each.surge_replicas])
        assert [each.waits for key, each in found.items() if each is not None and key not in offered[-1]] == [True]
        keeper.provide(both, {CHAT: "h100", OTHER: "h100"}, 15.0 * (tick + 1))
    assert offered[0] != offered[1], "each has its turn"
    assert offered == [offered[0], offered[1]] * 2


def test_a_node_that_is_held_ready_is_none_to_be_moved() -> None:
    held = {"prewarm": {"method": "CapacityBuffer", "spareNodes": 1}}
    keeper = keeper_after(Cluster(spec=SPEC | held, on_demand=4, spot=6, empty=1), a_wish(), a_wish(OTHER))
    found = [keeper.node_move(key) for key in (CHAT, OTHER)]
    surges = sorted(each.surge_replicas for each in found if each is not None)
    assert surges == [0, 2], "one fills the node that is held, one goes on spot; and one scaler at a time"


def test_a_broken_floor_is_mended_by_one_more_on_demand() -> None:
    """One on demand beside eight on spot, of which the floor allows four: its place is on demand, and none on spot."""
    cluster = Cluster(on_demand=1, spot=8)
    found = keeper_after(cluster, a_wish(desired=9, current=9)).node_move(CHAT)
    expected = NodeMove(CapacityType.ON_DEMAND, can_buy=True, replicas_there=1, nodes_beyond_floor=4, surge_replicas=1)
    assert found == expected
    moves = {"moved_replicas": 1, "moves_to": CapacityType.ON_DEMAND}
    keeper_after(cluster, a_wish(desired=10, current=9, **moves))
    assert (cluster.nodes("od") > 1, cluster.nodes("spot")) == (True, 8)


def test_where_spot_has_room_the_surge_fills_that_too() -> None:
    """Two a node; each of four on spot has a hole, into which the scheduler puts what is asked for."""
    cluster = Cluster(on_demand=0, spot=4)
    found = keeper_after(cluster, a_wish(desired=4, current=4, accelerators_per_replica=4)).node_move(CHAT)
    assert found is not None
    assert (found.to, found.surge_replicas) == (CapacityType.ON_DEMAND, 5)


@pytest.mark.parametrize(
    ("cluster", "because"),
    [
        pytest.param(
            Cluster(on_demand=1, spot=8, spec=SPEC | {"ceilings": {"accelerators": 72}}),
            "limits and ceilings leave no room for one more on-demand node",
            id="the ceiling is reached",
        ),
        pytest.param(Cluster(on_demand=0, spot=3), "", id="nothing is in the way"),
    ],
)
def test_why_a_broken_floor_stays_broken(cluster: Cluster, because: str) -> None:
    found = keeper_after(cluster, a_wish(desired=9, current=9)).node_move(CHAT)
    assert found is not None
    assert (found.to, found.because, bool(found.surge_replicas)) == (CapacityType.ON_DEMAND, because, not because)


def test_a_broken_floor_is_mended_by_one_scaler_at_a_time() -> None:
    cluster = Cluster(on_demand=1, spot=8, per_node=1)
    second = a_wish(("inference", "second"), desired=9, current=9)
    keeper = keeper_after(cluster, a_wish(desired=9, current=9), second)
    found = [keeper.node_move(key) for key in (CHAT, second.key)]
    assert sorted(each.surge_replicas for each in found if each is not None) == [0, 1]


def the_other(**more: object) -> ReplicaWish:
    """The wish of a scaler whose replicas are on nodes of its own on demand."""
    other = a_wish(OTHER, **more)  # type: ignore[arg-type]
    assert other.workload is not None
    return replace(other, workload=replace(other.workload, target=replace(other.workload.target, name="other")))


def test_what_the_floor_keeps_from_falling_is_relieved_by_a_replica_of_others_on_demand() -> None:
    """One on demand beside four on spot: it is to fall to none, and would break the floor."""
    cluster = Cluster(on_demand=1, spot=4, others=1)
    found = keeper_after(cluster, a_wish(desired=4, current=4), the_other(desired=1, current=1)).node_move(CHAT)
    assert found is None, "nothing is to be moved"
    found = keeper_after(cluster, a_wish(desired=4, current=4), the_other(desired=0, current=1)).node_move(CHAT)
    expected = NodeMove(CapacityType.ON_DEMAND, can_buy=True, replicas_there=0, nodes_beyond_floor=4, surge_replicas=1)
    assert found == expected


def test_the_half_filled_nodes_of_another_scaler_are_room_too() -> None:
    """Three on demand with a hole each; beside a fourth node, another scaler's, four more would not go on spot."""
    other = the_other(desired=1, current=1, accelerators_per_replica=4)
    surges = []
    for others in (0, 1):
        cluster = Cluster(on_demand=3 + others, spot=6, per_node=2, others=others)
        found = keeper_after(cluster, a_wish(desired=15, current=15, accelerators_per_replica=4), other).node_move(CHAT)
        assert found is not None
        surges.append((found.surge_replicas, found.because))
    assert surges[0] == (4, ""), "three holes, and one on spot"
    assert surges[1] == (0, "on-demand nodes have room for 4 replicas more, which would go there and not to spot")
