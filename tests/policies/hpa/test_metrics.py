from __future__ import annotations

import pytest

from policies.hpa.metric_proposal import (
    MAXIMUM_INT32,
    MAXIMUM_INT64,
    Tolerance,
    milli_target,
    milli_value,
    share_of_quantity,
)
from policies.hpa.metrics import FailedMetric, MeasuredMetric, PodCounts, Proposal, TargetType, propose

THREE = PodCounts(3, 3, 3, 3)
BAND = Tolerance(0.1, 0.1)
VALUE, AVERAGE = TargetType.VALUE, TargetType.AVERAGE_VALUE


@pytest.mark.parametrize(
    ("metric", "proposal"),
    [
        pytest.param(
            MeasuredMetric(AVERAGE, 1000, (MAXIMUM_INT64, 1000)),
            Proposal(MAXIMUM_INT32, average_value_milli=MAXIMUM_INT64),
            id="an average of more than int64",
        ),
        pytest.param(
            MeasuredMetric(AVERAGE, 1000, (-1, 9000)),
            Proposal(MAXIMUM_INT32, average_value_milli=MAXIMUM_INT64),
            id="a sum that is negative on the way is taken for one of more than int64",
        ),
        pytest.param(
            MeasuredMetric(AVERAGE, 1000, (-5000,), is_object=True),
            Proposal(-5, average_value_milli=-1666),
            id="but not one of an Object metric",
        ),
        pytest.param(
            MeasuredMetric(VALUE, 1000, (MAXIMUM_INT64, 1000)),
            Proposal(MAXIMUM_INT32, value_milli=MAXIMUM_INT64),
            id="a value of more than int64",
        ),
        pytest.param(
            MeasuredMetric(AVERAGE, 1000, (MAXIMUM_INT64, -MAXIMUM_INT64 + 9000)),
            Proposal(9, average_value_milli=3000),
            id="an average that is int64's maximum on the way",
        ),
        pytest.param(
            MeasuredMetric(VALUE, 1000, (MAXIMUM_INT64, 1)),
            Proposal(MAXIMUM_INT32, value_milli=MAXIMUM_INT64),
            id="a value of a thousandth more than int64",
        ),
        pytest.param(MeasuredMetric(VALUE, 1000, (-1, 2001)), Proposal(6, value_milli=2000), id="a negative part"),
        pytest.param(
            MeasuredMetric(VALUE, 1000, ()), FailedMetric("FailedGetExternalMetric", True), id="no external value"
        ),
        pytest.param(
            MeasuredMetric(VALUE, 1000, (), is_object=True), FailedMetric("FailedGetObjectMetric", True), id="no object"
        ),
    ],
)
def test_what_numbers_at_the_edge_propose(metric: MeasuredMetric, proposal: Proposal | FailedMetric) -> None:
    assert propose(metric, THREE, BAND) == proposal


def test_a_value_within_the_band_asks_for_no_pods() -> None:
    gone = PodCounts(spec=3, status=0, ready=0, matching=0)
    assert propose(MeasuredMetric(VALUE, 1000, (1050,)), gone, BAND) == Proposal(3, value_milli=1050)
    assert propose(MeasuredMetric(VALUE, 1000, (2000,)), gone, BAND) == FailedMetric("FailedGetExternalMetric", True)


@pytest.mark.parametrize(
    ("number", "value", "target"),
    [
        pytest.param(1.1, 1100, 1100, id="a tenth"),
        pytest.param(16.1, 16100, 16100, id="a number that floats make a little too large"),
        pytest.param(0.0101, 10, 11, id="a target is rounded up, a value to the nearest"),
        pytest.param(1e30, MAXIMUM_INT64, 10**33, id="a value is at most int64"),
        pytest.param(1e305, MAXIMUM_INT64, 10**308, id="of whatever size"),
    ],
)
def test_thousandths(number: float, value: int, target: int) -> None:
    assert milli_value(number) == value
    assert milli_target(number) == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize(
    ("share", "read"),
    [
        pytest.param(0.0, 0.0, id="none"),
        pytest.param(0.05, 0.05, id="most are as in floats"),
        pytest.param(0.009, 0.009000000000000001, id="9m"),
        pytest.param(5e-06, 4.9999999999999996e-06, id="5u"),
        pytest.param(3e-09, 3.0000000000000004e-09, id="3n"),
        pytest.param(10.0, 10.0, id="a whole number"),
        pytest.param(0.1180000001, 0.1180000001, id="finer than a billionth: as it is, and not 118m"),
    ],
)
def test_a_share_is_read_as_kubernetes_reads_its_quantity(share: float, read: float) -> None:
    assert share_of_quantity(share) == read
