"""One fake for each port of the reconciler: what is to be seen is set by the test, what was done is read by it.

Where an exception stands in the place of an answer, it is raised: a bug in the adapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.api.status import InferenceScalerStatus
from autoscaler.controller.events import PoolEvent
from autoscaler.controller.pool_report import PoolReport
from autoscaler.decision_record import DecisionRecord
from autoscaler.foresight.foresight import SeenPool
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.workload import ScaleTarget, Workload, WorkloadUnavailable
from forecasting.forecast import Forecast, ForecastUnavailable
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason


class FakeWorkloads:
    """Shows the workloads it was given."""

    def __init__(self, workloads: Mapping[PoolKey, Workload | WorkloadUnavailable | Exception]) -> None:
        self.workloads = dict(workloads)

    def observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> Workload | WorkloadUnavailable:
        workload = self.workloads[scaler.key]
        if isinstance(workload, Exception):
            raise workload
        return workload


class FakeMetrics:
    """Answers with the observations it was given and keeps what it was asked."""

    def __init__(self, observations: Mapping[PoolKey, MetricsObservation | ObservationUnavailable] | Exception) -> None:
        self.observations = observations
        self.asked: list[tuple[PoolQuery, ...]] = []

    def observe_metrics(
        self, pools: Sequence[PoolQuery], now_seconds: float
    ) -> Mapping[PoolKey, MetricsObservation | ObservationUnavailable]:
        self.asked.append(tuple(pools))
        if isinstance(self.observations, Exception):
            raise self.observations
        return {pool.key: self.observations[pool.key] for pool in pools if pool.key in self.observations}


class FakeForesight:
    """Says the same of every pool, and keeps whom it was asked for."""

    def __init__(self, answer: Forecast | ForecastUnavailable | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[PoolKey, ...]] = []

    def foresee(
        self, pools: Sequence[SeenPool], now_seconds: float
    ) -> Mapping[PoolKey, Forecast | ForecastUnavailable]:
        self.asked.append(tuple(pool.key for pool in pools))
        if isinstance(self.answer, Exception):
            raise self.answer
        return {pool.key: self.answer for pool in pools}


class FakeActuator:
    """Keeps the writes it was asked for; answers with `result` where one is set."""

    def __init__(self, result: Actuated | ActuationFailed | Exception | None = None) -> None:
        self.result = result or Actuated(Reason.SUCCEEDED_RESCALE, "written")
        self.writes: list[tuple[str, int, int]] = []

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        self.writes.append((target.name, from_replicas, to_replicas))
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class FakeReporter:
    """Keeps the reports of every tick."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.ticks: list[tuple[PoolReport, ...]] = []

    def report(self, reports: Sequence[PoolReport]) -> None:
        self.ticks.append(tuple(reports))
        if self.failure is not None:
            raise self.failure


class FakeSource:
    """The scalers it was given."""

    def __init__(self, *scalers: InferenceScaler | InvalidInferenceScaler) -> None:
        self.given: tuple[InferenceScaler | InvalidInferenceScaler, ...] | Exception = scalers

    def scalers(self) -> Sequence[InferenceScaler | InvalidInferenceScaler]:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


class FakeEventSink:
    """Keeps the Events."""

    def __init__(self) -> None:
        self.sent: list[PoolEvent] = []

    def send(self, event: PoolEvent) -> None:
        self.sent.append(event)


class FakeStatusSink:
    """Keeps the statuses in the order in which they were written."""

    def __init__(self) -> None:
        self.written: list[tuple[str, str, InferenceScalerStatus]] = []

    def write(self, namespace: str, name: str, status: InferenceScalerStatus) -> None:
        self.written.append((namespace, name, status))


class FakeDecisionLog:
    """Keeps the records."""

    def __init__(self) -> None:
        self.records: list[DecisionRecord] = []

    def write(self, record: DecisionRecord) -> None:
        self.records.append(record)
