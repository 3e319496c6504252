from __future__ import annotations

import pytest

from autoscaler.observers.pod_memory import ScrapeInterval


@pytest.mark.parametrize(
    ("advances", "expected"),
    [
        pytest.param([], 15.0, id="assumed until something was seen"),
        pytest.param([5.0], 5.0, id="the first advance is taken as it is"),
        pytest.param([5.0, 5.0, 5.0], 5.0, id="a steady interval"),
        pytest.param([5.0, 300.0], 6.0, id="an outage moves it by 20 % only"),
        pytest.param([30.0] + [15.0] * 20, 15.17, id="a missed scrape at the beginning is forgotten"),
        pytest.param([3.0, 12.0] * 20, 8.0, id="two scrape jobs of 15 s that are 3 s apart: about half of it"),
    ],
)
def test_the_scrape_interval_is_learned(advances: list[float], expected: float) -> None:
    interval = ScrapeInterval()
    for advance in advances:
        interval.learn(advance)
    assert interval.seconds == pytest.approx(expected, abs=0.9 if len(advances) > 30 else 0.05)
