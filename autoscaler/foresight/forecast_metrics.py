"""What does Prometheus learn of the load to come? And of the load that came: the record that a restart begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autoscaler.controller.forecast_report import reported_forecast
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.foresight.past_pieces import RECORDED_METRIC


class ForecastMetrics(Collector):
    """A reporter, and gauges of the last tick: pools without a forecast have no series."""

    def __init__(self) -> None:
        self._reports: Sequence[PoolReport] = ()

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces what the next scrape reads (one assignment: no lock is needed)."""
        self._reports = tuple(reports)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The load that came, the load that is expected, how good that is, and whether it acts."""
        pool = ["namespace", "name"]
        arrived = GaugeMetricFamily(
            RECORDED_METRIC, "Tokens that arrived per second, in the last whole five minutes.", labels=pool
        )
        expected = GaugeMetricFamily(
            "tokenscaler_forecast_tokens_per_second",
            "Largest load until a replica ordered now could serve, at the quantile of the policy.",
            labels=pool,
        )
        loss = GaugeMetricFamily(
            "tokenscaler_forecast_loss_ratio", "Loss of the forecast over that of the last value.", labels=pool
        )
        acts = GaugeMetricFamily(
            "tokenscaler_forecast_acts", "1 where the forecast takes part in the decision.", labels=pool
        )
        for report in self._reports:
            told = reported_forecast(report) if isinstance(report, Decided) else None
            if told is None:
                continue
            labels = [report.scaler.namespace, report.scaler.name]
            acts.add_metric(labels, float(told.acts))
            demand = told.vote.values.get("tokensPerSecondExpected")
            if demand is not None:
                expected.add_metric(labels, demand)
            if told.loss_ratio is not None:
                loss.add_metric(labels, told.loss_ratio)
            if told.forecast is not None and told.forecast.latest is not None:
                arrived.add_metric(labels, told.forecast.latest)
        yield from (arrived, expected, loss, acts)
