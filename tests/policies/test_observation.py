from __future__ import annotations

import pytest

from policies.observation import ReplicaCounts


@pytest.mark.parametrize(
    ("counts", "wedged", "expected"),
    [
        pytest.param(ReplicaCounts(6, 6, 6), 0, ReplicaCounts(6, 6, 6), id="none is wedged"),
        pytest.param(
            ReplicaCounts(8, 8, 5, starting=1, stuck=2, wedged=1, outlasting=1),
            2,
            ReplicaCounts(8, 8, 3, starting=1, stuck=4, wedged=3, outlasting=3),
            id="two more are stuck, wedged, and may outlast working ones",
        ),
        pytest.param(
            ReplicaCounts(3, 3, 1), 2, ReplicaCounts(3, 3, 0, stuck=1, wedged=1, outlasting=1), id="no more than ready"
        ),
    ],
)
def test_wedged_replicas_do_not_count_as_ready(counts: ReplicaCounts, wedged: int, expected: ReplicaCounts) -> None:
    assert counts.without_wedged(wedged) == expected


def test_those_that_start_are_supply() -> None:
    assert ReplicaCounts(9, 9, 4, starting=2, stuck=3).supply == 6
