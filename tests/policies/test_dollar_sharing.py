from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.dollar_sharing import DollarShare, NodeCost, NodeWish, PoolBill, share_dollars

TEN = NodeCost(10, 10)


def bill(
    pool: str, standing: int = 0, *wishes: tuple[int, int], minimum: int = 0, deleting: int = 0, spare: int = 0
) -> PoolBill:
    """Nodes at 10 each; wishes as (priority, nodes)."""
    made = tuple(NodeWish(priority, nodes) for priority, nodes in wishes)
    return PoolBill(pool, TEN, 10 * standing, 10 * deleting, minimum, made, spare)


@pytest.mark.parametrize(
    ("ceiling", "bills", "limits"),
    [
        pytest.param(100, [bill("a", 2, (0, 3)), bill("b", 2, (0, 4))], (30, 40), id="enough for all"),
        pytest.param(100, [bill("a", 0, (0, 9)), bill("b", 0, (0, 9))], (50, 50), id="equals share evenly"),
        pytest.param(100, [bill("a", 0, (0, 2)), bill("b", 0, (0, 9))], (20, 80), id="what one does not want"),
        pytest.param(100, [bill("a", 0, (0, 9)), bill("b", 0, (5, 9))], (10, 90), id="by priority"),
        pytest.param(
            100, [bill("a", 0, (0, 9), minimum=4), bill("b", 0, (5, 9), minimum=1)], (40, 60), id="minimums first"
        ),
        pytest.param(95, [bill("a", 0, (0, 9)), bill("b", 0, (0, 9))], (50, 40), id="whole nodes"),
        pytest.param(100, [bill("a", 0, (0, 9)), bill("b", 0, (0, 9), deleting=4)], (30, 30), id="what goes costs"),
        pytest.param(
            100, [bill("a", 8, (0, 9)), bill("b", 2, (5, 9))], (10, 20), id="the part of another when it is away"
        ),
        pytest.param(100, [bill("a", 3, (0, 9)), bill("b", 2, (5, 9))], (10, 70), id="as far as nobody stands there"),
        pytest.param(100, [bill("a", 12), bill("b", 0, (5, 2))], (0, 0), id="more is standing than the ceiling pays"),
        pytest.param(100, [bill("a", 6, (0, 6)), bill("b", 0, (0, 3), spare=5)], (60, 40), id="spare nodes come last"),
        pytest.param(100, [bill("a", 0, (0, 2), spare=1), bill("b", 0, (0, 2), spare=1)], (30, 30), id="one to spare"),
    ],
)
def test_limits_share_a_ceiling(ceiling: int, bills: list[PoolBill], limits: tuple[int, int]) -> None:
    shares = share_dollars(ceiling, bills)
    assert (shares["a"].limit, shares["b"].limit) == limits


def test_an_allowance_holds_what_is_left_over() -> None:
    shares = share_dollars(100, [bill("a", 2, (0, 3)), bill("b", 2, (0, 4))])
    assert shares == {"a": DollarShare(30, 60), "b": DollarShare(40, 70)}


@pytest.mark.parametrize(
    ("cost", "nodes", "dollars"),
    [
        pytest.param(NodeCost(50, 20), 4, 200, id="all on demand"),
        pytest.param(NodeCost(50, 20, 20), 5, 130, id="a fifth on demand"),
        pytest.param(NodeCost(50, 20, 20, most_spot_nodes=1), 5, 220, id="where spot cannot be had"),
        pytest.param(NodeCost(50, 20), 0, 0, id="none"),
    ],
)
def test_what_nodes_cost(cost: NodeCost, nodes: int, dollars: int) -> None:
    assert cost.of(nodes) == dollars


WISHES = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=3)
BILLS = st.lists(
    st.builds(
        lambda standing, deleting, minimum, wishes, spare, spot, returning: PoolBill(
            "", NodeCost(10, spot, 20), 10 * standing, 10 * deleting, minimum,
            tuple(NodeWish(priority, nodes) for priority, nodes in wishes), spare, returning
        ),
        st.integers(0, 12), st.integers(0, 3), st.integers(0, 3), WISHES, st.integers(0, 2), st.sampled_from([4, 10]),
        st.integers(0, 1),
    ),
    min_size=1,
    max_size=5,
)  # fmt: skip


@given(BILLS, st.integers(0, 400))
def test_limits_never_let_pools_spend_more_together(bills: list[PoolBill], ceiling: int) -> None:
    named = [PoolBill(str(number), *_without_name(bill)) for number, bill in enumerate(bills)]
    shares = share_dollars(ceiling, named)
    spent = sum(max(shares[bill.pool].limit, bill.standing) + bill.deleting for bill in named)
    standing = sum(bill.standing + bill.deleting for bill in named)
    assert spent <= max(ceiling, standing)
    assert all(share.allowance >= 0 and share.limit >= 0 for share in shares.values())


@given(BILLS, st.integers(0, 400))
def test_nodes_that_go_change_no_allowance(bills: list[PoolBill], ceiling: int) -> None:
    named = [PoolBill(str(number), *_without_name(bill)) for number, bill in enumerate(bills)]
    gone = [replace(bill, deleting=0) for bill in named]
    before, after = (share_dollars(ceiling, each) for each in (named, gone))
    assert {pool: share.allowance for pool, share in before.items()} == {
        pool: share.allowance for pool, share in after.items()
    }


def _without_name(bill: PoolBill) -> tuple[NodeCost, int, int, int, tuple[NodeWish, ...], int, int]:
    spare, moving = bill.spare_nodes, bill.moving
    return bill.cost, bill.standing, bill.deleting, bill.minimum_nodes, bill.wishes, spare, moving
