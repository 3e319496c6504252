"""What is counted of finished requests, however few or many at a time are judged."""

import pytest

from autoscaler.replay.outcomes import JUDGED_AT_ONCE, LatencyObjectives, RequestLatencies, RequestOutcomes
from autoscaler.replay.serving_replica import Request

OBJECTIVES = LatencyObjectives(2.0, 0.05)


def a_request(arrived_at: float = 100.0, waits: float = 1.0, gap: float = 0.04, answer: int = 11) -> Request:
    request = Request(arrived_at, 1000, answer)
    request.first_token_at = arrived_at + waits
    request.finished_at = request.first_token_at + gap * (answer - 1)
    return request


@pytest.mark.parametrize(
    ("request_", "is_met"),
    [
        pytest.param(a_request(), True, id="both objectives are met"),
        pytest.param(a_request(waits=2.5), False, id="the first token came too late"),
        pytest.param(a_request(gap=0.06), False, id="the tokens came too slowly"),
        pytest.param(a_request(answer=1), True, id="an answer of one token has no gap"),
    ],
)
def test_a_request_meets_both_objectives_or_none(request_: Request, is_met: bool) -> None:
    outcomes = RequestOutcomes(OBJECTIVES)
    outcomes.add_finished([request_])
    assert (outcomes.finished, outcomes.met) == (1, int(is_met))
    assert outcomes.finished_tokens == 1000 + request_.output_tokens
    assert outcomes.recent_met_share == float(is_met)


@pytest.mark.parametrize("count", [0, 1, JUDGED_AT_ONCE - 1, JUDGED_AT_ONCE, 2 * JUDGED_AT_ONCE + 1])
def test_every_request_is_counted_once(count: int) -> None:
    latencies = RequestLatencies(started_at_seconds=90.0)
    outcomes = RequestOutcomes(OBJECTIVES, latencies)
    for number in range(count):
        outcomes.add_finished([a_request(waits=1.0 if number % 2 == 0 else 3.0)])
    assert outcomes.met == outcomes.met == (count + 1) // 2
    assert outcomes.latencies is latencies
    assert latencies.arrived.tolist() == [10.0] * count
    assert latencies.first_token.tolist() == [1.0, 3.0] * (count // 2) + [1.0] * (count % 2)
    assert latencies.token_gap.tolist() == pytest.approx([0.04] * count)


def test_the_recent_view_is_of_the_last_two_minutes() -> None:
    outcomes = RequestOutcomes(OBJECTIVES)
    outcomes.add_finished([a_request(arrived_at=100.0, waits=3.0), a_request(arrived_at=300.0)])
    assert outcomes.recent_met_share == 0.5
    assert outcomes.recent_time_to_first_token_seconds(0.99) == 3.0
    outcomes.forget_old(now_seconds=310.0)
    assert outcomes.recent_met_share == 1.0
    assert outcomes.met == 1


def test_a_request_that_has_not_finished_is_a_bug() -> None:
    outcomes = RequestOutcomes(OBJECTIVES)
    outcomes.add_finished([Request(100.0, 1000, 10)])
    with pytest.raises(ValueError, match="has not finished"):
        _ = outcomes.met
