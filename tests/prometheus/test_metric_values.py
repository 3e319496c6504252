"""The queries that deploy/other-providers.md gives to KEDA and prometheus-adapter, asked of a real Prometheus."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from autoscaler.clock import SystemClock
from autoscaler.external_metrics.prometheus_series import MetricValueCollector
from tests.pool_builders import a_decision_report, a_scaler
from tests.servers.page_exporter import PageExporter
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer, static_targets

pytestmark = pytest.mark.prometheus

DOCUMENT = (Path(__file__).parents[2] / "deploy" / "other-providers.md").read_text()
LABELS = 'namespace="inference",name="llama-8b"'


def query_of_keda() -> str:
    found = re.search(r"^ *query: (.+)$", DOCUMENT, re.MULTILINE)
    assert found
    return found[1]


def query_of_the_adapter() -> str:
    """Its template, filled in as the adapter does for one selector and one namespace."""
    found = re.search(r"^ *metricsQuery: (.+)$", DOCUMENT, re.MULTILINE)
    assert found
    return found[1].replace("<<.Series>>", "tokenscaler_metric_value").replace("<<.LabelMatchers>>", LABELS)


def test_the_documented_queries_give_the_count_and_nothing_where_it_is_not_known() -> None:
    clock = SystemClock()
    values, registry = MetricValueCollector(clock), CollectorRegistry()
    registry.register(values)
    report = a_decision_report(
        scaler=a_scaler("llama-8b", mode="ExternalMetric"), waiting=70.0, now_seconds=clock.now_seconds()
    )
    values.report([report])
    with PageExporter() as controllers:
        # Two replicas in the moment in which the lead changes hands: both have the value.
        controllers.pages = dict.fromkeys(("a", "b"), lambda: generate_latest(registry).decode())
        jobs = [
            {
                "job_name": page,
                "metrics_path": f"/{page}",
                "honor_labels": True,
                "static_configs": static_targets(controllers.address, namespace="tokenscaler-system"),
            }
            for page in ("a", "b")
        ]
        with PrometheusServer(jobs) as prometheus:
            prometheus.wait_for("tokenscaler_metric_value", 2)
            for query in (query_of_keda(), query_of_the_adapter()):
                prometheus.wait_for(query)
                (sample,) = prometheus.query(query)
                assert float(sample["value"][1]) == 7

            values.report([])

            for query in (query_of_keda(), query_of_the_adapter()):
                wait_until(lambda asked=query: prometheus.query(asked) == [], "the series have ended", 60)
