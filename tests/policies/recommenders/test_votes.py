"""One table a vote: from signals to replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from policies.capacity.learned_capacity import LearnedCapacity
from policies.decision import decide
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown
from policies.reasons import Reason
from policies.recommenders.recommender import RECOMMENDERS, ScalingRecommendation
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_policy,
    a_signal,
    an_even_signal,
    an_observation,
    without,
)
from tests.forecast_builders import RISING

UNKNOWN, ABSENT = Reason.SIGNAL_UNKNOWN, Reason.SIGNAL_ABSENT
USED, WAITING, RUNNING = Signal.KV_CACHE_USED_TOKENS, Signal.WAITING_REQUESTS, Signal.RUNNING_REQUESTS
CAPACITY, GENERATED = Signal.KV_CACHE_CAPACITY_TOKENS, Signal.GENERATION_TOKENS


def the_vote(name: str, signals: dict[str, Any], metrics: MetricsObservation | ObservationUnavailable) -> Any:
    votes = RECOMMENDERS[name](a_decision_input(a_policy(signals=signals), metrics))
    assert len(votes) == 1
    return votes[0]


def outcome(vote: ScalingRecommendation) -> Any:
    """The count of replicas, or the reason that there is none."""
    return vote.reason if vote.replicas is None else pytest.approx(vote.replicas)


@pytest.mark.parametrize(
    ("metrics", "replicas"),
    [
        pytest.param(
            an_observation({USED: an_even_signal(192_000, 4), WAITING: an_even_signal(12, 4)}),
            213_000 / 30_000,
            id="what the caches hold, and 12 waiting requests of 2000 x 0.8 + 150 tokens",
        ),
        pytest.param(
            an_observation({USED: an_even_signal(192_000, 4)}, prefix_cache_hit_share=None),
            192_000 / 30_000,
            id="no queue: the size of a request does not matter",
        ),
        pytest.param(
            an_observation({WAITING: an_even_signal(4, 4)}, prefix_cache_hit_share=None),
            (96_000 + 4 * 2150) / 30_000,
            id="an unknown hit share counts as none",
        ),
        pytest.param(
            an_observation({WAITING: an_even_signal(4, 4)}, prompt_tokens_per_request=None),
            (96_000 + 4 * 2400) / 30_000,
            id="before requests have finished, a waiting one is as large as a running one",
        ),
        pytest.param(
            an_observation(
                {WAITING: an_even_signal(4, 4), RUNNING: an_even_signal(0, 4)}, generation_tokens_per_request=None
            ),
            UNKNOWN,
            id="a queue of requests of unknown size, none running",
        ),
        pytest.param(
            without(an_observation({WAITING: an_even_signal(6, 4)}), USED),
            46 * 2150 / 30_000,
            id="an engine without KV geometry: 40 running and 6 waiting requests of 2000 + 150 tokens",
        ),
        pytest.param(
            without(an_observation(prompt_tokens_per_request=None), USED),
            UNKNOWN,
            id="no KV geometry, and the size of a request is unknown",
        ),
        pytest.param(
            without(an_observation({RUNNING: an_even_signal(0, 4)}, prompt_tokens_per_request=None), USED),
            0.0,
            id="no KV geometry, nothing running: no tokens, of whatever size a request is",
        ),
        pytest.param(an_observation({USED: a_signal(None, None)}), UNKNOWN, id="nobody's cache is seen"),
        pytest.param(an_observation({WAITING: a_signal(None, None)}), UNKNOWN, id="nobody's queue is seen"),
        pytest.param(without(an_observation(), WAITING), ABSENT, id="an engine that tells no queue"),
        pytest.param(without(an_observation(), USED, RUNNING), ABSENT, id="an engine that tells neither"),
        pytest.param(without(an_observation(), CAPACITY), ABSENT, id="no capacity to take half of"),
        pytest.param(an_observation({CAPACITY: a_signal(None)}), UNKNOWN, id="a capacity not seen yet"),
        pytest.param(an_observation({CAPACITY: a_signal(0.0)}), UNKNOWN, id="a capacity of nothing"),
        pytest.param(a_blackout(), UNKNOWN, id="no answer at all"),
    ],
)
def test_tokens_in_flight(metrics: Any, replicas: Any) -> None:
    assert outcome(the_vote("tokensInFlight", {"tokensInFlight": {}}, metrics)) == replicas


def test_tokens_in_flight_by_the_users_own_share() -> None:
    metrics = without(an_observation({USED: an_even_signal(96_000, 4)}), CAPACITY)
    assert outcome(the_vote("tokensInFlight", {"tokensInFlight": {"perReplica": 16_000}}, metrics)) == 6.0


@pytest.mark.parametrize(
    ("metrics", "replicas"),
    [
        pytest.param(
            an_observation(
                {Signal.PROMPT_TOKENS: an_even_signal(500_000, 4), Signal.GENERATION_TOKENS: an_even_signal(40_000, 4)}
            ),
            3.0,
            id="prompt and generated tokens together",
        ),
        pytest.param(an_observation({Signal.PROMPT_TOKENS: a_signal(None)}), UNKNOWN, id="a counter's first sample"),
        pytest.param(without(an_observation(), Signal.GENERATION_TOKENS), ABSENT, id="one counter does not exist"),
    ],
)
def test_token_rate(metrics: Any, replicas: Any) -> None:
    assert outcome(the_vote("tokenRate", {"tokenRate": {"perReplicaPerSecond": 180_000}}, metrics)) == replicas


@pytest.mark.parametrize(
    ("usage", "replicas"),
    [
        pytest.param(a_signal(0.8, 0.8, 0.8, 0.8), 3.2 / 0.85, id="the sum of the shares in use"),
        pytest.param(a_signal(0.0, 0.0), 0.0, id="empty caches that were seen are a true zero"),
        pytest.param(a_signal(0.5, 0.5, 0.5, 0.5, 0.5, None), 3.0 / 0.85, id="an unseen replica at its peers' mean"),
        pytest.param(a_signal(0.5, 0.5, None, None), 1.25 / 0.85, id="a quarter is the most that unseen ones add"),
        pytest.param(a_signal(0.5, 0.7, held=1), 1.2 / 0.85, id="an aged value is held"),
        pytest.param(a_signal(None, None), UNKNOWN, id="all unseen"),
        pytest.param(a_signal(), UNKNOWN, id="no replica is ready yet"),
    ],
)
def test_kv_cache(usage: Any, replicas: Any) -> None:
    metrics = an_observation({Signal.KV_CACHE_USAGE: usage})
    assert outcome(the_vote("kvCache", {"kvCache": {"headroomPercent": 15}}, metrics)) == replicas


@pytest.mark.parametrize(
    ("usage", "cautious_replicas"),
    [
        pytest.param(a_signal(0.3, 0.3, 0.3, 0.3), 1.2 / 0.85, id="all seen: the same count judges both directions"),
        pytest.param(a_signal(0.3, 0.3, 0.3, None), 1.9 / 0.85, id="an unseen cache may be full"),
        pytest.param(a_signal(0.3, 0.3, 0.4, held=1), 1.6 / 0.85, id="so may one whose sample is aged"),
    ],
)
def test_shrinking_takes_unseen_caches_for_full(usage: Any, cautious_replicas: float) -> None:
    vote = the_vote("kvCache", {"kvCache": {}}, an_observation({Signal.KV_CACHE_USAGE: usage}))
    assert vote.cautious_replicas == pytest.approx(cautious_replicas)


@pytest.mark.parametrize(
    ("name", "signals", "metrics", "replicas", "cautious_replicas"),
    [
        pytest.param(
            "tokensInFlight",
            {"tokensInFlight": {"perReplica": 30_000}},
            an_observation({USED: a_signal(9000, 6000, None), WAITING: a_signal(2, 1, None)}),
            (15_000 + 3 * 1750) * 1.25 / 30_000,
            (15_000 + 30_000 + (3 + 2) * 1750) / 30_000,
            id="an unseen replica holds its share of tokens, and has the longest queue of its peers",
        ),
        pytest.param(
            "tokensInFlight",
            {"tokensInFlight": {"perReplica": 30_000}},
            without(an_observation({RUNNING: a_signal(2, 1, None), WAITING: a_signal(2, 1, None)}), USED),
            (3 + 3) * 2150 * 1.25 / 30_000,
            (3 * 2150 + 30_000 + (3 + 2) * 2150) / 30_000,
            id="the same by running requests",
        ),
        pytest.param(
            "tokensInFlight",
            {"tokensInFlight": {"perReplica": 30_000}},
            without(
                an_observation(
                    {RUNNING: a_signal(2, 1, None)}, prompt_tokens_per_request=0.0, generation_tokens_per_request=0.0
                ),
                USED,
            ),
            0.0,
            0.0,
            id="requests of no tokens hold none",
        ),
        pytest.param(
            "tokensInFlight",
            {"tokensInFlight": {"perReplica": 30_000}},
            without(
                an_observation(
                    {RUNNING: a_signal(1, 1, None)}, prompt_tokens_per_request=0.0, generation_tokens_per_request=1.0
                ),
                USED,
            ),
            2 * 1.25 * 0.5 / 30_000,
            (2 * 0.5 + 30_000) / 30_000,
            id="requests of half a token",
        ),
        pytest.param(
            "tokensInFlight",
            {"tokensInFlight": {"perReplica": 30_000}},
            without(an_observation({RUNNING: a_signal(0, 0, None)}, prompt_tokens_per_request=None), USED),
            0.0,
            1.0,
            id="nothing runs where it is seen, and what a request holds is not known: one unseen replica may be full",
        ),
        pytest.param(
            "tokenRate",
            {"tokenRate": {"perReplicaPerSecond": 1000}},
            an_observation(
                {Signal.PROMPT_TOKENS: a_signal(300, 100, None), Signal.GENERATION_TOKENS: a_signal(50, 30, None)}
            ),
            480 * 1.25 / 1000,
            (400 + 1000 + 80 + 50) / 1000,
            id="an unseen replica works at its full rate, and generates as much as the busiest",
        ),
    ],
)
def test_an_unseen_replica_may_be_full(
    name: str, signals: dict[str, Any], metrics: MetricsObservation, replicas: float, cautious_replicas: float
) -> None:
    vote = the_vote(name, signals, metrics)
    assert (vote.replicas, vote.cautious_replicas) == (pytest.approx(replicas), pytest.approx(cautious_replicas))


@pytest.mark.parametrize(
    ("waiting", "replicas", "cautious_replicas"),
    [
        pytest.param(a_signal(6.0, 6.0), 3.0, 3.0, id="12 waiting requests at 4 a replica"),
        pytest.param(a_signal(2.0, 1.0, None), 3 * 1.25 / 4, 7 / 4, id="an unseen replica has its share of the queue"),
        pytest.param(a_signal(9.0, 0.0, None), 9 * 1.25 / 4, 18 / 4, id="or as much as the longest of its peers'"),
    ],
)
def test_waiting_requests(waiting: Any, replicas: float, cautious_replicas: float) -> None:
    vote = the_vote("waitingRequests", {"waitingRequests": {"perReplica": 4}}, an_observation({WAITING: waiting}))
    assert (vote.replicas, vote.cautious_replicas) == (pytest.approx(replicas), pytest.approx(cautious_replicas))


@pytest.mark.parametrize(
    ("metrics", "replicas"),
    [
        pytest.param(an_observation(queries={"pendingRequests": 40}), 2.5, id="40 pending at 16 a replica"),
        pytest.param(an_observation(queries={"pendingRequests": 0}), 0.0, id="none pending"),
        pytest.param(an_observation(queries={"pendingRequests": QueryUnknown("empty")}), UNKNOWN, id="an empty answer"),
        pytest.param(an_observation(queries={"pendingRequests": -1}), UNKNOWN, id="a negative number is no quantity"),
        pytest.param(an_observation(queries={"pendingRequests": float("nan")}), UNKNOWN, id="NaN is no quantity"),
        pytest.param(an_observation(queries={"pendingRequests": float("inf")}), UNKNOWN, id="nor is infinity"),
        pytest.param(an_observation(), UNKNOWN, id="not asked yet"),
        pytest.param(a_blackout(), UNKNOWN, id="no answer at all"),
        pytest.param(an_observation(queries={"pendingRequests": 1e308}), 2_147_483_647, id="no end of them is capped"),
    ],
)
def test_pending_requests(metrics: Any, replicas: Any) -> None:
    vote = the_vote("pendingRequests", {"pendingRequests": {"query": "q", "perReplica": 16}}, metrics)
    assert outcome(vote) == replicas
    assert not vote.reads_replicas


@pytest.mark.parametrize(
    ("value", "per_replica", "rounded_up"),
    [
        pytest.param(1.1, 0.1, 11, id="in thousandths 1.1 / 0.1 is 11, in floats it would be 12"),
        pytest.param(0.7, 0.1, 7, id="in thousandths 0.7 / 0.1 is 7"),
        pytest.param(40.001, 10, 5, id="one thousandth too many is one replica more"),
        pytest.param(40.0004, 10, 4, id="less than half a thousandth does not exist"),
        pytest.param(1e308, 0.001, 2_147_483_647, id="replicas end at int32, as in HPA"),
    ],
)
def test_custom_counts_in_thousandths_as_hpa_does(value: float, per_replica: float, rounded_up: int) -> None:
    signals = {"custom": [{"name": "depth", "query": "q", "perReplica": per_replica}]}
    vote = the_vote("custom", signals, an_observation(queries={"custom/depth": value}))
    assert (vote.recommender, vote.rounded_up) == ("custom/depth", rounded_up)


def test_each_custom_query_votes_for_itself() -> None:
    custom = [{"name": name, "query": name, "perReplica": 2} for name in ("a", "b")]
    metrics = an_observation(queries={"custom/a": 6, "custom/b": QueryUnknown("empty")})
    votes = RECOMMENDERS["custom"](a_decision_input(a_policy(signals={"custom": custom}), metrics))
    assert [(vote.recommender, vote.replicas, vote.reason) for vote in votes] == [
        ("custom/a", 3.0, Reason.CUSTOM),
        ("custom/b", None, UNKNOWN),
    ]


@pytest.mark.parametrize("name", RECOMMENDERS)
def test_a_vote_that_the_policy_does_not_use_is_not_cast(name: str) -> None:
    assert RECOMMENDERS[name](a_decision_input(a_policy())) == ()


LEARNED = LearnedCapacity(
    prefill_tokens_per_second=16_000, decode_tokens_per_second=750, tokens_in_flight=54_000, safe_utilization=0.7
)
ARRIVING = {Signal.REQUESTS_ARRIVED: an_even_signal(8, 4), Signal.REQUESTS_ARRIVED_RECENTLY: an_even_signal(12, 4)}
CUSTOM = {"custom": [{"name": "depth", "query": "q", "perReplica": 4}]}
PENDING = {"pendingRequests": {"query": "q", "perReplica": 16}}


def cast(name: str, policy: dict[str, Any], metrics: Any, **more: Any) -> ScalingRecommendation:
    """The one vote by that name; `forecast` is given beside the rest of the input."""
    forecast = more.pop("forecast", None)
    (vote,) = RECOMMENDERS[name](replace(a_decision_input(a_policy(**policy), metrics, **more), forecast=forecast))
    return vote


@pytest.mark.parametrize(
    ("make_vote", "message", "values"),
    [
        pytest.param(
            partial(
                cast,
                "tokensInFlight",
                {"signals": {"tokensInFlight": {}}},
                an_observation({USED: an_even_signal(192_000, 4), WAITING: an_even_signal(12, 4)}),
            ),
            "tokens in flight (213 000 in all, 30 000 is a replica's share) need 7.10",
            {"tokensInFlight": 213_000, "tokensPerReplica": 30_000},
            id="tokens in flight",
        ),
        pytest.param(
            partial(cast, "workRate", {"objectives": {}}, an_observation(ARRIVING), capacity=LEARNED),
            "work rate (5.40 replicas' time: 8 requests a second take 0.500 s of one each at 0.700 a replica) "
            "needs 7.71",
            {"workPerSecondLastMinute": 4.0, "workPerSecondLastHalfMinute": 6.0, "safeUtilization": 0.7},
            id="work rate",
        ),
        pytest.param(
            partial(
                cast, "workRate", {"objectives": {}}, an_observation(prompt_tokens_per_request=None), capacity=LEARNED
            ),
            "work rate (4 replicas' time at 0.700 a replica) needs 5.71",
            {"workPerSecondLastMinute": 4.0, "workPerSecondLastHalfMinute": 4.0, "safeUtilization": 0.7},
            id="work rate by the tokens that are processed",
        ),
        pytest.param(
            partial(
                cast,
                "workRate",
                {"objectives": {}},
                an_observation({signal: an_even_signal(0, 4) for signal in (RUNNING, WAITING, GENERATED)}),
            ),
            "work rate (no requests) needs 0",
            {},
            id="work rate of a pool without any request",
        ),
        pytest.param(
            partial(cast, "tokenRate", {"signals": {"tokenRate": {"perReplicaPerSecond": 4000}}}, an_observation()),
            "token rate (18 400 a second at 4 000 a replica) needs 4.60",
            {"promptTokensPerSecond": 16_000, "generationTokensPerSecond": 2400, "tokensPerSecondPerReplica": 4000},
            id="token rate",
        ),
        pytest.param(
            partial(cast, "kvCache", {"signals": {"kvCache": {"headroomPercent": 20}}}, an_observation()),
            "KV cache (mean use 40 %, at most 80 %) needs 2",
            {"kvCacheUsageSum": 1.6, "kvCacheUsagePerReplica": 0.8},
            id="KV cache",
        ),
        pytest.param(
            partial(
                cast,
                "waitingRequests",
                {"signals": {"waitingRequests": {"perReplica": 4}}},
                an_observation({WAITING: an_even_signal(12, 4)}),
            ),
            "waiting requests (12 at 4 a replica) need 3",
            {"waitingRequests": 12, "waitingRequestsPerReplica": 4},
            id="waiting requests",
        ),
        pytest.param(
            partial(cast, "pendingRequests", {"signals": PENDING}, an_observation(queries={"pendingRequests": 40})),
            "pending requests (40 at 16 a replica) need 2.50",
            {"pendingRequests": 40, "pendingRequestsPerReplica": 16},
            id="pending requests",
        ),
        pytest.param(
            partial(cast, "custom", {"signals": CUSTOM}, an_observation(queries={"custom/depth": 6})),
            "depth (6 at 4 a replica) needs 1.50",
            {"value": 6, "valuePerReplica": 4},
            id="a user's own query",
        ),
        pytest.param(
            partial(
                cast,
                "forecast",
                {
                    "signals": {"tokenRate": {"perReplicaPerSecond": 5000}},
                    "forecast": {"mode": "Active", "quantilePercent": 50},
                },
                None,
                forecast=replace(RISING, origin_seconds=NOW - 60),
            ),
            "the forecast for the next 6 min (50 % quantile 30 000 tokens a second at 5 000 a replica) needs 6",
            {
                "tokensPerSecondExpected": 30_000,
                "tokensPerSecondPerReplica": 5000,
                "quantileLevel": 0.5,
                "aheadSeconds": 360,
                "untilSeconds": 420,
            },
            id="forecast",
        ),
    ],
)
def test_what_a_vote_says_and_holds(
    make_vote: Callable[[], ScalingRecommendation], message: str, values: dict[str, float]
) -> None:
    vote = make_vote()
    assert (vote.message, vote.values) == (message, pytest.approx(values))
    name = vote.recommender.partition("/")[0]
    assert vote.reason.lower() == name.lower()
    assert vote.reads_replicas == (name not in ("pendingRequests", "custom", "forecast"))
    assert (vote.is_forecast, vote.is_advice, vote.is_exact) == (name == "forecast", False, False)


NOTHING_EXPOSED = MetricsObservation({}, {}, 4, 4)
NOBODY_SEEN = an_observation(
    {signal: a_signal(None, None, None, None) for signal in an_observation().signals},
    queries={name: QueryUnknown("it is stale") for name in ("pendingRequests", "custom/depth")},
)
SILENT = "Prometheus does not answer"


@pytest.mark.parametrize(
    ("name", "policy", "blackout", "nothing_exposed", "nobody_seen"),
    [
        pytest.param(
            "tokensInFlight",
            {"signals": {"tokensInFlight": {}}},
            SILENT,
            "no perReplica is set and the engine exposes no kvCacheCapacityTokens",
            "no perReplica is set and kvCacheCapacityTokens is unknown for all 4 ready replicas",
            id="tokens in flight",
        ),
        pytest.param(
            "workRate",
            {"objectives": {}},
            SILENT,
            "nothing can be learned of a replica: the engine exposes no runningRequests",
            "the capacity of a replica is not learned yet",
            id="work rate",
        ),
        pytest.param(
            "tokenRate",
            {"signals": {"tokenRate": {"perReplicaPerSecond": 4000}}},
            SILENT,
            "the engine exposes no promptTokensTotal",
            "promptTokensTotal is unknown for all 4 ready replicas",
            id="token rate",
        ),
        pytest.param(
            "kvCache",
            {"signals": {"kvCache": {}}},
            SILENT,
            "the engine exposes no kvCacheUsage",
            "kvCacheUsage is unknown for all 4 ready replicas",
            id="KV cache",
        ),
        pytest.param(
            "waitingRequests",
            {"signals": {"waitingRequests": {"perReplica": 4}}},
            SILENT,
            "the engine exposes no waitingRequests",
            "waitingRequests is unknown for all 4 ready replicas",
            id="waiting requests",
        ),
        pytest.param(
            "pendingRequests",
            {"signals": PENDING},
            SILENT,
            "the query has not been asked yet",
            "it is stale",
            id="pending requests",
        ),
        pytest.param(
            "custom",
            {"signals": CUSTOM},
            SILENT,
            "the query has not been asked yet",
            "it is stale",
            id="a user's own query",
        ),
    ],
)
def test_why_there_is_no_vote(
    name: str, policy: dict[str, Any], blackout: str, nothing_exposed: str, nobody_seen: str
) -> None:
    its_name = "custom/depth" if name == "custom" else name
    for metrics, why in ((a_blackout(), blackout), (NOTHING_EXPOSED, nothing_exposed), (NOBODY_SEEN, nobody_seen)):
        vote = cast(name, policy, metrics)
        assert (vote.recommender, vote.replicas, vote.message, vote.values) == (its_name, None, why, {})
        assert vote.reads_replicas == (name not in ("pendingRequests", "custom"))


@pytest.mark.parametrize(
    ("name", "policy", "metrics", "message"),
    [
        pytest.param(
            "tokensInFlight",
            {"signals": {"tokensInFlight": {}}},
            an_observation({CAPACITY: an_even_signal(0, 4)}),
            "no perReplica is set and the engine reports a KV cache of no tokens",
            id="a KV cache of no tokens",
        ),
        pytest.param(
            "tokensInFlight",
            {"signals": {"tokensInFlight": {}}},
            without(an_observation(prompt_tokens_per_request=None), USED),
            "the tokens of a request are unknown: too few requests have finished",
            id="requests of unknown size in engines without KV geometry",
        ),
        pytest.param(
            "tokensInFlight",
            {"signals": {"tokensInFlight": {}}},
            an_observation(
                {WAITING: an_even_signal(4, 4), RUNNING: an_even_signal(0, 4)}, generation_tokens_per_request=None
            ),
            "the tokens of a waiting request are unknown: too few have finished",
            id="waiting requests of unknown size",
        ),
        pytest.param(
            "tokenRate",
            {"signals": {"tokenRate": {"perReplicaPerSecond": 4000}}},
            without(an_observation(), GENERATED),
            "the engine exposes no generationTokensTotal",
            id="an engine that counts prompts alone",
        ),
        pytest.param(
            "workRate",
            {"objectives": {}},
            without(an_observation(), GENERATED),
            "nothing can be learned of a replica: the engine exposes no generationTokensTotal",
            id="nothing to learn from",
        ),
        pytest.param(
            "pendingRequests",
            {"signals": PENDING},
            an_observation(queries={"pendingRequests": -1}),
            "the query gave -1.0, which is no quantity of work",
            id="a negative number of requests",
        ),
    ],
)
def test_what_is_missing_for_a_vote(name: str, policy: dict[str, Any], metrics: Any, message: str) -> None:
    vote = cast(name, policy, metrics)
    assert (vote.recommender, vote.replicas, vote.message) == (name, None, message)


@pytest.mark.parametrize("total", [float("nan"), float("inf"), float("-inf"), -5.0])
@pytest.mark.parametrize(
    ("vote", "parameters", "signal"),
    [
        ("tokensInFlight", {"tokensInFlight": {}}, USED),
        ("tokenRate", {"tokenRate": {"perReplicaPerSecond": 5000}}, Signal.PROMPT_TOKENS),
        ("kvCache", {"kvCache": {}}, Signal.KV_CACHE_USAGE),
        ("waitingRequests", {"waitingRequests": {"perReplica": 4}}, WAITING),
    ],
)
def test_a_sum_that_is_no_quantity_is_unknown_and_lowers_nothing(
    vote: str, parameters: dict[str, Any], signal: Signal, total: float
) -> None:
    broken = replace(an_even_signal(0.0, 4), total=total, maximum=total)
    policy = a_policy(signals={**parameters, "custom": [{"name": "one", "query": "q", "perReplica": 1}]})
    metrics = an_observation({signal: broken}, queries={"custom/one": 1.0})
    assert outcome(the_vote(vote, parameters, metrics)) is UNKNOWN
    decision = decide(a_decision_input(policy, metrics, replicas=4))
    assert (decision.desired_replicas, decision.reason) == (4, UNKNOWN)
