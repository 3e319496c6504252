"""Where do the metrics of an HPA manifest come from in a replay? From the pool's replicas, as adapters serve them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.replay.promql_reading import Call, Expression, Selector
from autoscaler.replay.simulated_prometheus import is_simulated
from autoscaler.replay.stock_hpa import DEFAULT_TOLERANCE, PoolWorld
from policies.hpa.metric_proposal import milli_target, milli_value, whole_replicas
from policies.hpa.metrics import (
    FAILED_GET_EXTERNAL_METRIC,
    FailedMetric,
    MeasuredMetric,
    Metric,
    ProposedReplicas,
    TargetType,
)

FAILED_GET_PODS_METRIC = "FailedGetPodsMetric"
# The rate window of prometheus-adapter's own example configuration.
RATE_WINDOW_SECONDS = 120.0


def engine_metric(name: str) -> Expression | None:
    """A metric name as an adapter serves it: a gauge by its name, a counter's rate by `_per_second` for `_total`."""
    if is_simulated(name) and not name.endswith("_total"):
        return Selector(name)
    counter = name.removesuffix("_per_second") + "_total"
    if name.endswith("_per_second") and is_simulated(counter):
        return Call("rate", (Selector(counter, (), RATE_WINDOW_SECONDS),))
    return None


@dataclass(frozen=True, slots=True)
class ExternalMetricSource:
    """One item for each replica's series."""

    expression: Expression
    target: float
    target_type: TargetType

    def read(self, world: PoolWorld, now_seconds: float) -> Metric:
        """Fails without any series, and in an outage."""
        values = _values(self.expression, world, now_seconds)
        if not values:
            return FailedMetric(FAILED_GET_EXTERNAL_METRIC, is_external=True)
        items = tuple(milli_value(value) for value in values.values())
        return MeasuredMetric(self.target_type, milli_target(self.target), items)


@dataclass(frozen=True, slots=True)
class PodsMetricSource:
    """The mean over the pods, with HPA's rule for pods without the metric (`calcPlainMetricReplicas`).

    They count as at the target where the others ask for fewer, as zero where they ask for more; where that turns the
    direction round, or ends inside the tolerance, nothing is proposed.
    """

    expression: Expression
    target: float

    def read(self, world: PoolWorld, now_seconds: float) -> Metric:
        """Fails without a single value, and in an outage."""
        values = _values(self.expression, world, now_seconds)
        pods = [pod.name for pod in world.pool.pods]
        known = [values[name] for name in pods if name in values]
        if not known:
            return FailedMetric(FAILED_GET_PODS_METRIC)
        return ProposedReplicas(self._propose(known, len(pods) - len(known), world.pods.spec))

    def _propose(self, known: Sequence[float], missing: int, current: int) -> int:
        ratio = sum(known) / len(known) / self.target
        if not missing:
            return current if DEFAULT_TOLERANCE.holds(ratio) else whole_replicas(ratio * len(known))
        filled = [*known, *([self.target if ratio < 1.0 else 0.0] * missing)]
        again = sum(filled) / len(filled) / self.target
        if DEFAULT_TOLERANCE.holds(again) or (ratio < 1.0) != (again < 1.0):
            return current
        proposed = whole_replicas(again * len(filled))
        turns_round = proposed > current if again < 1.0 else proposed < current
        return current if turns_round else proposed


def _values(expression: Expression, world: PoolWorld, now_seconds: float) -> dict[str, float]:
    """By replica; empty in an outage."""
    if world.pool.is_prometheus_out:
        return {}
    answer = world.prometheus.ask(expression, now_seconds)
    if not isinstance(answer, dict):
        return {}
    return {dict(labels)["pod"]: value for labels, value in answer.items()}
