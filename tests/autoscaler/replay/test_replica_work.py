from __future__ import annotations

import pytest

from autoscaler.replay.outcomes import LatencyObjectives
from autoscaler.replay.replica_profile import ReplicaProfile, built_in_profile
from autoscaler.replay.replica_work import requests_per_second
from autoscaler.replay.serving_replica import Request, ServingReplica

OBJECTIVES = LatencyObjectives(2.0, 0.05)


def mean_gap_seconds(profile: ReplicaProfile, tokens: tuple[int, int], rate: float) -> float:
    """Of the requests that arrive after the first 100 s at one replica, evenly spaced."""
    replica, gaps = ServingReplica(profile, 0.0), []
    for number in range(int(250 * rate)):
        request = Request(number / rate, *tokens)
        for done in replica.advance(request.arrived_at):
            assert done.finished_at is not None
            assert done.first_token_at is not None
            if done.arrived_at > 100.0:
                gaps.append((done.finished_at - done.first_token_at) / (tokens[1] - 1))
        replica.add(request, request.arrived_at)
    return sum(gaps) / len(gaps)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        pytest.param("llama-3.1-8b-bf16-1xh100-vllm", (1000, 200), id="8B with answers of ordinary length"),
        pytest.param("llama-3.1-8b-bf16-1xa100-vllm", (1000, 1200), id="8B with long answers"),
        pytest.param("llama-3.3-70b-fp8-2xh100-vllm", (2000, 300), id="70B with long prompts"),
        pytest.param("deepseek-r1-fp8-8xh200-sglang", (1000, 1000), id="a mixture of experts"),
    ],
)
def test_a_simulated_replica_meets_the_objective_well_below_that_rate_and_not_above_it(
    name: str, tokens: tuple[int, int]
) -> None:
    profile = built_in_profile(name)
    rate = requests_per_second(profile, *tokens, OBJECTIVES)
    assert mean_gap_seconds(profile, tokens, 0.7 * rate) < OBJECTIVES.inter_token_latency_seconds
    assert mean_gap_seconds(profile, tokens, 1.2 * rate) > OBJECTIVES.inter_token_latency_seconds


def test_an_objective_that_nothing_meets_still_gives_the_rate_of_one_sequence() -> None:
    profile = built_in_profile("llama-3.3-70b-fp8-2xh100-vllm")
    assert 0.0 < requests_per_second(profile, 1000, 200, LatencyObjectives(2.0, 0.001)) < 1.0
