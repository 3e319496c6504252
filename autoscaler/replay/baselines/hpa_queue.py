"""`hpa-queue`: a stock HPA (Kubernetes 1.37) on the requests that wait in the engines, 4 a replica (`queue-depth`).

Where it is tuned it counts running and waiting requests together, which is what users tune in practice: the waiting
ones alone are none until the objective is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.replay.baselines.hpa_windows import with_windows
from autoscaler.replay.promql_reading import Expression, read_promql
from autoscaler.replay.simulated_prometheus import single_value
from autoscaler.replay.stock_hpa import PoolWorld, StockHPA
from policies.constraints.behavior import (
    PolicyType,
    ScaleDownRules,
    ScaleUpRules,
    ScalingBehavior,
    ScalingPolicy,
)
from policies.hpa.metric_proposal import milli_target, milli_value
from policies.hpa.metrics import FAILED_GET_EXTERNAL_METRIC, FailedMetric, MeasuredMetric, Metric, TargetType

WAITING_PER_REPLICA = 4.0
WAITING = "sum(vllm:num_requests_waiting)"
IN_FLIGHT = "sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)"
BEHAVIOR = ScalingBehavior(
    scale_up=ScaleUpRules(
        stabilization_window_seconds=30,
        policies=(ScalingPolicy(type=PolicyType.PERCENT, value=100, period_seconds=30),),
    ),
    scale_down=ScaleDownRules(policies=(ScalingPolicy(type=PolicyType.PODS, value=2, period_seconds=60),)),
)


@dataclass(frozen=True, slots=True)
class QueryMetric:
    """An External metric with an AverageValue target that an adapter answers by one query."""

    query: Expression
    target: float

    def read(self, world: PoolWorld, now_seconds: float) -> Metric:
        """Fails without a series, and in an outage."""
        value = None if world.pool.is_prometheus_out else single_value(world.prometheus.ask(self.query, now_seconds))
        if value is None:
            return FailedMetric(FAILED_GET_EXTERNAL_METRIC, is_external=True)
        return MeasuredMetric(TargetType.AVERAGE_VALUE, milli_target(self.target), (milli_value(value),))


def hpa_queue(
    minimum: int,
    maximum: int,
    in_flight_per_replica: float | None = None,
    down_window_seconds: float | None = None,
) -> StockHPA:
    """The HPA; with `in_flight_per_replica` on running and waiting requests instead."""
    metric = (
        QueryMetric(read_promql(WAITING), WAITING_PER_REPLICA)
        if in_flight_per_replica is None
        else QueryMetric(read_promql(IN_FLIGHT), in_flight_per_replica)
    )
    behavior = with_windows(BEHAVIOR, down_seconds=down_window_seconds)
    return StockHPA("hpa-queue", max(1, minimum), maximum, (metric,), behavior)
