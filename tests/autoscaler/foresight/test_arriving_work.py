from __future__ import annotations

import pytest

from autoscaler.foresight.arriving_work import WorkReading, arriving_per_second, read_work
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown, ReplicaCounts
from policies.signals import Signal
from tests.builders import a_blackout, a_signal, an_even_signal, an_observation, without

FOUR, NONE = ReplicaCounts(4, 4, 4), ReplicaCounts(0, 0, 0)
RATES = (Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS)


@pytest.mark.parametrize(
    ("metrics", "replicas", "reading"),
    [
        pytest.param(
            an_observation({Signal.WAITING_REQUESTS: an_even_signal(12, 4)}),
            FOUR,
            WorkReading(18_400.0, 12.0, 40.0, 2000.0, 300.0),
            id="prompt and generated tokens a second, and what waits and runs",
        ),
        pytest.param(
            an_observation(queries={"pendingRequests": 7}),
            FOUR,
            WorkReading(18_400.0, 7.0, 40.0, 2000.0, 300.0),
            id="what a gateway holds back waits too",
        ),
        pytest.param(
            an_observation(queries={"pendingRequests": QueryUnknown("no answer")}),
            FOUR,
            WorkReading(18_400.0, 0.0, 40.0, 2000.0, 300.0),
            id="a gateway that does not answer holds nothing back that we know of",
        ),
        pytest.param(
            an_observation({name: a_signal(100.0, 100.0, 100.0, None) for name in RATES}, fresh=3),
            FOUR,
            WorkReading(2 * 300.0 * 1.25, 0.0, 40.0, 2000.0, 300.0),
            id="an unseen replica does as much as its peers, at most a quarter of what they do",
        ),
        pytest.param(
            an_observation({}, ready=0, queries={"pendingRequests": 3}),
            NONE,
            WorkReading(0.0, 3.0, 0.0, 2000.0, 300.0),
            id="a pool that sleeps does nothing, and requests may wait for it",
        ),
        pytest.param(
            an_observation({}, ready=0), ReplicaCounts(2, 2, 0, starting=2), None, id="a pool that starts is not known"
        ),
        pytest.param(an_observation(fresh=1), FOUR, None, id="one replica does not speak for four"),
        pytest.param(without(an_observation(), Signal.PROMPT_TOKENS), FOUR, None, id="an engine that counts no tokens"),
        pytest.param(a_blackout(), FOUR, None, id="nothing was seen"),
    ],
)
def test_the_work_of_a_moment(
    metrics: MetricsObservation | ObservationUnavailable, replicas: ReplicaCounts, reading: WorkReading | None
) -> None:
    assert read_work(metrics, replicas) == reading


def a_reading(waiting: float = 0.0, running: float = 0.0, prompt: float | None = 2000.0) -> WorkReading:
    return WorkReading(10_000.0, waiting, running, prompt, 300.0)


@pytest.mark.parametrize(
    ("first", "last", "arrived"),
    [
        pytest.param(a_reading(), a_reading(), 10_000.0, id="a pool that keeps up does what arrives"),
        pytest.param(
            a_reading(), a_reading(waiting=60), 10_000 + 60 * 2300 / 300, id="a queue that grows is work that arrived"
        ),
        pytest.param(
            a_reading(waiting=60), a_reading(), 10_000 - 60 * 2300 / 300, id="a queue that is worked off arrived before"
        ),
        pytest.param(
            a_reading(),
            a_reading(running=60),
            10_000 + 60 * 150 / 300,
            id="of a running request half an answer is left",
        ),
        pytest.param(a_reading(waiting=9000), a_reading(), 0.0, id="less than nothing does not arrive"),
        pytest.param(
            a_reading(), a_reading(waiting=60, prompt=None), 10_000.0, id="requests of unknown size are left out"
        ),
    ],
)
def test_what_arrived_between_two_moments(first: WorkReading, last: WorkReading, arrived: float) -> None:
    assert arriving_per_second(10_000.0, first, last, 300.0) == pytest.approx(arrived)
