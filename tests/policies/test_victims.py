from __future__ import annotations

import random
from dataclasses import replace

import pytest

from policies.victims import NodesOfSplit, PlacedReplica, choose_victims, going_now


def on(node: str | None, name: str, **more: object) -> PlacedReplica:
    return PlacedReplica(name, node, **({"is_ready": node is not None} | more))  # type: ignore[arg-type]


PAIRS = [on("a", "a1", work=5.0), on("a", "a2"), on("b", "b1"), on("c", "c1", work=9.0)]


@pytest.mark.parametrize(
    ("replicas", "fewer", "victims", "emptied"),
    [
        pytest.param(PAIRS, 0, [], [], id="nobody has to go"),
        pytest.param(PAIRS, 1, ["b1"], ["b"], id="a node of one, with the least work"),
        pytest.param(PAIRS, 2, ["b1", "c1"], ["b", "c"], id="two nodes of one rather than one of two"),
        pytest.param(PAIRS, 3, ["b1", "c1", "a2"], ["b", "c"], id="then what has least to do"),
        pytest.param(PAIRS, 9, ["b1", "c1", "a2", "a1"], ["a", "b", "c"], id="everybody"),
        pytest.param(
            [on("a", "a1"), on("b", "b1", others_on_node=1)], 1, ["a1"], ["a"], id="a stranger keeps its node"
        ),
        pytest.param(
            [on("a", "a1"), on("b", "b1", is_drained=True, work=5.0)],
            1,
            ["b1"],
            ["b"],
            id="what is drained already: a choice once made stands",
        ),
        pytest.param(
            [on("a", "a1", is_drained=True), on("b", "b1", is_drained=True), on("b", "b2", is_drained=True)],
            2,
            ["a1", "b1"],
            ["a"],
            id="of those that are drained again whole nodes first",
        ),
        pytest.param(
            [on("a", "a1", is_drained=True), on("b", "b1", node_leaves=True)],
            1,
            ["b1"],
            ["b"],
            id="a node that is about to go before one that is drained",
        ),
        pytest.param(
            [on("a", "a1"), on("b", "b1"), on("b", "b2", node_leaves=True, work=7.0)],
            1,
            ["b2"],
            [],
            id="first what is on a node that is about to go",
        ),
        pytest.param(
            [on("a", "a1"), on("b", "b1", is_ready=False), on(None, "new")],
            1,
            ["new"],
            [],
            id="a replica without a node goes before one that loads",
        ),
        pytest.param(
            [on("a", "a1"), on("b", "b1", is_ready=False)],
            1,
            ["b1"],
            ["b"],
            id="one that loads goes before one that serves: so ReplicaSets have it",
        ),
        pytest.param(
            [on("a", "a1"), on("a", "a2", is_ready=False), on("b", "b1")],
            2,
            ["a2", "a1"],
            ["a"],
            id="after the loading one its node is the nearest to being empty",
        ),
        pytest.param(
            [on("a", "a1"), on("a", "a2"), on("b", "b1"), on("b", "b2"), on("b", "b3")],
            1,
            ["a1"],
            [],
            id="where no node can be emptied, the one that is nearest to it",
        ),
    ],
)
def test_victims(replicas: list[PlacedReplica], fewer: int, victims: list[str], emptied: list[str]) -> None:
    chosen = choose_victims(replicas, fewer)
    assert (list(chosen.names), list(chosen.emptied_nodes)) == (victims, emptied)


@pytest.mark.parametrize(
    ("split", "victims"),
    [
        pytest.param(NodesOfSplit(20, 2, 2), ["a1"], id="an on-demand node that may go goes, as it has less to do"),
        pytest.param(NodesOfSplit(50, 2, 2), ["c1"], id="one that the spot nodes need beside them stays"),
        pytest.param(None, ["a1"], id="nobody asks for a floor"),
    ],
)
def test_the_floor_on_demand_is_kept(split: NodesOfSplit | None, victims: list[str]) -> None:
    on_spot = [on("c", "c1", is_on_spot=True, work=9.0), on("d", "d1", is_on_spot=True, work=9.5)]
    replicas = [on("a", "a1"), on("b", "b1"), *on_spot]
    assert list(choose_victims(replicas, 1, split).names) == victims


