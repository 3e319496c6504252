"""The controller's own metrics, all under `tokenscaler_`, read from the newest tick when Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from autoscaler.controller.pool_report import Decided, PoolReport, Rejected, Unobserved
from policies.observation import MetricsObservation
from policies.reasons import Reason
from policies.recommenders.inter_token_latency_divergence import gap_ratio

# From a tick over a few pools to one that eats its whole interval.
TICK_BUCKETS_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class PoolCollector(Collector):
    """Gauges of the last tick. A pool that is gone leaves no series behind, as nothing is kept between ticks."""

    def __init__(self) -> None:
        self._reports: Sequence[PoolReport] = ()

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Replaces what the next scrape reads (one assignment: no lock is needed)."""
        self._reports = tuple(reports)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One gauge for each of desired, current, ready, starting, coverage, and one series a vote."""
        pool_labels = ["namespace", "name"]
        desired = GaugeMetricFamily("tokenscaler_desired_replicas", "Replicas decided.", labels=pool_labels)
        spec = GaugeMetricFamily("tokenscaler_spec_replicas", "Replicas asked for in the target.", labels=pool_labels)
        ready = GaugeMetricFamily("tokenscaler_ready_replicas", "Replicas that serve.", labels=pool_labels)
        starting = GaugeMetricFamily("tokenscaler_starting_replicas", "Replicas starting in time.", labels=pool_labels)
        stuck = GaugeMetricFamily("tokenscaler_stuck_replicas", "Replicas that fail to start.", labels=pool_labels)
        leaving = GaugeMetricFamily(
            "tokenscaler_leaving_replicas", "Replicas whose node is about to go.", labels=pool_labels
        )
        coverage = GaugeMetricFamily(
            "tokenscaler_coverage_ratio", "Share of ready replicas with fresh samples.", labels=pool_labels
        )
        cold_start = GaugeMetricFamily(
            "tokenscaler_cold_start_seconds",
            "How long a replica takes to start, as learned, else the policy's prior.",
            labels=[*pool_labels, "quantile"],
        )
        divergence = GaugeMetricFamily(
            "tokenscaler_inter_token_latency_divergence_ratio",
            "99th percentile of the gaps between tokens over their median; above 3 together with a queue is overload.",
            labels=pool_labels,
        )
        binding = GaugeMetricFamily(
            "tokenscaler_binding_reason", "1 for the reason of the count.", labels=[*pool_labels, "reason"]
        )
        votes = GaugeMetricFamily(
            "tokenscaler_vote_replicas", "Replicas one vote asks for.", labels=[*pool_labels, "vote"]
        )
        for report in self._reports:
            labels = [report.scaler.namespace, report.scaler.name]
            if not isinstance(report, Decided):
                binding.add_metric([*labels, _reason(report).value], 1.0)
                continue
            desired.add_metric(labels, report.decision.desired_replicas)
            spec.add_metric(labels, report.workload.replicas.spec)
            ready.add_metric(labels, report.workload.replicas.serving)
            starting.add_metric(labels, report.workload.replicas.starting)
            stuck.add_metric(labels, report.workload.replicas.stuck)
            leaving.add_metric(labels, report.workload.replicas.leaving)
            binding.add_metric([*labels, report.decision.reason.value], 1.0)
            metrics = report.decision_input.metrics
            coverage.add_metric(labels, metrics.coverage if isinstance(metrics, MetricsObservation) else 0.0)
            start = report.decision_input.cold_start
            for quantile, seconds in (("0.5", start.l50_seconds), ("0.9", start.l90_seconds)):
                cold_start.add_metric([*labels, quantile], seconds)
            ratio = gap_ratio(metrics.latency) if isinstance(metrics, MetricsObservation) else None
            if ratio is not None:
                divergence.add_metric(labels, ratio)
            for vote in report.decision.recommendations:
                if vote.replicas is not None:
                    votes.add_metric([*labels, vote.recommender], vote.replicas)
        yield from (desired, spec, ready, starting, stuck, leaving, coverage, cold_start, divergence, binding, votes)


def _reason(report: PoolReport) -> Reason:
    if isinstance(report, Rejected):
        return Reason.SPEC_INVALID
    if isinstance(report, Unobserved):
        return report.unavailable.reason
    return Reason.INTERNAL_ERROR


class Telemetry:
    """The registry of this process (no global one: tests and replay make their own)."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.pools = PoolCollector()
        self.registry.register(self.pools)
        self.tick_seconds = Histogram(
            "tokenscaler_tick_seconds",
            "Duration of one tick over all pools.",
            buckets=TICK_BUCKETS_SECONDS,
            registry=self.registry,
        )
        self.ticks = Counter(
            "tokenscaler_ticks",
            "Ticks by outcome (done, standby, unsynced, failed, missed).",
            ["outcome"],
            registry=self.registry,
        )
        self.actuations = Counter(
            "tokenscaler_actuations", "Decisions by what came of them.", ["reason"], registry=self.registry
        )

    def report(self, reports: Sequence[PoolReport]) -> None:
        """Takes the reports of one tick."""
        self.pools.report(reports)
        for report in reports:
            if isinstance(report, Decided):
                self.actuations.labels(report.actuation.reason.value).inc()

    def add_gauges(self, name: str, documentation: str, label: str, read: Callable[[], dict[str, float]]) -> None:
        """A gauge with one label whose series are read at each scrape; keys are the label's values."""
        self.registry.register(_ReadGauge(name, documentation, label, read))

    def render(self) -> bytes:
        """The page in Prometheus' text format."""
        return generate_latest(self.registry)


class _ReadGauge(Collector):
    def __init__(self, name: str, documentation: str, label: str, read: Callable[[], dict[str, float]]) -> None:
        self._name, self._documentation, self._label, self._read = name, documentation, label, read

    def collect(self) -> Iterator[GaugeMetricFamily]:
        family = GaugeMetricFamily(self._name, self._documentation, labels=[self._label])
        for value, number in self._read().items():
            family.add_metric([value], number)
        yield family
