"""How many replicas more it takes to move those of one node to the other kind, and when they stay where they are."""

from __future__ import annotations

import pytest

from policies.capacity_split import CapacityType
from policies.node_move import MoveGround, NodeMove, nodes_beyond_floor, plan_move, spot_nodes_beyond_floor
from policies.victims import NodesOfSplit, PlacedReplica

ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT


def placed(**nodes: int) -> list[PlacedReplica]:
    """So many replicas on each node; the nodes of spot are called after it."""
    return [
        PlacedReplica(f"{node}-{number}", node, is_ready=True, is_on_spot=node.startswith("spot"))
        for node, replicas in nodes.items()
        for number in range(replicas)
    ]


def ground(
    on_demand: int, spot: int, *, to: CapacityType = SPOT, floor: int = 20, per_node: int = 1, **more: object
) -> MoveGround:
    return MoveGround(to, NodesOfSplit(floor, on_demand, spot), True, per_node, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("split", "beyond"),
    [
        pytest.param(NodesOfSplit(20, 4, 6), 2, id="4 and 6 could be 2 and 8"),
        pytest.param(NodesOfSplit(20, 2, 8), 0, id="2 and 8 are as the floor says"),
        pytest.param(NodesOfSplit(20, 3, 0), 2, id="one of three is enough"),
        pytest.param(NodesOfSplit(70, 3, 1), 0, id="at a cap of 30 % one of four is on spot"),
        pytest.param(NodesOfSplit(70, 4, 0), 1, id="and where it is not, it could be"),
        pytest.param(NodesOfSplit(20, 1, 8), 0, id="a floor that is broken is not made worse"),
        pytest.param(NodesOfSplit(0, 2, 0), 2, id="without a floor all could be"),
        pytest.param(NodesOfSplit(100, 5, 0), 0, id="with nothing on spot none could be"),
    ],
)
def test_nodes_on_demand_that_could_be_on_spot(split: NodesOfSplit, beyond: int) -> None:
    assert nodes_beyond_floor(split) == beyond


@pytest.mark.parametrize(
    ("split", "beyond"),
    [
        pytest.param(NodesOfSplit(20, 1, 8), 4, id="one on demand allows four"),
        pytest.param(NodesOfSplit(20, 2, 8), 0, id="2 and 8 are as the floor says"),
        pytest.param(NodesOfSplit(20, 0, 1), 1, id="none on demand allows none"),
        pytest.param(NodesOfSplit(70, 3, 2), 1, id="a cap of 30 %"),
        pytest.param(NodesOfSplit(0, 0, 5), 0, id="without a floor any number"),
        pytest.param(NodesOfSplit(100, 5, 1), 1, id="where spot is not to be used"),
    ],
)
def test_nodes_on_spot_that_the_floor_does_not_allow(split: NodesOfSplit, beyond: int) -> None:
    assert spot_nodes_beyond_floor(split) == beyond


@pytest.mark.parametrize(
    ("replicas", "given", "surge"),
    [
        pytest.param(placed(a=1, b=1), ground(2, 0), 1, id="a node a replica: one more"),
        pytest.param(placed(a=2, b=2), ground(2, 0, per_node=2), 2, id="two a node: two more"),
        pytest.param(placed(a=2, b=1), ground(2, 0, per_node=2, room=1), 2, id="one fills the hole, one goes on spot"),
        pytest.param(placed(a=1, b=1, spot=1), ground(2, 1, floor=10), 1, id="what is on spot stays there"),
        pytest.param(placed(a=1, b=1), ground(2, 0, room=1), 2, id="as many as two nodes have are worth it"),
        pytest.param(
            placed(a=1, b=1), ground(2, 0, room=1, empty=1, held_ready=1), 2, id="a node held ready is filled first"
        ),
    ],
)
def test_replicas_that_are_asked_for_meanwhile(replicas: list[PlacedReplica], given: MoveGround, surge: int) -> None:
    found = plan_move(replicas, given)
    assert (found.surge_replicas, found.because) == (surge, "")


