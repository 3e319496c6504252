"""What is kept of a NodePool's budgets while they are closed, and what is written back."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.held_budgets import CLOSED, HeldBudgets, closed_over, read_held, reopened, write_held

OWN: list[dict[str, Any]] = [{"nodes": "10%"}, {"nodes": "0", "schedule": "@daily", "duration": "10m"}]


def test_budgets_survive_being_kept() -> None:
    assert read_held(write_held(OWN, 1000.4)) == HeldBudgets(tuple(OWN), 1000.0)


@pytest.mark.parametrize("text", [None, "", "lots", "[]", '{"budgets": 3}'])
def test_what_nobody_can_read_is_not_held(text: str | None) -> None:
    assert read_held(text) is None


@pytest.mark.parametrize(
    ("present", "after"),
    [
        pytest.param([CLOSED, *OWN], OWN, id="as they were closed"),
        pytest.param([CLOSED, {"nodes": "1"}], [{"nodes": "1"}], id="somebody has changed those behind ours"),
        pytest.param([{"nodes": "1"}], [{"nodes": "1"}], id="somebody has written all of them anew"),
        pytest.param([], [], id="somebody has taken all away"),
    ],
)
def test_what_somebody_has_changed_meanwhile_is_kept(
    present: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    assert reopened(present, HeldBudgets(tuple(OWN), 0.0)) == after


def test_fifty_budgets_stay_fifty_and_all_come_back() -> None:
    many = [{"nodes": str(number)} for number in range(50)]
    closed = closed_over(many)

    assert (len(closed), closed[0]) == (50, CLOSED)
    assert reopened(closed, HeldBudgets(tuple(many), 0.0)) == many
