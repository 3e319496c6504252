"""How a moment or a length of time is written on the command line."""

from __future__ import annotations

import pytest

from autoscaler.commands.record_window import WHOLE, RecordWindow, parse_window


@pytest.mark.parametrize(
    ("at", "since", "window"),
    [
        pytest.param(None, None, WHOLE, id="neither: all there is"),
        pytest.param(None, "90s", RecordWindow(back_seconds=90.0), id="seconds"),
        pytest.param(None, "2h", RecordWindow(back_seconds=7200.0), id="hours"),
        pytest.param(None, "1d", RecordWindow(back_seconds=86_400.0), id="a day"),
        pytest.param(None, " 1h30m ", RecordWindow(back_seconds=5400.0), id="several units"),
        pytest.param("2030-03-17T17:46:40Z", None, RecordWindow(at_seconds=1_900_000_000.0), id="a time in UTC"),
        pytest.param(
            "2030-03-17T18:46:40.500+01:00", None, RecordWindow(at_seconds=1_900_000_000.5), id="a time with an offset"
        ),
    ],
)
def test_a_window_is_read(at: str | None, since: str | None, window: RecordWindow) -> None:
    assert parse_window(at, since) == window


@pytest.mark.parametrize(
    ("at", "since", "problem"),
    [
        pytest.param("2030-03-17T17:46:40Z", "2h", "give --at or --since, not both", id="both"),
        pytest.param("noon", None, "--at noon: a time such as", id="no time"),
        pytest.param("2030-03-17T17:46:40", None, "of which time zone?", id="a time without a zone"),
        pytest.param("2030-03-17", None, "of which time zone?", id="a day"),
        pytest.param(None, "", "--since : a length of time such as", id="nothing"),
        pytest.param(None, "5", "--since 5: a length of time such as", id="no unit"),
        pytest.param(None, "5w", "--since 5w: a length of time such as", id="an unknown unit"),
        pytest.param(None, "-5m", "--since -5m: a length of time such as", id="a negative one"),
    ],
)
def test_what_is_no_window_is_refused(at: str | None, since: str | None, problem: str) -> None:
    refused = parse_window(at, since)
    assert isinstance(refused, str)
    assert problem in refused
