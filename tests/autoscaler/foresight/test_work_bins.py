from __future__ import annotations

from collections.abc import Iterable

import pytest

from autoscaler.foresight.arriving_work import WorkReading
from autoscaler.foresight.work_bins import ClosedBin, WorkBins

KEY = ("inference", "llama")
BEGIN = 1_900_000_200.0  # a multiple of 300
NUMBER = int(BEGIN // 300)


def reading(rate: float) -> WorkReading:
    return WorkReading(rate, 0.0, 0.0, 2000.0, 300.0)


def closed_after(ticks: Iterable[tuple[float, float | None]]) -> ClosedBin | None:
    """What the first tick of the bin after gives, after ticks at so many seconds with so many tokens a second."""
    bins = WorkBins(300)
    for after_seconds, rate in ticks:
        assert bins.take({KEY: None if rate is None else reading(rate)}, BEGIN + after_seconds) is None
    return bins.take({KEY: reading(7.0)}, BEGIN + 300.0)


EVERY_15_S = range(0, 300, 15)


@pytest.mark.parametrize(
    ("ticks", "loads"),
    [
        pytest.param([(at, 100.0) for at in EVERY_15_S], {KEY: 100.0}, id="a steady load"),
        pytest.param([(at, float(at)) for at in EVERY_15_S], {KEY: 142.5}, id="the mean of a load that grows"),
        pytest.param(
            [(at, 100.0 if at < 150 else None) for at in EVERY_15_S], {KEY: 100.0}, id="half of the readings are enough"
        ),
        pytest.param([(at, 100.0 if at < 135 else None) for at in EVERY_15_S], {}, id="less than half are not"),
        pytest.param([(at, 100.0) for at in EVERY_15_S if at >= 165], {}, id="a start in the second half of a bin"),
        pytest.param([(at, 100.0) for at in EVERY_15_S if at >= 150], {KEY: 100.0}, id="a start in the first half"),
        pytest.param([(at, 100.0) for at in range(0, 300, 60)], {KEY: 100.0}, id="a tick a minute"),
        pytest.param([(at, None) for at in EVERY_15_S], {}, id="nothing was seen"),
    ],
)
def test_a_bin_is_the_mean_of_what_was_seen_in_it(
    ticks: list[tuple[float, float | None]], loads: dict[tuple[str, str], float]
) -> None:
    assert closed_after(ticks) == ClosedBin(NUMBER, loads)


def test_a_clock_that_goes_back_closes_no_bin_twice() -> None:
    bins = WorkBins(300)
    for at in range(-300, 0, 15):
        bins.take({KEY: reading(1.0)}, BEGIN + at)
    assert bins.take({KEY: reading(1.0)}, BEGIN) is not None
    assert bins.take({KEY: reading(1.0)}, BEGIN - 3600.0) is None
    assert bins.take({KEY: reading(1.0)}, BEGIN + 15.0) is None
