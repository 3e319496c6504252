"""Numbers as quantities and back."""

from __future__ import annotations

import pytest

from autoscaler.api.quantity import MAXIMUM_MILLI, milli_of, milli_of_quantity, quantity


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(0.0, "0", id="zero"),
        pytest.param(5.0, "5", id="a count"),
        pytest.param(1.5, "1500m", id="thousandths where it is not whole"),
        pytest.param(0.8531, "854m", id="finer ones are rounded up"),
        pytest.param(0.0000001, "1m", id="the least bit of load is no zero"),
        pytest.param(16.1, "16100m", id="a float's last digit is not rounded up"),
        pytest.param(2000.0, "2k", id="whole thousands"),
        pytest.param(2016.0, "2016", id="no whole thousands"),
        pytest.param(3e6, "3M", id="whole millions"),
        pytest.param(213_000.0, "213k", id="many thousands"),
        pytest.param(1e18, "9223372036854775807m", id="what the reader cannot hold is cut off"),
    ],
)
def test_writes(value: float, written: str) -> None:
    assert quantity(milli_of(value)) == written
    assert milli_of_quantity(written) == milli_of(value)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_has_no_quantity_of(value: float) -> None:
    with pytest.raises(ValueError, match="no quantity"):
        milli_of(value)


@pytest.mark.parametrize("text", ["", "m", "-1", "1.5", "1Ki", "1e3", "abc", "1" * 20])
def test_reads_only_its_own_form(text: str) -> None:
    assert milli_of_quantity(text) is None


def test_the_largest_is_the_largest_int64() -> None:
    assert MAXIMUM_MILLI == 2**63 - 1
