from __future__ import annotations

import pytest

from policies.capacity.utilization import trimmed_utilization


@pytest.mark.parametrize(
    ("before", "outside", "work", "after"),
    [
        pytest.param(0.70, 0.0, 0.65, 0.704, id="a calm minute under load: a little more"),
        pytest.param(0.70, 0.0, 0.30, 0.70, id="a calm minute of replicas with little to do says nothing"),
        pytest.param(0.70, 0.002, 0.65, 0.7006, id="between calm and tolerated: almost nothing"),
        pytest.param(0.70, 0.003, 0.65, 0.70, id="what is tolerated: nothing"),
        pytest.param(0.70, 0.02, 0.65, 0.6898, id="two percent outside: a little less"),
        pytest.param(0.70, 0.02, 0.10, 0.6898, id="even where there seems to be little to do"),
        pytest.param(0.70, 0.80, 0.65, 0.6838, id="a minute that went wrong as a whole counts as 3 %"),
        pytest.param(0.898, 0.0, 0.85, 0.90, id="never above 0.90"),
        pytest.param(0.552, 0.80, 0.40, 0.55, id="never below 0.55"),
    ],
)
def test_the_safe_utilisation_after_one_more_minute(before: float, outside: float, work: float, after: float) -> None:
    assert trimmed_utilization(before, outside, work) == pytest.approx(after)


def test_it_comes_to_rest_with_less_than_half_a_percent_outside() -> None:
    """A pool whose share outside grows with its utilisation, and is 0.3 % at 0.63: what rises miss comes on top."""
    utilization = 0.70
    for _ in range(2000):
        share = 0.003 * (utilization / 0.63) ** 20
        utilization = trimmed_utilization(utilization, share, utilization)
    assert utilization == pytest.approx(0.63, abs=0.01)
