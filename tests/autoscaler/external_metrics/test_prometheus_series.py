"""The gauge for prometheus-adapter and KEDA, read back with a parser."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from autoscaler.clock import ManualClock
from autoscaler.controller.pool_report import PoolReport
from autoscaler.external_metrics.prometheus_series import METRIC_VALUE, MetricValueCollector
from autoscaler.external_metrics.values import MAXIMUM_AGE_SECONDS
from policies.signals import Signal
from tests.builders import NOW, a_blackout, a_signal, an_observation
from tests.pool_builders import a_crash_report, a_decision_report, a_rejected_report, a_scaler, an_unobserved_report

FOLLOWED = a_scaler(mode="ExternalMetric")


def series(collector: MetricValueCollector) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(collector)
    page = generate_latest(registry).decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            assert sample.name == METRIC_VALUE
            assert (sample.labels["namespace"], sample.labels["name"]) == ("inference", "llama")
            found[sample.labels["metric"]] = sample.value
    return found


def after(*reports: PoolReport, age_seconds: float = 0.0) -> dict[str, float]:
    collector = MetricValueCollector(ManualClock(NOW + age_seconds))
    collector.report(reports)
    return series(collector)


def test_the_count_and_the_signals_are_there_by_the_names_of_the_api() -> None:
    found = after(a_decision_report(scaler=FOLLOWED, waiting=85.0))

    assert found["tokenscaler-desired-replicas"] == 8
    assert found["waiting-requests"] == 85
    assert found["kv-cache-usage"] == 0.4


def test_a_true_zero_is_zero() -> None:
    assert after(a_decision_report(scaler=FOLLOWED, waiting=0.0))["waiting-requests"] == 0


def test_a_signal_that_is_not_known_has_no_series() -> None:
    half_blind = an_observation({Signal.WAITING_REQUESTS: a_signal(3.0, 4.0, None, None)})

    found = after(a_decision_report(scaler=FOLLOWED, metrics=half_blind))

    assert "waiting-requests" not in found
    assert found["running-requests"] == 40


def test_blind_there_is_the_count_that_is_held_and_no_signal() -> None:
    assert after(a_decision_report(scaler=FOLLOWED, metrics=a_blackout())) == {"tokenscaler-desired-replicas": 4}


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(a_decision_report(), id="a pool that we scale ourselves"),
        pytest.param(a_rejected_report(), id="a spec that was not accepted"),
        pytest.param(an_unobserved_report(), id="a target that could not be seen"),
        pytest.param(a_crash_report(), id="a bug of ours"),
    ],
)
def test_a_pool_that_serves_no_metric_has_no_series(report: PoolReport) -> None:
    assert after(report) == {}


def test_a_decision_that_has_aged_has_no_series() -> None:
    report = a_decision_report(scaler=FOLLOWED, waiting=85.0)

    assert after(report, age_seconds=MAXIMUM_AGE_SECONDS)
    assert after(report, age_seconds=MAXIMUM_AGE_SECONDS + 1) == {}


def test_a_decision_that_a_clock_set_back_leaves_in_the_future_has_no_series() -> None:
    report = a_decision_report(scaler=FOLLOWED, waiting=85.0)

    assert after(report, age_seconds=-MAXIMUM_AGE_SECONDS)
    assert after(report, age_seconds=-(MAXIMUM_AGE_SECONDS + 1)) == {}


def test_a_standby_has_no_series() -> None:
    collector = MetricValueCollector(ManualClock(NOW))
    collector.report([a_decision_report(scaler=FOLLOWED)])
    assert series(collector)

    collector.report(())

    assert series(collector) == {}
