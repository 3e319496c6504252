"""The work that arrives, and the tokens in flight, priced by what a replica has been seen to do."""

from __future__ import annotations

from typing import Any

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import decide
from policies.load.work_rate import tokens_per_second_of_a_replica
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason
from policies.recommenders.recommender import RECOMMENDERS
from policies.signals import Signal
from tests.builders import a_blackout, a_decision_input, a_policy, a_signal, an_even_signal, an_observation, without

ARRIVED, RECENTLY = Signal.REQUESTS_ARRIVED, Signal.REQUESTS_ARRIVED_RECENTLY
RUNNING, WAITING, USED = Signal.RUNNING_REQUESTS, Signal.WAITING_REQUESTS, Signal.KV_CACHE_USED_TOKENS
PROMPTS, GENERATED = Signal.PROMPT_TOKENS, Signal.GENERATION_TOKENS
CAPACITY = LearnedCapacity(
    prefill_tokens_per_second=16_000, decode_tokens_per_second=750, tokens_in_flight=54_000, safe_utilization=0.70
)
OBJECTIVES = a_policy(objectives={})


def arriving(a_second: float, recently: float | None = None, **more: Any) -> MetricsObservation:
    """Requests of 2000 prompt tokens, a fifth of them cached, and 300 generated ones: each 0.5 s of a replica."""
    half_minute = a_second if recently is None else recently
    return an_observation({ARRIVED: an_even_signal(a_second, 4), RECENTLY: an_even_signal(half_minute, 4)}, **more)


IDLE = an_observation({signal: an_even_signal(0, 4) for signal in (RUNNING, WAITING, GENERATED)})


@pytest.mark.parametrize(
    ("metrics", "replicas"),
    [
        pytest.param(arriving(8), 4.0 / 0.70, id="8 requests a second of half a second each, at 0.70"),
        pytest.param(arriving(8, recently=12), 5.4 / 0.70, id="the last half minute asks for nine tenths of itself"),
        pytest.param(arriving(8, recently=8.5), 4.0 / 0.70, id="a little more in the last half minute says nothing"),
        pytest.param(
            an_observation({ARRIVED: a_signal(2, 2, 2, None), RECENTLY: a_signal(2, 2, 2, None)}),
            0.5 * 7.5 / 0.70,
            id="an unseen replica gets its peers' mean, of which at most a quarter is added",
        ),
        pytest.param(
            an_observation(prompt_tokens_per_request=None),
            (16_000 * 0.8 / 16_000 + 2400 / 750) / 0.70,
            id="too few requests have finished: by the tokens that are processed",
        ),
        pytest.param(
            an_observation(),
            (16_000 * 0.8 / 16_000 + 2400 / 750) / 0.70,
            id="the engine does not tell what waits: by the tokens that are processed",
        ),
        pytest.param(an_observation({ARRIVED: a_signal(None, None)}), Reason.SIGNAL_UNKNOWN, id="unknown everywhere"),
        pytest.param(
            without(an_observation(), PROMPTS), Reason.SIGNAL_ABSENT, id="neither arrivals nor tokens are exposed"
        ),
        pytest.param(a_blackout(), Reason.SIGNAL_UNKNOWN, id="Prometheus does not answer"),
    ],
)
def test_the_work_rate(metrics: MetricsObservation | ObservationUnavailable, replicas: float | Reason) -> None:
    (vote,) = RECOMMENDERS["workRate"](a_decision_input(OBJECTIVES, metrics, capacity=CAPACITY))
    assert (vote.reason if vote.replicas is None else pytest.approx(vote.replicas)) == replicas


@pytest.mark.parametrize(
    ("metrics", "replicas"),
    [
        pytest.param(arriving(8), Reason.SIGNAL_UNKNOWN, id="with requests: unknown, so nothing shrinks"),
        pytest.param(IDLE, 0.0, id="without any request none is needed, whatever a replica can do"),
        pytest.param(
            an_observation({signal: a_signal(0, 0, 0, None) for signal in (RUNNING, WAITING, GENERATED)}),
            Reason.SIGNAL_UNKNOWN,
            id="a replica that is not seen may be busy",
        ),
        pytest.param(without(an_observation(), GENERATED), Reason.SIGNAL_ABSENT, id="nothing can ever be learned"),
        pytest.param(a_blackout(), Reason.SIGNAL_UNKNOWN, id="Prometheus does not answer"),
    ],
)
def test_the_work_rate_before_anything_is_learned(
    metrics: MetricsObservation | ObservationUnavailable, replicas: float | Reason
) -> None:
    (vote,) = RECOMMENDERS["workRate"](a_decision_input(OBJECTIVES, metrics))
    assert (vote.reason if vote.replicas is None else vote.replicas) == replicas


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        pytest.param({"objectives": {}}, ["tokensInFlight", "workRate"], id="objectives alone bring both votes"),
        pytest.param(
            {"objectives": {}, "signals": {"tokenRate": {"perReplicaPerSecond": 5000}}},
            ["tokensInFlight", "tokenRate"],
            id="a token rate of the user's own takes the place of the work rate",
        ),
        pytest.param({"signals": {"tokensInFlight": {}}}, ["tokensInFlight"], id="without objectives nothing is added"),
    ],
)
def test_which_votes_objectives_bring(spec: dict[str, Any], names: list[str]) -> None:
    votes = decide(a_decision_input(a_policy(**spec), arriving(8), capacity=CAPACITY)).recommendations
    assert [vote.recommender for vote in votes] == names


