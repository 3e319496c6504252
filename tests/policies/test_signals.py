from __future__ import annotations

import pytest

from policies.signals import PoolSignal, Sample, Unknown, over_replicas
from tests.builders import an_observation


@pytest.mark.parametrize(
    ("readings", "signal"),
    [
        pytest.param([], PoolSignal(0.0, 0.0, 0, 0, 0, 0.0), id="no replica"),
        pytest.param(
            [Sample(1.0, 5.0), Sample(3.0, 9.0)], PoolSignal(4.0, 3.0, 2, 0, 0, 9.0), id="all fresh; the oldest age"
        ),
        pytest.param([Unknown("gone")], PoolSignal(0.0, 0.0, 0, 0, 1, 0.0), id="an unknown value is no zero"),
        pytest.param([Sample(0.0, 5.0)], PoolSignal(0.0, 0.0, 1, 0, 0, 5.0), id="a zero that was seen"),
        pytest.param(
            [Sample(1.0, 5.0), Sample(2.0, 80.0, is_held=True), Unknown("gone")],
            PoolSignal(3.0, 2.0, 1, 1, 1, 80.0, held_total=2.0),
            id="a held value counts, and is told apart",
        ),
        pytest.param(
            [Sample(1.0, 70.0, is_held=True), Sample(2.0, 80.0, is_held=True)],
            PoolSignal(3.0, 2.0, 0, 2, 0, 80.0, held_total=3.0),
            id="two held values",
        ),
        pytest.param([Sample(-2.0, 5.0)], PoolSignal(-2.0, -2.0, 1, 0, 0, 5.0), id="the maximum of what there is"),
        pytest.param([Sample(0.1, 5.0)] * 3, PoolSignal(0.3, 0.1, 3, 0, 0, 5.0), id="sums have nine digits"),
        pytest.param(
            [Sample(12_345_678_901.0, 5.0)],
            PoolSignal(12_345_678_901.0, 12_345_678_901.0, 1, 0, 0, 5.0),
            id="and whole numbers all of theirs",
        ),
    ],
)
def test_a_signal_over_the_replicas(readings: list[Sample | Unknown], signal: PoolSignal) -> None:
    assert over_replicas(readings) == signal


def test_the_mean_is_over_what_is_known() -> None:
    signal = over_replicas([Sample(1.0, 5.0), Sample(2.0, 80.0, is_held=True), Unknown("gone")])
    assert (signal.mean, signal.known_replicas, signal.ready_replicas) == (1.5, 2, 3)
    assert over_replicas([Unknown("gone")]).mean == 0.0


@pytest.mark.parametrize(
    ("ready", "fresh", "coverage"),
    [
        pytest.param(4, 3, 0.75, id="three of four"),
        pytest.param(0, 0, 1.0, id="nothing is missing where nothing is ready"),
    ],
)
def test_coverage(ready: int, fresh: int, coverage: float) -> None:
    assert an_observation(ready=ready, fresh=fresh).coverage == coverage
