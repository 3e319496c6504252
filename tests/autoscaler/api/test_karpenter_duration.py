"""Durations as Karpenter writes them."""

from __future__ import annotations

import pytest

from autoscaler.api.karpenter_duration import duration_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("1h30m", 5400.0), ("30m", 1800.0), ("0s", 0.0), ("Never", None), ("720h", 2_592_000.0)]
)
def test_durations_are_read(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == seconds