@pytest.mark.parametrize(
    ("spec", "capacity", "per_replica"),
    [
        pytest.param({"objectives": {}}, CAPACITY, 27_000, id="half of what it holds at the objectives"),
        pytest.param(
            {"objectives": {}},
            LearnedCapacity(16_000, 750, 54_000, safe_utilization=0.49),
            18_900,
            id="less at a lower safe utilisation",
        ),
        pytest.param({"objectives": {}}, None, 30_000, id="not learned: half of the KV cache"),
        pytest.param(
            {"objectives": {}, "signals": {"tokensInFlight": {"perReplica": 40_000}}},
            CAPACITY,
            40_000,
            id="the user's own number stands",
        ),
    ],
)
def test_the_tokens_that_a_replica_may_hold(
    spec: dict[str, Any], capacity: LearnedCapacity | None, per_replica: float
) -> None:
    (vote,) = RECOMMENDERS["tokensInFlight"](a_decision_input(a_policy(**spec), arriving(8), capacity=capacity))
    assert vote.per_replica == pytest.approx(per_replica)


@pytest.mark.parametrize(
    ("metrics", "replicas", "cautious_replicas"),
    [
        pytest.param(
            an_observation({ARRIVED: a_signal(1, 1, 1, None), RECENTLY: a_signal(1, 1, 1, None)}),
            0.5 * 3.75 / 0.70,
            (0.5 * 3 + 0.70) / 0.70,
            id="an unseen replica may have all that it may be given",
        ),
        pytest.param(
            an_observation({ARRIVED: a_signal(1, 1, 1, None), RECENTLY: a_signal(3, 3, 3, None)}),
            0.9 * 0.5 * 11.25 / 0.70,
            0.9 * (0.5 * 9 + 0.5 * 3) / 0.70,
            id="or as much as its peers got in the last half minute",
        ),
        pytest.param(
            an_observation(
                {PROMPTS: a_signal(800, 800, 800, None), GENERATED: a_signal(75, 75, 75, None)},
                prompt_tokens_per_request=None,
            ),
            (3000 * 0.8 / 16_000 + 281.25 / 750) / 0.70,
            (3200 * 0.8 / 16_000 + 225 / 750 + 0.70) / 0.70,
            id="by the tokens that are processed: answers up to its limit, and prompts like its peers",
        ),
        pytest.param(
            an_observation(prompt_tokens_per_request=None, prefix_cache_hit_share=None),
            (16_000 / 16_000 + 2400 / 750) / 0.70,
            (16_000 / 16_000 + 2400 / 750) / 0.70,
            id="an unknown share of the prefix cache is none",
        ),
    ],
)
def test_an_unseen_replica_may_work_at_its_limit(
    metrics: MetricsObservation, replicas: float, cautious_replicas: float
) -> None:
    (vote,) = RECOMMENDERS["workRate"](a_decision_input(OBJECTIVES, metrics, capacity=CAPACITY))
    assert (vote.replicas, vote.cautious_replicas) == (pytest.approx(replicas), pytest.approx(cautious_replicas))


def test_requests_that_cost_nothing_need_nobody() -> None:
    free = an_observation(
        {ARRIVED: a_signal(2, 2, None), RECENTLY: a_signal(2, 2, None)},
        prompt_tokens_per_request=0.0,
        generation_tokens_per_request=0.0,
    )
    (vote,) = RECOMMENDERS["workRate"](a_decision_input(OBJECTIVES, free, capacity=CAPACITY))
    assert (vote.replicas, vote.cautious_replicas) == (0.0, 0.0)
    assert tokens_per_second_of_a_replica(free, CAPACITY) is None


def test_nothing_shrinks_before_the_capacity_is_learned() -> None:
    metrics = an_observation({ARRIVED: an_even_signal(0.1, 4), USED: an_even_signal(1000, 4)})
    assert decide(a_decision_input(OBJECTIVES, metrics)).desired_replicas == 4
    assert decide(a_decision_input(OBJECTIVES, metrics, capacity=CAPACITY)).desired_replicas < 4


def test_the_tokens_a_second_of_a_replica() -> None:
    assert tokens_per_second_of_a_replica(an_observation(), CAPACITY) == pytest.approx(0.70 * 2300 / 0.5)
    assert tokens_per_second_of_a_replica(an_observation(prompt_tokens_per_request=None), CAPACITY) is None
