from __future__ import annotations

import pytest

from autoscaler.api.duration import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("30m", 1800.0),
        ("1h30m", 5400.0),
        ("2d", 172_800.0),
        ("0s", 0.0),
        ("Never", None),
        ("1.5h", None),
        ("30", None),
        ("-5m", None),
        ("", None),
    ],
)
def test_reads(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
