from __future__ import annotations

import pytest

from policies.wording import counted, duration, joined, number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (213_000.0, "213 000"),
        (1234.5, "1 234"),
        (7.889, "7.89"),
        (0.8, "0.800"),
        (12.0, "12"),
        (0.0, "0"),
        (1e308, "1.00e+308"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (119.0, "119 s"), (120.0, "2 min"), (150.0, "2.5 min"), (900.0, "15 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_lists_and_counts() -> None:
    assert counted(1, "replica") == "1 replica"
    assert counted(0, "replica") == "0 replicas"
    assert joined(["a", "", "b"]) == "a; b"
