"""Uneven gaps between tokens, and when they are a reason for more replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.decision import decide
from policies.history import ScalingHistory
from policies.observation import MetricsObservation, PoolLatency, ReplicaCounts
from policies.reasons import Reason
from policies.recommenders.inter_token_latency_divergence import recommend_inter_token_latency_divergence
from policies.signals import Signal
from tests.builders import (
    NOW,
    a_blackout,
    a_decision_input,
    a_history,
    a_policy,
    an_even_signal,
    an_observation,
    without,
)

POLICY = a_policy(signals={"interTokenLatencyDivergence": {}}, objectives={})
MEASURED_ONCE = a_history(uneven_measurements=1, latency_measured_at_seconds=NOW - 60.0)
BELIEVED = a_history(uneven_measurements=2, latency_measured_at_seconds=NOW - 60.0)
NONE, UNKNOWN, VOTES = Reason.NO_DIVERGENCE, Reason.SIGNAL_UNKNOWN, Reason.INTER_TOKEN_LATENCY_DIVERGENCE

QUEUE = {Signal.WAITING_REQUESTS: an_even_signal(4.0, 4)}
FULL = {Signal.KV_CACHE_USAGE: an_even_signal(2.4, 4)}
PREEMPTED = {Signal.PREEMPTIONS: an_even_signal(0.1, 4)}
NO_LOAD: dict[Signal, Any] = {}


def seen(
    signals: dict[Signal, Any] | None = None,
    *,
    ratio: float = 3.6,
    median: float = 0.030,
    missed: float | None = 0.01,
    floor: float | None = None,
    measured_at: float = NOW,
) -> MetricsObservation:
    """A pool of four with gaps of 30 ms at the median, a queue, and one request in a hundred too slow."""
    latency = PoolLatency(
        inter_token_latency_p50_seconds=median,
        inter_token_latency_p99_seconds=median * ratio,
        inter_token_latency_evenness_floor=floor,
        outside_objectives_share=missed,
        measured_at_seconds=measured_at,
    )
    return an_observation(QUEUE if signals is None else signals, latency=latency)


@pytest.mark.parametrize(
    ("metrics", "history", "replicas", "reason"),
    [
        pytest.param(seen(), BELIEVED, 4 * 1.12, VOTES, id="four replicas, a ratio of 3.6 and a queue"),
        pytest.param(seen(FULL), BELIEVED, 4 * 1.12, VOTES, id="no queue, but caches at 60 %"),
        pytest.param(seen(PREEMPTED), BELIEVED, 4 * 1.12, VOTES, id="requests are preempted"),
        pytest.param(
            seen({Signal.WAITING_REQUESTS: an_even_signal(1.0, 4)}), BELIEVED, 4 * 1.12, VOTES, id="one request waits"
        ),
        pytest.param(seen(ratio=3.0), MEASURED_ONCE, None, NONE, id="exactly the ratio is even enough"),
        pytest.param(seen(median=0.025), BELIEVED, 4 * 1.12, VOTES, id="a median of 25 ms can be told"),
        pytest.param(seen(floor=3.5), BELIEVED, 4 * 1.12, VOTES, id="more than what these buckets make of even gaps"),
        pytest.param(seen(floor=3.6), BELIEVED, None, NONE, id="exactly what they make of even gaps"),
        pytest.param(
            without(seen(), Signal.GENERATION_TOKENS), BELIEVED, 4 * 1.12, VOTES, id="nobody counts the tokens"
        ),
        pytest.param(
            seen({**QUEUE, Signal.GENERATION_TOKENS: an_even_signal(200.0 / 120.0, 4)}),
            BELIEVED,
            4 * 1.12,
            VOTES,
            id="two hundred gaps in two minutes are enough",
        ),
        pytest.param(seen(ratio=3.1), BELIEVED, 4 * (1 + 0.31 / 3), VOTES, id="a little above the ratio"),
        pytest.param(seen(ratio=90.0), BELIEVED, 4 * 1.2, VOTES, id="however uneven, a fifth more at most"),
        pytest.param(seen(ratio=2.3), BELIEVED, 4 * (1 + 0.23 / 3), VOTES, id="once believed it lasts down to 2.2"),
        pytest.param(seen(ratio=2.1), BELIEVED, None, NONE, id="below that it is over"),
        pytest.param(seen(), MEASURED_ONCE, 4 * 1.12, VOTES, id="the second measurement in a row"),
        pytest.param(seen(), a_history(), None, NONE, id="the first one may be one long prompt"),
        pytest.param(
            seen(measured_at=NOW - 60.0), MEASURED_ONCE, None, NONE, id="the same measurement again is no second one"
        ),
        pytest.param(seen(ratio=2.9), MEASURED_ONCE, None, NONE, id="even gaps in between begin anew"),
        pytest.param(seen(median=0.013), BELIEVED, None, NONE, id="a median below 25 ms is read off coarse buckets"),
        pytest.param(seen(floor=3.7), BELIEVED, None, NONE, id="even gaps would look like that in these buckets"),
        pytest.param(
            seen({**QUEUE, Signal.GENERATION_TOKENS: an_even_signal(1.6, 4)}), BELIEVED, None, NONE, id="too few gaps"
        ),
        pytest.param(a_blackout(), BELIEVED, None, UNKNOWN, id="nothing is seen"),
        pytest.param(an_observation(QUEUE), BELIEVED, None, UNKNOWN, id="the gaps are no longer measured"),
        pytest.param(seen(missed=None), BELIEVED, None, UNKNOWN, id="nobody knows whether objectives are missed"),
        pytest.param(
            seen({Signal.WAITING_REQUESTS: replace(an_even_signal(0.0, 4), fresh_replicas=0, unknown_replicas=4)}),
            BELIEVED,
            None,
            UNKNOWN,
            id="nobody knows whether requests wait",
        ),
    ],
)
def test_the_vote(metrics: MetricsObservation, history: ScalingHistory, replicas: float | None, reason: Reason) -> None:
    (vote,) = recommend_inter_token_latency_divergence(a_decision_input(POLICY, metrics, history=history))
    assert vote.recommender == "interTokenLatencyDivergence"
    assert (vote.replicas, vote.reason, vote.is_advice) == (replicas and pytest.approx(replicas), reason, False)


@pytest.mark.parametrize(
    ("metrics", "message", "values"),
    [
        pytest.param(
            seen(),
            "gaps between tokens (p99 is 3.60 times the median; 4 waiting, 1 % outside the objectives) need 4.48",
            {"gapRatio": 3.6, "readyReplicas": 4.0, "growth": 0.12},
            id="a vote",
        ),
        pytest.param(
            seen(PREEMPTED),
            "gaps between tokens (p99 is 3.60 times the median; 0.100 preempted a second, 1 % outside the objectives) "
            "need 4.48",
            {"gapRatio": 3.6, "readyReplicas": 4.0, "growth": 0.12},
            id="a vote because of preemptions",
        ),
        pytest.param(
            an_observation(QUEUE), "the gaps between tokens are no longer known", {}, id="believed, and not measured"
        ),
        pytest.param(
            seen(ratio=2.1), "gaps between tokens are even enough: p99 is 2.10 times the median", {}, id="even gaps"
        ),
        pytest.param(
            seen(median=0.013),
            "the gaps between tokens are not measured, or too short or few to tell",
            {},
            id="gaps of which nothing can be told",
        ),
        pytest.param(
            seen(missed=None), "how many requests miss their objectives is not known", {}, id="unknown objectives"
        ),
        pytest.param(a_blackout("no route to host"), "no route to host", {}, id="nothing is seen"),
    ],
)
def test_what_it_says(metrics: MetricsObservation, message: str, values: dict[str, float]) -> None:
    (vote,) = recommend_inter_token_latency_divergence(a_decision_input(POLICY, metrics, history=BELIEVED))
    assert (vote.message, vote.values) == (message, pytest.approx(values))


@pytest.mark.parametrize(
    ("policy", "metrics"),
    [
        pytest.param(POLICY, seen(NO_LOAD), id="nothing waits and the caches are half empty"),
        pytest.param(POLICY, seen(missed=0.005), id="all but one request in two hundred are fast enough"),
        pytest.param(
            a_policy(signals={"interTokenLatencyDivergence": {}, "kvCache": {}}), seen(), id="there are no objectives"
        ),
        pytest.param(
            POLICY,
            without(seen(NO_LOAD), Signal.PREEMPTIONS, Signal.KV_CACHE_USAGE, Signal.WAITING_REQUESTS),
            id="the engine shows no load at all",
        ),
    ],
)
def test_what_nothing_else_goes_with_is_recorded_as_advice(policy: Any, metrics: MetricsObservation) -> None:
    decision = decide(a_decision_input(policy, metrics, history=BELIEVED))
    vote = next(each for each in decision.recommendations if each.recommender == "interTokenLatencyDivergence")
    assert vote.is_advice
    assert vote.message == "gaps between tokens (p99 is 3.60 times the median; nothing else goes with it) need 4.48"
    assert decision.desired_replicas <= 4


def test_it_takes_two_measurements_and_is_told_with_what_goes_with_it() -> None:
    history, messages = a_history(), []
    for minute in range(3):
        now_seconds = NOW + 60.0 * minute
        metrics = seen({**QUEUE, **FULL}, measured_at=now_seconds)
        decision = decide(a_decision_input(POLICY, metrics, history=history, now_seconds=now_seconds))
        history = decision.next_history
        messages.append((decision.desired_replicas, decision.message.partition(";")[0]))
    assert messages[0] == (4, "4: tokens in flight (103 000 in all, 30 000 is a replica's share) need 3.43")
    assert decision.message.startswith(
        "5: gaps between tokens (p99 is 3.60 times the median; KV cache 60 % full, 4 waiting, 1 % outside the "
        "objectives) need 4.48; "
    )
    assert messages[1] == messages[2]


@pytest.mark.parametrize(
    ("metrics", "history", "measurements", "measured_at"),
    [
        pytest.param(seen(), BELIEVED, 2, NOW, id="more than two in a row are two"),
        pytest.param(seen(), MEASURED_ONCE, 2, NOW, id="the second"),
        pytest.param(seen(ratio=2.9), BELIEVED, 2, NOW, id="between the lines nothing changes"),
        pytest.param(seen(ratio=2.2), BELIEVED, 2, NOW, id="2.2 is still between"),
        pytest.param(seen(ratio=2.9), MEASURED_ONCE, 0, NOW, id="what is not believed yet begins anew"),
        pytest.param(seen(median=0.013), BELIEVED, 0, NOW, id="a measurement that tells nothing is taken note of"),
        pytest.param(seen(measured_at=NOW - 60.0), MEASURED_ONCE, 1, NOW - 60.0, id="the same measurement again"),
        pytest.param(an_observation(QUEUE), BELIEVED, 2, NOW - 60.0, id="no measurement"),
        pytest.param(a_blackout(), BELIEVED, 2, NOW - 60.0, id="nothing is seen"),
    ],
)
def test_what_is_remembered_of_a_measurement(
    metrics: MetricsObservation, history: ScalingHistory, measurements: int, measured_at: float
) -> None:
    after = decide(a_decision_input(POLICY, metrics, history=history)).next_history
    assert (after.uneven_measurements, after.latency_measured_at_seconds) == (measurements, measured_at)


def test_without_the_parameter_nothing_is_remembered() -> None:
    policy = a_policy(signals={"kvCache": {}}, objectives={})
    history = decide(a_decision_input(policy, seen(), history=BELIEVED)).next_history
    assert (history.uneven_measurements, history.latency_measured_at_seconds) == (0, NOW - 60.0)


def test_only_the_ready_replicas_are_multiplied() -> None:

    counts = ReplicaCounts(6, 6, 4, starting=2)
    decision_input = a_decision_input(POLICY, seen(ratio=90.0), replicas=counts, history=BELIEVED)
    decision = decide(decision_input)
    assert decision.recommendations[-1].replicas == pytest.approx(4.8)
    assert decision.desired_replicas == 6
