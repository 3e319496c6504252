"""What a decision publishes for others to scale by."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.status import InferenceScalerStatus
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.published_metrics import METRIC_NAMES, is_metric_name, publish
from autoscaler.controller.status import StatusReporter, next_status
from policies.observation import MetricsObservation, ObservationUnavailable, PoolLatency, QueryUnknown, QueryValue
from policies.signals import Signal
from tests.builders import NOW, a_blackout, a_signal, an_observation, without
from tests.fakes.ports import FakeStatusSink
from tests.pool_builders import a_decision_report, a_scaler

AT_NOW = "2030-03-17T17:46:40Z"
FIVE_SECONDS_BEFORE = "2030-03-17T17:46:35Z"


def published(
    metrics: MetricsObservation | ObservationUnavailable | None = None, **signals: Any
) -> dict[str, tuple[str | None, str, str]]:
    """Value, problem and time by name."""
    scaler = a_scaler(mode="ExternalMetric", signals={"waitingRequests": {"perReplica": 10}, **signals})
    document = publish(a_decision_report(scaler=scaler, metrics=metrics or an_observation()))
    assert document.decided_at == AT_NOW
    return {each.name: (each.value, each.problem, each.time) for each in document.values}


def test_publishes_the_decided_count_with_the_time_of_the_decision() -> None:
    scaler = a_scaler(mode="ExternalMetric")
    (desired, *_) = publish(a_decision_report(scaler=scaler, waiting=75.0)).values
    assert (desired.name, desired.value, desired.time) == ("tokenscaler-desired-replicas", "8", AT_NOW)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param("waiting-requests", "0", id="an empty queue is a true zero"),
        pytest.param("running-requests", "40", id="requests are summed"),
        pytest.param("kv-cache-usage", "400m", id="shares are averaged"),
        pytest.param("kv-cache-used-tokens", "96k", id="tokens are summed"),
        pytest.param("kv-cache-capacity-tokens", "240k", id="capacity is summed"),
        pytest.param("prompt-tokens-per-second", "16k", id="rates are summed"),
        pytest.param("generation-tokens-per-second", "2400", id="also of generated tokens"),
        pytest.param("finished-requests-per-second", "8", id="also of finished requests"),
        pytest.param("tokens-in-flight", "96k", id="tokens in flight need no vote in the policy"),
        pytest.param("token-rate", "18400", id="the token rate needs none either"),
        pytest.param("prompt-tokens-per-request", "2k", id="means over requests"),
    ],
)
def test_publishes_signals_with_their_samples_time(name: str, value: str) -> None:
    found, problem, time = published()[name]
    assert (found, problem) == (value, "")
    assert time == (AT_NOW if name.endswith("per-request") else FIVE_SECONDS_BEFORE)


def test_publishes_latencies_where_enough_requests_have_finished() -> None:
    latency = PoolLatency(time_to_first_token_p99_seconds=0.1812)
    found = published(an_observation(latency=latency))
    assert found["time-to-first-token-p99-seconds"] == ("182m", "", AT_NOW)
    assert found["inter-token-latency-p99-seconds"][0] is None
    assert "too few requests" in found["inter-token-latency-p99-seconds"][1]


def test_leaves_out_what_the_engine_does_not_have() -> None:
    found = published(without(an_observation(), Signal.KV_CACHE_USAGE))
    assert "kv-cache-usage" not in found
    assert "custom-depth" not in found
    assert "pending-requests" not in found


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        pytest.param(a_blackout("Prometheus is down"), "Prometheus is down", id="nothing is seen at all"),
        pytest.param(
            an_observation({Signal.WAITING_REQUESTS: a_signal(1.0, 2.0, None, 1.0)}),
            "only 3 of 4 ready replicas have fresh samples",
            id="one replica in four is not seen",
        ),
        pytest.param(
            an_observation({Signal.WAITING_REQUESTS: a_signal(1.0, 2.0, 1.0, 1.0, held=1)}),
            "only 3 of 4 ready replicas have fresh samples",
            id="one replica in four is held",
        ),
        pytest.param(
            an_observation({Signal.WAITING_REQUESTS: a_signal(None, None, None, None)}),
            "waitingRequests is unknown for all 4 ready replicas",
            id="no replica is seen",
        ),
        pytest.param(
            an_observation({Signal.WAITING_REQUESTS: a_signal()}),
            "no replica is ready",
            id="there is no replica",
        ),
    ],
)
@pytest.mark.parametrize("name", ["waiting-requests", "tokens-in-flight"])
def test_unknown_is_a_problem_and_never_a_value(
    metrics: MetricsObservation | ObservationUnavailable, problem: str, name: str
) -> None:
    value, found, _ = published(metrics)[name]
    assert value is None
    assert problem in found


def test_one_replica_in_twenty_is_no_problem_and_stands_at_the_mean_of_the_others() -> None:
    waiting = a_signal(*[10.0] * 19, None)
    found = published(an_observation({Signal.WAITING_REQUESTS: waiting}, ready=20))
    assert found["waiting-requests"][0] == "200"


def test_the_decided_count_is_published_in_the_dark_too() -> None:
    found = published(a_blackout())
    assert found["tokenscaler-desired-replicas"] == ("4", "", AT_NOW)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(QueryValue(12.5, 5.0), ("12500m", "", FIVE_SECONDS_BEFORE), id="with the time of its samples"),
        pytest.param(QueryUnknown("no series"), (None, "no series", AT_NOW), id="no answer is a problem"),
    ],
)
def test_publishes_the_users_own_queries(answer: QueryValue | QueryUnknown, expected: tuple[Any, ...]) -> None:
    metrics = an_observation(queries={"custom/depth": answer, "pendingRequests": answer})
    found = published(
        metrics,
        custom=[{"name": "depth", "query": "sum(depth)", "perReplica": 1}],
        pendingRequests={"query": "sum(pending)", "perReplica": 1},
    )
    assert found["custom-depth"] == expected
    assert found["pending-requests"] == expected


def test_every_published_name_can_be_asked_for() -> None:
    assert set(published()) <= set(METRIC_NAMES)
    assert all(map(is_metric_name, [*METRIC_NAMES, "custom-x"]))
    assert not any(map(is_metric_name, ["custom-", "cpu", ""]))


def test_the_time_of_a_decision_is_now() -> None:
    assert publish(a_decision_report(now_seconds=NOW + 60)).decided_at == "2030-03-17T17:47:40Z"


def writes_after(*ticks: Decided) -> list[int]:
    """How many statuses had been written after each tick."""
    sink, records = FakeStatusSink(), LatestRecords(None)
    reporter, counts = StatusReporter(sink, records), []
    for report in ticks:
        records.report([report])
        reporter.report([report])
        counts.append(len(sink.written))
    return counts


def a_tick(seconds: float, waiting: float = 40.0, mode: str = "ExternalMetric") -> Decided:
    return a_decision_report(scaler=a_scaler(mode=mode), waiting=waiting, now_seconds=NOW + seconds)


@pytest.mark.parametrize(
    ("ticks", "writes"),
    [
        pytest.param([a_tick(0), a_tick(15), a_tick(30)], [1, 2, 3], id="every tick of 15 s, as time is published too"),
        pytest.param([a_tick(at) for at in range(0, 16, 1)], [1] * 14 + [2] * 2, id="no more often than every 14 s"),
        pytest.param([a_tick(0), a_tick(-3600), a_tick(-3599)], [1, 2, 2], id="at once where the clock was set back"),
        pytest.param([a_tick(0), a_tick(1, waiting=80.0)], [1, 2], id="another count at once"),
        pytest.param([a_tick(0, mode="Scale"), a_tick(15, mode="Scale")], [1, 1], id="nothing in another mode"),
        pytest.param([a_tick(0, mode="Scale"), a_tick(1)], [1, 2], id="at once where the mode has changed"),
        pytest.param([a_tick(0), a_tick(1, mode="Scale")], [1, 2], id="and where it has changed back"),
    ],
)
def test_what_others_serve_is_written_often_enough(ticks: list[Decided], writes: list[int]) -> None:
    assert writes_after(*ticks) == writes


def test_the_status_holds_what_is_served_only_in_this_mode() -> None:
    served = next_status(InferenceScalerStatus(), a_tick(0))
    assert served.external_metrics == publish(a_tick(0))
    assert next_status(served, a_tick(1, mode="Scale")).external_metrics is None
