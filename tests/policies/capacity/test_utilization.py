from __future__ import annotations

import pytest

from policies.capacity.utilization import safe_utilization, trimmed


@pytest.mark.parametrize(
    ("safe_share", "trim", "utilization"),
    [
        pytest.param(0.65, 1.0, 0.65, id="what the law leaves to slow requests"),
        pytest.param(0.65, 1.2, 0.78, id="a fifth more was borne"),
        pytest.param(0.65, 0.9, 0.585, id="a tenth less was"),
        pytest.param(1.0, 1.0, 0.85, id="never above 0.85: the load rises within a minute"),
        pytest.param(0.2, 1.4, 0.52, id="never below 0.52: what is still missed then, no size prevents"),
    ],
)
def test_the_safe_utilisation(safe_share: float, trim: float, utilization: float) -> None:
    assert safe_utilization(safe_share, trim) == pytest.approx(utilization)


@pytest.mark.parametrize(
    ("trim", "utilization", "outside", "work", "after"),
    [
        pytest.param(1.0, 0.70, 0.0, 0.65, 1.012, id="a calm minute under load: a little more"),
        pytest.param(1.0, 0.70, 0.001, 0.65, 1.004, id="two thirds of what is calm: a third of that"),
        pytest.param(1.0, 0.70, 0.0, 0.30, 1.0, id="a calm minute of replicas with little to do says nothing"),
        pytest.param(1.0, 0.64, 0.0, 0.48, 1.012, id="three quarters of the safe load are enough to say something"),
        pytest.param(1.0, 0.70, 0.0015, 0.65, 1.0009, id="what is just not calm any more: a little"),
        pytest.param(1.0, 0.70, 0.002, 0.65, 1.0006, id="between calm and tolerated: almost nothing"),
        pytest.param(1.0, 0.70, 0.002, 0.30, 1.0, id="nor does that say anything of replicas with little to do"),
        pytest.param(1.0, 0.70, 0.003, 0.65, 1.0, id="what is tolerated: nothing"),
        pytest.param(1.0, 0.70, 0.02, 0.65, 0.9898, id="two percent outside: a little less"),
        pytest.param(1.0, 0.70, 0.02, 0.10, 0.9898, id="even where there seems to be little to do"),
        pytest.param(1.0, 0.70, 0.80, 0.65, 0.9838, id="a minute that went wrong as a whole counts as 3 %"),
        pytest.param(1.398, 0.80, 0.0, 0.75, 1.4, id="never above 1.4"),
        pytest.param(0.752, 0.60, 0.80, 0.40, 0.75, id="never below 0.75"),
        pytest.param(1.1, 0.85, 0.0, 0.80, 1.1, id="no more where the utilisation is at its upper bound"),
        pytest.param(1.1, 0.85, 0.02, 0.80, 1.0898, id="but less there"),
        pytest.param(0.9, 0.52, 0.02, 0.50, 0.9, id="no less where it is at its lower bound"),
        pytest.param(0.9, 0.52, 0.0, 0.50, 0.912, id="but more there"),
    ],
)
def test_the_trim_after_one_more_minute(
    trim: float, utilization: float, outside: float, work: float, after: float
) -> None:
    assert trimmed(trim, utilization, outside, work) == pytest.approx(after)


@pytest.mark.parametrize("safe_share", [0.62, 0.68, 0.75])
def test_it_comes_to_rest_with_less_than_half_a_percent_outside(safe_share: float) -> None:
    """A pool whose share outside grows with its utilisation, and is 0.3 % at 0.66: what rises miss comes on top."""
    trim = 1.0
    for _ in range(2000):
        utilization = safe_utilization(safe_share, trim)
        trim = trimmed(trim, utilization, 0.003 * (utilization / 0.66) ** 20, utilization)
    assert safe_utilization(safe_share, trim) == pytest.approx(0.66, abs=0.03)
