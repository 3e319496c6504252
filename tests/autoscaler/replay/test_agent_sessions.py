from __future__ import annotations

import numpy as np
import pytest

from autoscaler.replay.agent_sessions import AgentSessions, read_agent_sessions
from autoscaler.replay.trace import TraceError


def test_the_load_is_named_by_its_parameters() -> None:
    sessions = read_agent_sessions("agents:sessions=2000,hours=1.5,burst_times_most=8")
    assert sessions == AgentSessions(sessions=2000, hours=1.5, burst_times_most=8.0)
    assert read_agent_sessions("agents:") == AgentSessions()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("agents:users=3", "'users' is not known; there are: sessions, hours", id="an unknown parameter"),
        pytest.param("agents:sessions=many", "sessions is 'many', not a number", id="no number"),
        pytest.param("agents:hours=0", "hours is 0; more than 0 is wanted", id="no time"),
        pytest.param("agents:fewest_calls=20", "fewest_calls is above most_calls", id="bounds the wrong way round"),
    ],
)
def test_what_is_wrong_with_it_is_said(text: str, problem: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_agent_sessions(text)
    assert problem in str(caught.value)


class TestDrawn:
    def drawn(self, scale: float = 1.0) -> tuple[AgentSessions, np.ndarray[tuple[int], np.dtype[np.float64]]]:
        sessions = AgentSessions(sessions=3000, hours=3.0)
        trace = sessions.draw(np.random.default_rng(7), scale, 0.0, sessions.duration_seconds)
        assert np.all(np.diff(trace.arrival_seconds) >= 0)
        assert trace.input_tokens.min() > sessions.system_prompt_tokens
        return sessions, trace.arrival_seconds

    def test_its_mean_rate_is_what_the_parameters_say(self) -> None:
        sessions, arrivals = self.drawn()
        assert len(arrivals) / sessions.duration_seconds == pytest.approx(sessions.mean_requests_per_second, rel=0.12)

    def test_a_sampled_drawing_has_as_much_less(self) -> None:
        sessions, arrivals = self.drawn(0.25)
        rate = len(arrivals) / sessions.duration_seconds
        assert rate == pytest.approx(0.25 * sessions.mean_requests_per_second, rel=0.15)

    def test_bursts_stand_out_of_the_minutes_around_them(self) -> None:
        _, arrivals = self.drawn()
        by_minute = np.bincount((arrivals / 60.0).astype(int))
        assert by_minute.max() > 2.0 * np.median(by_minute)

    def test_the_same_seed_gives_the_same_requests(self) -> None:
        assert np.array_equal(self.drawn()[1], self.drawn()[1])
