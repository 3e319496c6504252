"""Which scaler may move replicas back to spot, and what its AcceleratorPool's limits are meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from autoscaler.actuators.actuator import Actuated
from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.replica_places import Places
from autoscaler.observers.workload import LivePod, ScaleTarget
from policies.reasons import Reason
from policies.spot_return import SpotReturn
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
        del target, pods
        on_demand = [
            PlacedReplica(f"o{each}", f"o{each}", is_ready=True) for each in range(self.on_demand - self.empty)
        ]
        spot = [PlacedReplica(f"s{each}", f"s{each}", is_ready=True, is_on_spot=True) for each in range(self.spot)]
        return Places((*on_demand, *spot), self.empty)

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
    found = keeper_after(Cluster(), a_wish()).spot_return(CHAT)
    assert found == SpotReturn(can_buy_spot=True, replicas_on_spot=6, nodes_beyond_floor=2, surge_replicas=1)


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
    found = keeper_after(cluster, *wishes).spot_return(CHAT)
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
    assert keeper_after(cluster, wish).spot_return(wish.key) is None


def test_without_spot_on_sale_that_is_all_that_is_said() -> None:
    found = keeper_after(Cluster(problem="its NodeClass is missing"), a_wish()).spot_return(CHAT)
    assert found == SpotReturn(can_buy_spot=False, replicas_on_spot=6)


def test_while_another_scaler_is_not_known_what_was_offered_stands() -> None:
    keeper = keeper_after(Cluster(), a_wish())
    before = keeper.spot_return(CHAT)
    assert before is not None
    keeper.provide([a_wish()], {CHAT: "h100", OTHER: "h100"}, 15.0)
    assert keeper.spot_return(CHAT) == before
    keeper.forget_all()
    assert keeper.spot_return(CHAT) is None


def test_who_may_begin_and_does_not_keeps_nobody_from_it() -> None:
    keeper = keeper_after(Cluster(), a_wish(desired=5, current=5), a_wish(OTHER, desired=5, current=5))
    for key in (CHAT, OTHER):
        found = keeper.spot_return(key)
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
    found = keeper.spot_return(CHAT)
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
        found = {key: keeper.spot_return(key) for key in (CHAT, OTHER)}
        assert all(each is not None and each.nodes_beyond_floor == 1 for each in found.values())
        offered.append([key for key, each in found.items() if each is not None and each.surge_replicas])
        assert [each.waits for key, each in found.items() if each is not None and key not in offered[-1]] == [True]
        keeper.provide(both, {CHAT: "h100", OTHER: "h100"}, 15.0 * (tick + 1))
    assert offered[0] != offered[1], "each has its turn"
    assert offered == [offered[0], offered[1]] * 2


def test_a_node_that_is_held_ready_is_none_to_be_moved() -> None:
    held = {"prewarm": {"method": "CapacityBuffer", "spareNodes": 1}}
    keeper = keeper_after(Cluster(spec=SPEC | held, on_demand=4, spot=6, empty=1), a_wish(), a_wish(OTHER))
    found = [keeper.spot_return(key) for key in (CHAT, OTHER)]
    surges = sorted(each.surge_replicas for each in found if each is not None)
    assert surges == [0, 2], "one fills the node that is held, one goes on spot; and one scaler at a time"
