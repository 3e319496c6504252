"""What a request for a metric means."""

from __future__ import annotations

import pytest

from autoscaler.external_metrics.selector import Selector, parse_selector
from autoscaler.external_metrics.values import (
    MAXIMUM_AGE_SECONDS,
    MetricUnavailable,
    MetricValue,
    NotKnownYet,
    PoolMetrics,
    ProblemKind,
    read_metric,
)
from tests.builders import NOW
from tests.fakes.metric_pools import FakePools, a_pool

DESIRED = "tokenscaler-desired-replicas"


def read(*pools: PoolMetrics, metric: str = DESIRED, selector: str = "", namespace: str = "inference"):
    parsed = parse_selector(selector)
    assert isinstance(parsed, Selector)
    return read_metric(FakePools(*pools), namespace, metric, parsed, NOW)


def test_gives_the_value_with_its_labels_and_its_own_time() -> None:
    labels = {"scaler": "llama", "target": "vllm-llama", "engine": "vllm"}
    assert read(a_pool()) == (MetricValue(DESIRED, labels, 7000, NOW - 5),)


def test_gives_one_value_for_each_selected_pool() -> None:
    pools = (a_pool("a"), a_pool("b", engine="sglang"), a_pool("c"), a_pool("d", mode="Scale"))
    found = read(*pools, selector="engine=vllm")
    assert [value.labels["scaler"] for value in found] == ["a", "c"]


def test_a_pool_without_the_metric_adds_nothing_to_the_others() -> None:
    found = read(a_pool("a", metrics={"custom-depth": "3"}), a_pool("b"), metric="custom-depth")
    assert [value.milli_value for value in found] == [3000]


@pytest.mark.parametrize(
    ("pools", "request_for", "kind", "message"),
    [
        pytest.param([a_pool()], {"metric": "cpu"}, ProblemKind.NOT_FOUND, "there is no metric cpu; ", id="no metric"),
        pytest.param([], {}, ProblemKind.NOT_FOUND, "namespace inference has no InferenceScaler", id="no pool"),
        pytest.param(
            [a_pool(namespace="other")],
            {},
            ProblemKind.NOT_FOUND,
            "namespace inference has no InferenceScaler",
            id="a pool of another namespace is not to be seen",
        ),
        pytest.param(
            [a_pool(mode="Scale")],
            {},
            ProblemKind.NOT_FOUND,
            "no InferenceScaler of namespace inference is in mode ExternalMetric: llama is in mode Scale",
            id="a pool that we scale ourselves is not scaled by others",
        ),
        pytest.param(
            [a_pool()],
            {"selector": "scaler=lama"},
            ProblemKind.NOT_FOUND,
            "no InferenceScaler of namespace inference matches the selector; "
            "there is scaler=llama,target=vllm-llama,engine=vllm",
            id="a selector that matches nothing says what there is",
        ),
        pytest.param(
            [a_pool()],
            {"metric": "pending-requests"},
            ProblemKind.NOT_FOUND,
            "InferenceScaler inference/llama has no pending-requests: neither its engine nor its policy",
            id="a signal that the pool does not have",
        ),
        pytest.param(
            [a_pool(metrics={"waiting-requests": None})],
            {"metric": "waiting-requests"},
            ProblemKind.UNAVAILABLE,
            "waiting-requests of InferenceScaler inference/llama is not known: it is too dark",
            id="an unknown value is an error",
        ),
        pytest.param(
            [a_pool("a"), a_pool("b", metrics={"waiting-requests": None})],
            {"metric": "waiting-requests"},
            ProblemKind.UNAVAILABLE,
            "waiting-requests of InferenceScaler inference/b is not known: it is too dark",
            id="one unknown value spoils the sum",
        ),
        pytest.param(
            [a_pool(decided_seconds_ago=None)],
            {},
            ProblemKind.UNAVAILABLE,
            "nothing has been decided for InferenceScaler inference/llama yet",
            id="nothing has been decided yet",
        ),
        pytest.param(
            [a_pool(decided_seconds_ago=MAXIMUM_AGE_SECONDS + 1)],
            {},
            ProblemKind.UNAVAILABLE,
            "nothing has been decided for InferenceScaler inference/llama since 2030-03-17T17:44:39Z",
            id="an aged decision is an error",
        ),
        pytest.param(
            [a_pool(decided_seconds_ago=-(MAXIMUM_AGE_SECONDS + 1))],
            {},
            ProblemKind.UNAVAILABLE,
            "the last decision for InferenceScaler inference/llama bears a time to come, 2030-03-17T17:48:41Z",
            id="a decision that a clock ahead of ours has made would not age, and is an error",
        ),
    ],
)
def test_says_why_there_is_no_value(pools, request_for, kind: ProblemKind, message: str) -> None:
    found = read(*pools, **request_for)
    assert isinstance(found, MetricUnavailable)
    assert found.kind is kind
    assert found.message.startswith(message)


def test_a_clock_that_is_a_little_ahead_does_no_harm() -> None:
    assert read(a_pool(decided_seconds_ago=-MAXIMUM_AGE_SECONDS))


def test_a_decision_of_the_last_two_minutes_counts() -> None:
    assert isinstance(read(a_pool(decided_seconds_ago=MAXIMUM_AGE_SECONDS)), tuple)


def test_before_the_pools_are_read_nothing_is_known() -> None:
    pools = FakePools(a_pool())
    pools.not_known_yet = NotKnownYet("the watch has not been filled yet")
    found = read_metric(pools, "inference", DESIRED, Selector(), NOW)
    assert found == MetricUnavailable(ProblemKind.UNAVAILABLE, "the watch has not been filled yet")
