"""The whole chain, from a Prometheus that misbehaves over real HTTP to what is known of a pool."""

from __future__ import annotations

import pytest

from autoscaler.clock import SystemClock
from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.prometheus_metrics import PrometheusMetricsObserver
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import PrometheusSource
from policies.observation import MetricsObservation, ObservationUnavailable, QueryUnknown, QueryValue
from policies.reasons import Reason
from policies.signals import Signal
from tests.fakes.prometheus_server import EVALUATED_AT, FakePrometheus, Reply, rejection, vector

POD = {"namespace": "prod", "pod": "vllm-0"}
POOL = PoolQuery(
    ("prod", "chat"), "vllm", "vllm", (LivePod("vllm-0", "vllm-0", True, 0.0),), {"pending": "gateway_pending"}
)


def healthy(promql: str, warnings: tuple[str, ...] = ()) -> Reply:
    """Every query of the plan answers for the one pod there is."""
    if "tokenscaler_query" in promql or promql == "gateway_pending":
        return vector([({"tokenscaler_query": "0"}, 5.0)], warnings)
    number = EVALUATED_AT if "timestamp(" in promql else 2.0
    return vector([({**POD, "engine": "0", "kv_cache_size_tokens": "1000"}, number)], warnings)


def observe(fake: FakePrometheus) -> MetricsObservation | ObservationUnavailable:
    source = PrometheusSource(
        PrometheusSettings(url=fake.url, read_timeout_seconds=0.5, round_seconds=1.0), SystemClock()
    )
    found = PrometheusMetricsObserver(source, QuerySettings()).observe_metrics([POOL], EVALUATED_AT)[POOL.key]
    source.close()
    return found


def test_a_healthy_server() -> None:
    with FakePrometheus(healthy) as fake:
        found = observe(fake)
    assert isinstance(found, MetricsObservation)
    assert found.signals[Signal.RUNNING_REQUESTS].total == 2.0
    assert found.queries == {"pending": QueryValue(5.0, 0.0)}
    assert len(fake.requests) == 13, "12 for the engines of all pools, one for all users' queries"


@pytest.mark.parametrize(
    ("reply", "reason", "words"),
    [
        pytest.param(
            rejection(503, "unavailable", "starting up"),
            Reason.PROMETHEUS_REJECTED,
            "503 unavailable: starting up",
            id="503 to everything",
        ),
        pytest.param(
            rejection(422, "execution", "too many samples"),
            Reason.PROMETHEUS_REJECTED,
            "too many samples",
            id="422 to everything",
        ),
        pytest.param(Reply(200, b"<html>Sign in</html>"), Reason.PROMETHEUS_BAD_ANSWER, "HTML", id="a login page"),
        pytest.param(Reply(200, b'{"status":'), Reason.PROMETHEUS_BAD_ANSWER, "breaks off", id="truncated JSON"),
        pytest.param(Reply(delay_seconds=2), Reason.PROMETHEUS_TIMEOUT, "timed out", id="no answer"),
    ],
)
def test_a_server_that_answers_nothing_makes_the_pool_unavailable(reply: Reply, reason: Reason, words: str) -> None:
    with FakePrometheus(lambda promql: reply) as fake:
        found = observe(fake)
    assert isinstance(found, ObservationUnavailable)
    assert (found.reason, words in found.message) == (reason, True), found


def test_warnings_make_users_queries_unknown_and_are_passed_on() -> None:
    with FakePrometheus(lambda promql: healthy(promql, ("store 2 is down",))) as fake:
        found = observe(fake)
    assert isinstance(found, MetricsObservation)
    assert found.signals[Signal.RUNNING_REQUESTS].total == 2.0
    assert found.queries == {"pending": QueryUnknown("Prometheus gave a partial answer: store 2 is down")}
    assert "query runningRequests: store 2 is down" in found.warnings


def test_a_partial_answer_without_our_pod_makes_it_unknown_even_where_it_would_be_absent() -> None:
    def partial(promql: str) -> Reply:
        whole = healthy(promql)
        return vector([], ("store 2 is down",)) if "num_preemptions_total" in promql else whole

    with FakePrometheus(partial) as fake:
        source = PrometheusSource(PrometheusSettings(url=fake.url), SystemClock())
        observer = PrometheusMetricsObserver(source, QuerySettings(maximum_queries_per_tick=20))
        found = observer.observe_metrics([POOL], EVALUATED_AT)[POOL.key]
        source.close()
    assert isinstance(found, MetricsObservation)
    assert found.signals[Signal.PREEMPTIONS].unknown_replicas == 1
