from __future__ import annotations

from collections.abc import Sequence

import pytest

from autoscaler.observers.steady_lag import SteadyLag


@pytest.mark.parametrize(
    ("ticks", "expected_seconds"),
    [
        pytest.param([], 0, id="nothing has come yet"),
        pytest.param([[2.0, 14.0]] * 4, 0, id="samples in time"),
        pytest.param([[29.0, 30.0]] * 4, 0, id="what two scrape intervals take is no lag"),
        pytest.param([[61.0, 66.0, 74.0]] * 4, 60, id="a minute late: the least age of all pods, cut to five seconds"),
        pytest.param([[74.0], [69.0], [64.0], [72.0]], 60, id="of one pod the least of four ticks"),
        pytest.param([[61.0, 3.0]] * 4, 0, id="one pod in time: its window must not end a minute ago"),
        pytest.param([[61.0]] * 4 + [[2.0]], 0, id="the lag has ended"),
        pytest.param([[2.0]] * 4 + [[61.0]], 0, id="late for the first time: the newest window still has samples"),
        pytest.param([[2.0]] + [[61.0]] * 4, 60, id="late four times"),
        pytest.param([[61.0]] * 4 + [[]] * 9, 60, id="ticks at which nothing new came tell nothing"),
    ],
)
def test_the_lag_that_all_pods_share(ticks: Sequence[Sequence[float]], expected_seconds: int) -> None:
    lag = SteadyLag()
    for ages in ticks:
        lag.learn(ages)
    assert lag.seconds == expected_seconds
