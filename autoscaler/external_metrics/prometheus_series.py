"""The values that the external metrics API serves, as one Prometheus gauge: for prometheus-adapter and KEDA.

A value that is not known, or has not been decided anew for too long, has no series. It is never zero, so a query that
asks for it comes back empty, and whoever scales by it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autoscaler.api.quantity import milli_of_quantity
from autoscaler.clock import Clock
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.controller.published_metrics import publish
from autoscaler.external_metrics.values import MAXIMUM_AGE_SECONDS
from policies.parameters import Mode

METRIC_VALUE = "tokenscaler_metric_value"


class MetricValueCollector(Collector):
    """A reporter that keeps the decisions of the last tick, and reads the values out of them at each scrape."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._decided: tuple[Decided, ...] = ()

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces what the next scrape reads (one assignment: no lock is needed)."""
        self._decided = tuple(
            report
            for report in reports
            # As in the API: whom we scale ourselves needs no series of its every signal.
            if isinstance(report, Decided) and report.scaler.spec.mode is Mode.EXTERNAL_METRIC
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One series for each value that is known of a pool in mode ExternalMetric."""
        family = GaugeMetricFamily(
            METRIC_VALUE,
            "Count and signals of a pool by the names of the external metrics API; absent where not known.",
            labels=["namespace", "name", "metric"],
        )
        now_seconds = self._clock.now_seconds()
        for report in self._decided:
            if abs(now_seconds - report.now_seconds) > MAXIMUM_AGE_SECONDS:
                continue
            for metric in publish(report).values:
                milli_value = None if metric.value is None else milli_of_quantity(metric.value)
                if milli_value is not None:
                    family.add_metric([report.scaler.namespace, report.scaler.name, metric.name], milli_value / 1000)
        yield family
