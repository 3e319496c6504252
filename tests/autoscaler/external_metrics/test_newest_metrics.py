"""Own decisions and statuses of others: the newer counts."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.published_metrics import publish
from autoscaler.external_metrics.newest_metrics import NewestMetrics
from autoscaler.external_metrics.selector import Selector
from autoscaler.external_metrics.status_metrics import StatusMetrics
from autoscaler.external_metrics.values import MetricUnavailable, NotKnownYet, read_metric
from tests.builders import NOW
from tests.pool_builders import a_decision_report, a_scaler, a_scaler_document, an_unobserved_report

DESIRED = "tokenscaler-desired-replicas"


def a_scaler_of(mode: str = "ExternalMetric") -> InferenceScaler:
    return a_scaler(mode=mode)


def decided(replicas: int, seconds: float = 0.0, mode: str = "ExternalMetric") -> Decided:
    """A decision for so many replicas, made so long after NOW."""
    return a_decision_report(scaler=a_scaler_of(mode), waiting=replicas * 10.0, now_seconds=NOW + seconds)


class FakeWatch:
    """The watch of InferenceScalers, as the test sets it."""

    def __init__(self, *documents: dict[str, Any]) -> None:
        self.version, self.has_synced, self.documents = 1, True, list(documents)
        self.reads = 0

    def all(self) -> tuple[dict[str, Any], ...]:
        self.reads += 1
        return tuple(self.documents)

    def set(self, *documents: dict[str, Any]) -> None:
        self.documents, self.version = list(documents), self.version + 1


def a_document(report: Decided | None = None, *, version: str = "1", mode: str = "ExternalMetric") -> dict[str, Any]:
    """An InferenceScaler with the metrics of a decision in its status."""
    document = a_scaler_document(mode=mode)
    document["metadata"]["resourceVersion"] = version
    if report is not None:
        document["status"] = {"externalMetrics": publish(report).model_dump(mode="json", by_alias=True)}
    return document


def served(source: NewestMetrics, seconds: float = 0.0) -> int | str:
    """The count that is served, or why there is none."""
    found = read_metric(source, "inference", DESIRED, Selector(), NOW + seconds)
    return found.message if isinstance(found, MetricUnavailable) else found[0].milli_value // 1000


def test_a_decision_counts_before_its_status_is_written() -> None:
    watch = FakeWatch(a_document())
    source = NewestMetrics(StatusMetrics(watch))
    assert "nothing has been decided" in str(served(source))
    source.report([decided(7)])
    assert served(source) == 7


def test_a_follower_serves_what_the_leader_has_written() -> None:
    watch = FakeWatch(a_document(decided(7)))
    source = NewestMetrics(StatusMetrics(watch))
    assert served(source) == 7
    watch.set(a_document(decided(8, seconds=15.0), version="2"))
    assert served(source) == 8


@pytest.mark.parametrize(
    ("own", "status", "expected"),
    [
        pytest.param(decided(7, 0.0), decided(8, 15.0), 8, id="another leader has decided since"),
        pytest.param(decided(7, 15.0), decided(8, 0.0), 7, id="the own one is newer"),
        pytest.param(decided(7, 0.2), decided(8, 0.0), 7, id="within the same second the own one counts"),
    ],
)
def test_the_later_decision_counts(own: Decided, status: Decided, expected: int) -> None:
    source = NewestMetrics(StatusMetrics(FakeWatch(a_document(status))))
    source.report([own])
    assert served(source, 20.0) == expected


def test_who_stands_down_serves_the_statuses() -> None:
    source = NewestMetrics(StatusMetrics(FakeWatch(a_document(decided(8)))))
    source.report([decided(7, 1.0)])
    assert served(source, 1.0) == 7
    source.report([])
    assert served(source, 1.0) == 8


def test_a_restart_serves_the_statuses_until_they_are_too_old() -> None:
    source = NewestMetrics(StatusMetrics(FakeWatch(a_document(decided(8)))))
    assert served(source, 120.0) == 8
    assert "nothing has been decided for InferenceScaler inference/llama since" in str(served(source, 121.0))


def test_a_tick_that_could_not_see_the_target_leaves_the_last_decision_until_it_is_too_old() -> None:
    source = NewestMetrics(StatusMetrics(FakeWatch(a_document(decided(8)))))
    source.report([an_unobserved_report(scaler=a_scaler_of(), now_seconds=NOW + 15.0)])
    assert served(source, 15.0) == 8


@pytest.mark.parametrize(
    ("watched_mode", "own_mode", "expected"),
    [
        pytest.param("Scale", "ExternalMetric", "is in mode Scale", id="a mode that was changed since the tick"),
        pytest.param("ExternalMetric", "Scale", "nothing has been decided", id="and changed to ours"),
    ],
)
def test_the_mode_that_stands_now_counts(watched_mode: str, own_mode: str, expected: str) -> None:
    source = NewestMetrics(StatusMetrics(FakeWatch(a_document(mode=watched_mode))))
    source.report([decided(7, mode=own_mode)])
    assert expected in str(served(source))


def test_a_pool_that_was_deleted_is_not_served_any_more() -> None:
    watch = FakeWatch(a_document(decided(8)))
    source = NewestMetrics(StatusMetrics(watch))
    source.report([decided(8)])
    gone = a_document(decided(8))
    gone["metadata"]["deletionTimestamp"] = "2030-03-17T17:46:40Z"
    watch.set(gone)
    assert served(source) == "namespace inference has no InferenceScaler"


def test_before_the_watch_is_filled_nothing_is_known() -> None:
    watch = FakeWatch()
    watch.has_synced = False
    assert served(NewestMetrics(StatusMetrics(watch))) == "the InferenceScalers have not been read yet"


def test_an_unchanged_watch_is_not_read_again() -> None:
    watch = FakeWatch(a_document(decided(8)))
    source = NewestMetrics(StatusMetrics(watch))
    assert [served(source) for _ in range(3)] == [8, 8, 8]
    assert watch.reads == 1


def test_a_status_of_another_version_of_this_program_counts_as_none() -> None:
    document = a_document()
    document["status"] = {"externalMetrics": {"from": "the future"}}
    assert "nothing has been decided" in str(served(NewestMetrics(StatusMetrics(FakeWatch(document)))))


def test_without_statuses_only_own_decisions_are_known() -> None:
    source = NewestMetrics(None)
    assert isinstance(source.pools_in("inference"), NotKnownYet)
    source.report([decided(7)])
    assert served(source) == 7
    assert source.pools_in("other") == ()
