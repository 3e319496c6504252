"""One pool worked out by hand, as a golden decision: what each vote comes to, and the sentence.

4 replicas are ready and 1 starts in time. Each has a KV cache of 60 000 tokens, 80 % of it in use, and 3 requests wait.
Requests have 2000 prompt tokens, 20 % of them in the prefix cache, and 300 of an answer; 8 arrive a second. A replica
can do 16 000 prompt tokens or 750 generated tokens a second within 2 s and 50 ms, then holds 54 000, and may be given
70 % of that. The median of the largest load expected is the work of 5.2 replicas.

    tokens in flight  W = 4 x 48 000 + 12 x (2000 x 0.8 + 300 / 2) = 213 000;  W / (54 000 / 2) = 7.89
    work rate         g = 8 x (2000 x 0.8 / 16 000 + 300 / 750) = 4.0;         g / 0.70 = 5.71
    KV cache          4 x 0.80 / 0.85 = 3.76
    forecast          5.2 / 0.70 = 7.43
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import counterfactuals_of, decide
from policies.decision_input import DecisionInput
from policies.observation import PoolLatency, ReplicaCounts
from policies.reasons import Reason
from policies.signals import Signal
from tests.builders import a_decision_input, a_policy, an_even_signal, an_observation
from tests.forecast_builders import a_forecast

CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=16_000.0, decode_tokens_per_second=750.0, tokens_in_flight=54_000.0, safe_utilization=0.70
)
# The tokens of requests that are the work of 5.2 replicas.
EXPECTED_TOKENS_PER_SECOND = 5.2 / 0.5 * 2300.0


def the_pool(forecast_mode: str = "Active") -> DecisionInput:
    metrics = an_observation(
        {
            Signal.RUNNING_REQUESTS: an_even_signal(96, 4),
            Signal.WAITING_REQUESTS: an_even_signal(12, 4),
            Signal.KV_CACHE_USAGE: an_even_signal(3.2, 4),
            Signal.KV_CACHE_USED_TOKENS: an_even_signal(192_000, 4),
            Signal.REQUESTS_ARRIVED: an_even_signal(8, 4),
            Signal.REQUESTS_ARRIVED_RECENTLY: an_even_signal(8, 4),
        },
        prompt_tokens_per_request=2000.0,
        generation_tokens_per_request=300.0,
        prefix_cache_hit_share=0.2,
        latency=PoolLatency(
            time_to_first_token_p99_seconds=1.9,
            inter_token_latency_p50_seconds=0.013,
            inter_token_latency_p99_seconds=0.045,
        ),
    )
    policy = a_policy(
        signals={"kvCache": {"headroomPercent": 15}},
        objectives={"timeToFirstTokenP99Milliseconds": 2000, "interTokenLatencyP99Milliseconds": 50},
        forecast={"mode": forecast_mode, "quantilePercent": 50},
    )
    decision_input = a_decision_input(policy, metrics, replicas=ReplicaCounts(5, 5, 4, starting=1))
    return replace(decision_input, learned_capacity=CAPACITY, forecast=a_forecast(*[EXPECTED_TOKENS_PER_SECOND] * 4))


def test_each_vote_comes_to_what_was_worked_out_by_hand() -> None:
    votes = {vote.recommender: vote for vote in decide(the_pool()).recommendations if vote.replicas is not None}
    assert {name: round(vote.replicas or 0.0, 2) for name, vote in votes.items()} == {
        "tokensInFlight": 7.89,
        "workRate": 5.71,
        "kvCache": 3.76,
        "forecast": 7.43,
    }
    assert votes["tokensInFlight"].values == {"tokensInFlight": 213_000.0, "tokensPerReplica": 27_000.0}
    assert votes["workRate"].values["workPerSecondLastMinute"] == pytest.approx(4.0)


def test_the_decision_and_its_sentence() -> None:
    decision = decide(the_pool())
    assert (decision.desired_replicas, decision.reason, decision.binding) == (
        8,
        Reason.TOKENS_IN_FLIGHT,
        "tokensInFlight",
    )
    assert decision.message == (
        "8: tokens in flight (213 000 in all, 27 000 is a replica's share) need 7.89; workRate 5.71, kvCache 3.76, "
        "forecast 7.43; 1 of 5 replicas is still starting"
    )
    assert {(step.before, step.after) for step in decision.steps} == {(8, 8)}, "no limit is in the way"


def test_without_the_binding_vote_the_forecast_rules_and_without_both_the_work_rate() -> None:
    assert counterfactuals_of(the_pool()).without == {"tokensInFlight": 8}
    assert counterfactuals_of(the_pool("Off")).without == {"tokensInFlight": 6}
    assert counterfactuals_of(the_pool("Advise")).with_advice == {"forecast": 8}