@pytest.mark.parametrize(
    ("split", "victims"),
    [
        pytest.param(NodesOfSplit(20, 2, 2), ["a1", "c1"], id="down to the floor on-demand nodes go first"),
        pytest.param(NodesOfSplit(20, 3, 2), ["a1", "b1"], id="as long as they are more than it asks for"),
        pytest.param(None, ["c1", "d1"], id="without a floor who has least to do goes"),
    ],
)
def test_what_went_on_demand_for_want_of_spot_goes_back(split: NodesOfSplit | None, victims: list[str]) -> None:
    on_spot = [on("c", "c1", is_on_spot=True, work=1.0), on("d", "d1", is_on_spot=True, work=2.0)]
    replicas = [on("a", "a1", work=8.0), on("b", "b1", work=9.0), *on_spot]
    assert list(choose_victims(replicas, 2, split).names) == victims


def test_no_random_choice_breaks_a_law() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        replicas = [
            PlacedReplica(
                f"r{number}",
                chance.choice([None, *"abcdef"]),
                chance.random() < 0.8,
                chance.randrange(9),
                node_leaves=chance.random() < 0.1,
            )
            for number in range(chance.randrange(12))
        ]
        fewer = chance.randrange(14)
        victims = choose_victims(replicas, fewer)
        names = set(victims.names)
        assert len(victims.names) == len(names) == min(fewer, len(replicas))
        staying_unready = [each for each in replicas if not each.is_ready and each.name not in names]
        assert not staying_unready or all(not each.is_ready for each in replicas if each.name in names)
        for node in victims.emptied_nodes:
            assert {each.name for each in replicas if each.node == node} <= names


def test_where_replicas_have_come_on_spot_a_whole_node_on_demand_goes_before_the_emptier_one_on_spot() -> None:
    replicas = [
        *(PlacedReplica(f"a-{number}", "a", is_ready=True) for number in range(2)),
        *(PlacedReplica(f"b-{number}", "b", is_ready=True) for number in range(2)),
        PlacedReplica("spot-0", "spot", is_ready=True, is_on_spot=True),
    ]
    split = NodesOfSplit(50, on_demand=2, spot=1)
    assert "spot-0" in choose_victims(replicas, 2, split).names
    assert choose_victims(replicas, 2, replace(split, on_demand_first=True)).emptied_nodes == ("a",)


ONE_OD = PlacedReplica("o", "od", is_ready=True)
TWO_SPOT = [PlacedReplica(f"s{number}", f"spot{number}", is_ready=True, is_on_spot=True) for number in range(2)]


@pytest.mark.parametrize(
    ("replicas", "fewer", "split", "going"),
    [
        pytest.param([ONE_OD], 1, None, ["o"], id="there is no floor"),
        pytest.param([ONE_OD], 1, NodesOfSplit(50, 2, 1), ["o"], id="the floor is kept without it"),
        pytest.param([ONE_OD], 1, NodesOfSplit(50, 2, 2), [], id="it waits while two stand on spot"),
        pytest.param([ONE_OD, TWO_SPOT[0]], 2, NodesOfSplit(50, 1, 1), ["s0"], id="spot first, and it waits"),
        pytest.param(
            [replace(ONE_OD, is_ready=False), TWO_SPOT[0]],
            2,
            NodesOfSplit(50, 1, 1),
            [],
            id="what its ReplicaSet takes first holds up those after it",
        ),
        pytest.param(
            [ONE_OD, replace(ONE_OD, name="o2")],
            1,
            NodesOfSplit(50, 1, 1),
            ["o"],
            id="its node stays for another replica",
        ),
    ],
)
def test_what_goes_on_demand_waits_for_the_spot_nodes_that_need_it(
    replicas: list[PlacedReplica], fewer: int, split: NodesOfSplit | None, going: list[str]
) -> None:
    found = going_now(replicas, choose_victims(replicas, fewer, split), split)
    assert list(found.names) == going
    assert set(found.emptied_nodes) <= {replica.node for replica in replicas}