@pytest.mark.parametrize(
    ("replicas", "given", "surge"),
    [
        pytest.param(placed(spot=1), ground(0, 1, to=ON_DEMAND), 1, id="a node a replica: one more"),
        pytest.param(placed(spot=2), ground(0, 1, to=ON_DEMAND, per_node=2), 2, id="two a node: both of it"),
        pytest.param(
            placed(spot=2, spot2=1), ground(0, 2, to=ON_DEMAND, per_node=2, room=1), 2, id="the hole on spot is filled"
        ),
        pytest.param(
            placed(spot=1, spot2=1, spot3=1, spot4=1),
            ground(0, 4, to=ON_DEMAND, per_node=4, room=12),
            13,
            id="whatever it takes for a while",
        ),
        pytest.param(
            [PlacedReplica("x", "spot", is_ready=True, is_on_spot=True, others_on_node=1)],
            ground(0, 1, to=ON_DEMAND, per_node=2),
            1,
            id="one more on demand will do, though the node on spot stays for others",
        ),
    ],
)
def test_replicas_that_are_asked_for_to_mend_the_floor(
    replicas: list[PlacedReplica], given: MoveGround, surge: int
) -> None:
    found = plan_move(replicas, given)
    assert (found.surge_replicas, found.because) == (surge, "")


@pytest.mark.parametrize(
    ("replicas", "given", "because"),
    [
        pytest.param(
            placed(a=1, b=1),
            ground(2, 0, room=1, empty=1),
            "1 empty on-demand node must go first",
            id="room on demand",
        ),
        pytest.param(
            placed(a=1, b=1), ground(2, 0, has_room_there=False), "limits and ceilings leave no room", id="no room"
        ),
        pytest.param(
            placed(a=1, b=1, c=1, d=1, e=1),
            ground(5, 0, per_node=4, room=15),
            "on-demand nodes have room for 15 replicas more",
            id="a surge would fill the nodes on demand",
        ),
        pytest.param(
            placed(a=1, b=1),
            ground(2, 0, room=2),
            "have room for 2 replicas more",
            id="more than two nodes have are not",
        ),
        pytest.param(
            [PlacedReplica("x", "a", is_ready=True, others_on_node=1)],
            ground(2, 0),
            "there are pods of others too",
            id="a node that would not become empty",
        ),
        pytest.param(
            placed(spot=1, spot2=1),
            ground(0, 3, to=ON_DEMAND, room=1, empty=1),
            "1 empty spot node must go first",
            id="without an empty node on spot the floor may be kept",
        ),
        pytest.param(
            placed(spot=1),
            ground(0, 1, to=ON_DEMAND, has_room_there=False),
            "limits and ceilings leave no room for one more on-demand node",
            id="no room on demand",
        ),
    ],
)
def test_why_replicas_stay_where_they_are(replicas: list[PlacedReplica], given: MoveGround, because: str) -> None:
    found = plan_move(replicas, given)
    assert found.surge_replicas == 0
    assert because in found.because


def test_where_spot_cannot_be_had_nothing_is_to_be_moved() -> None:
    given = MoveGround(SPOT, NodesOfSplit(20, 3, 1), can_buy=False, replicas_per_node=1)
    assert plan_move(placed(a=1, b=1, c=1, spot=1), given) == NodeMove(SPOT, can_buy=False, replicas_there=1)


def test_who_has_nothing_on_demand_has_nothing_to_move() -> None:
    """The nodes on demand are another scaler's: no word of it here, which would be one of want."""
    assert plan_move(placed(spot1=1, spot2=1), ground(4, 6)) == NodeMove(SPOT, can_buy=True, replicas_there=2)


@pytest.mark.parametrize(
    ("replicas", "given", "found"),
    [
        pytest.param(
            placed(a=1, b=1, c=1, spot=1),
            ground(3, 1),
            NodeMove(SPOT, True, replicas_there=1, nodes_beyond_floor=2, surge_replicas=1),
            id="to spot",
        ),
        pytest.param(
            placed(a=1, b=1, c=1, spot=1),
            ground(3, 1, room=1, empty=1),
            NodeMove(
                SPOT,
                True,
                replicas_there=1,
                nodes_beyond_floor=2,
                because="1 empty on-demand node must go first",
                waits=True,
            ),
            id="to spot, as soon as an emptied node has gone",
        ),
        pytest.param(
            placed(a=1, spot=1, spot2=1),
            ground(1, 2, to=ON_DEMAND, floor=50),
            NodeMove(ON_DEMAND, True, replicas_there=1, nodes_beyond_floor=1, surge_replicas=1),
            id="to on demand",
        ),
    ],
)
def test_all_that_is_said_of_a_move(replicas: list[PlacedReplica], given: MoveGround, found: NodeMove) -> None:
    assert plan_move(replicas, given) == found
