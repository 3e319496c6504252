from __future__ import annotations

import pytest

from autoscaler.kubernetes_gateway.backoff import Backoff


@pytest.mark.parametrize(
    ("chance", "expected"),
    [
        pytest.param(0.0, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0], id="doubles from half a second to thirty"),
        pytest.param(1.0, [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0], id="chance shortens by up to a half"),
    ],
)
def test_delays(chance: float, expected: list[float]) -> None:
    backoff = Backoff(lambda: chance)
    assert [backoff.next_delay_seconds() for _ in expected] == expected


def test_success_begins_anew() -> None:
    backoff = Backoff(lambda: 0.0)
    backoff.next_delay_seconds()
    backoff.next_delay_seconds()
    backoff.reset()
    assert backoff.next_delay_seconds() == 0.5


@pytest.mark.parametrize(
    ("retry_after_seconds", "expected"),
    [
        pytest.param(None, 0.5, id="nothing was asked for"),
        pytest.param(7.0, 7.5, id="what was asked for comes first"),
        pytest.param(86_400.0, 120.5, id="an absurd wait is cut to two minutes"),
    ],
)
def test_what_the_server_asks_for(retry_after_seconds: float | None, expected: float) -> None:
    assert Backoff(lambda: 0.0).next_delay_seconds(retry_after_seconds) == expected
