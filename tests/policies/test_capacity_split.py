from __future__ import annotations

import pytest

from policies.capacity_split import (
    ReplicaSplit,
    SplitRule,
    TargetCounts,
    fewest_nodes_with_spot,
    on_demand_beside,
    split_replicas,
    spot_beside,
)
from policies.reasons import Reason


def counts(spec: int, ready: int | None = None, placed: int | None = None) -> TargetCounts:
    """Of one target; all of it serves unless told otherwise."""
    serving = spec if ready is None else ready
    return TargetCounts(spec, serving, serving if placed is None else placed)


@pytest.mark.parametrize(
    ("replicas", "on_demand", "spot", "rule", "expected", "reason"),
    [
        pytest.param(10, counts(1), counts(4), {}, (2, 8), Reason.SPLIT_KEPT, id="20 % of 10 on demand"),
        pytest.param(6, counts(1), counts(4), {}, (2, 4), Reason.SPLIT_KEPT, id="20 % of 6 is more than one"),
        pytest.param(0, counts(0), counts(0), {}, (0, 0), Reason.SPLIT_KEPT, id="nothing"),
        pytest.param(
            10,
            counts(9),
            counts(3),
            {"on_demand_floor_percent": 70, "replicas_per_node": 4},
            (9, 1),
            Reason.SPLIT_KEPT,
            id="a spot cap holds in nodes too: 7 and 3 replicas would be two nodes and one",
        ),
        pytest.param(
            5,
            counts(2),
            counts(8),
            {"on_demand_nodes_held": 2},
            (2, 4),
            Reason.ON_DEMAND_FLOOR,
            id="on demand waits for spot nodes that still stand",
        ),
        pytest.param(
            5,
            counts(8),
            counts(32),
            {"on_demand_nodes_held": 2, "replicas_per_node": 4},
            (5, 4),
            Reason.ON_DEMAND_FLOOR,
            id="so many replicas fill two nodes however they lie",
        ),
        pytest.param(
            10,
            counts(2),
            counts(8, ready=3, placed=4),
            {"can_buy_spot": False},
            (6, 4),
            Reason.SPOT_UNAVAILABLE,
            id="in a drought what waits for a spot node goes on demand",
        ),
        pytest.param(
            10,
            counts(10),
            counts(0),
            {},
            (10, 1),
            Reason.RETURNING_TO_SPOT,
            id="back to spot by one, and nothing goes before it serves",
        ),
        pytest.param(
            10,
            counts(8),
            counts(4, ready=2),
            {},
            (8, 4),
            Reason.RETURNING_TO_SPOT,
            id="then by as many as serve there",
        ),
        pytest.param(
            4,
            counts(1),
            counts(3),
            {"on_demand_floor_percent": 70},
            (3, 3),
            Reason.ON_DEMAND_FLOOR,
            id="a floor that was raised: no spot replica goes before on demand serves",
        ),
        pytest.param(
            4,
            counts(3, ready=2),
            counts(3),
            {"on_demand_floor_percent": 70},
            (3, 2),
            Reason.ON_DEMAND_FLOOR,
            id="it goes one by one as on demand serves",
        ),
        pytest.param(10, counts(6), counts(8), {}, (2, 8), Reason.SPLIT_KEPT, id="on demand goes when spot serves"),
        pytest.param(
            5, counts(10), counts(0), {"can_buy_spot": False}, (5, 0), Reason.SPOT_UNAVAILABLE, id="fewer in a drought"
        ),
    ],
)
def test_two_targets_share_a_count(
    replicas: int,
    on_demand: TargetCounts,
    spot: TargetCounts,
    rule: dict[str, int],
    expected: tuple[int, int],
    reason: Reason,
) -> None:
    split = split_replicas(replicas, on_demand, spot, SplitRule(**({"on_demand_floor_percent": 20} | rule)))
    assert (split.on_demand, split.spot, split.reason) == (*expected, reason)
    assert bool(split.message) == (reason is not Reason.SPLIT_KEPT)


@pytest.mark.parametrize(
    ("floor_percent", "spot_beside_two", "on_demand_beside_eight", "fewest"),
    [
        pytest.param(20, 8, 2, 2, id="a floor of 20 %"),
        pytest.param(70, 0, 19, 4, id="a spot cap of 30 %"),
        pytest.param(0, None, 0, 1, id="no floor"),
        pytest.param(100, 0, 0, None, id="no spot"),
    ],
)
def test_what_stands_beside_what(
    floor_percent: int, spot_beside_two: int | None, on_demand_beside_eight: int, fewest: int | None
) -> None:
    assert spot_beside(2, floor_percent) == spot_beside_two
    assert on_demand_beside(8, floor_percent) == on_demand_beside_eight
    assert fewest_nodes_with_spot(floor_percent) == fewest


def test_a_split_knows_its_whole() -> None:
    assert ReplicaSplit(2, 8, Reason.SPLIT_KEPT, "").replicas == 10
