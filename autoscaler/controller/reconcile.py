"""One reconcile of one pool, in eight named steps; live run, dry run and simulated runs use this same class.

1. accept    the spec, or say what is wrong with it
2. observe   replicas from the API server's watches, signals from Prometheus (all pools at once)
3. forecast  what comes within the cold start (a pool without a forecaster skips it)
4. recommend and
5. constrain are `policies.decision.decide`
6. actuate   the one writer of the pool's mode, only where the count changes and nobody else steers
7. report    record, status, Event, metrics, page
8. remember  the next history
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from autoscaler.actuators.actuator import Actuated, ReplicaActuator
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Reporter, Unobserved
from autoscaler.decision_log import ActuationOutcome
from autoscaler.observers.metrics import MetricsObserver, PoolKey, PoolQuery
from autoscaler.observers.workload import Workload, WorkloadObserver, WorkloadUnavailable
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory, with_rescale
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason
from policies.user_queries import user_queries

logger = logging.getLogger(__name__)


class Reconciler:
    """Brings every pool to its decided count, one tick at a time."""

    def __init__(
        self,
        workloads: WorkloadObserver,
        metrics: MetricsObserver,
        actuators: Mapping[Mode, ReplicaActuator],
        histories: HistoryStore,
        reporters: Sequence[Reporter],
        executor: ThreadPoolExecutor | None = None,
    ) -> None:
        """With an executor the pools of a tick are reconciled side by side, so that one slow write delays no other."""
        self._workloads = workloads
        self._metrics = metrics
        self._actuators = actuators
        self._histories = histories
        self._reporters = reporters
        self._map: Callable[..., Iterable[PoolReport]] = executor.map if executor else map

    def reconcile_all(
        self, scalers: Sequence[InferenceScaler | InvalidInferenceScaler], now_seconds: float
    ) -> tuple[PoolReport, ...]:
        """One tick over all pools. A pool that fails does not stop the others."""
        observed = self._observe([s for s in scalers if isinstance(s, InferenceScaler)], now_seconds)
        reports = tuple(self._map(lambda scaler: self._reconcile_guarded(scaler, observed, now_seconds), scalers))
        for reporter in self._reporters:
            reporter.report(reports)
        self._histories.retain(frozenset(scaler.key for scaler in scalers))
        return reports

    def _observe(self, scalers: Sequence[InferenceScaler], now_seconds: float) -> dict[PoolKey, Observed]:
        workloads = {scaler.key: self._workloads.observe_workload(scaler, now_seconds) for scaler in scalers}
        pools = [
            _pool_query(scaler, workload)
            for scaler in scalers
            if isinstance(workload := workloads[scaler.key], Workload)
        ]
        metrics = self._metrics.observe_metrics(pools, now_seconds) if pools else {}
        return {key: (workload, metrics.get(key)) for key, workload in workloads.items()}

    def _reconcile_guarded(
        self, scaler: InferenceScaler | InvalidInferenceScaler, observed: Mapping[PoolKey, Observed], now_seconds: float
    ) -> PoolReport:
        if isinstance(scaler, InvalidInferenceScaler):
            return Rejected(scaler, now_seconds)
        workload, metrics = observed[scaler.key]
        try:
            return self._reconcile(scaler, workload, metrics, now_seconds)
        except Exception as error:  # the one place: a bug in one pool must not stop the fleet
            logger.exception("reconcile failed", extra={"namespace": scaler.namespace, "scaler": scaler.name})
            return Crashed(scaler, now_seconds, f"{type(error).__name__}: {error}")

    def _reconcile(
        self,
        scaler: InferenceScaler,
        workload: Workload | WorkloadUnavailable,
        metrics: MetricsObservation | ObservationUnavailable | None,
        now_seconds: float,
    ) -> PoolReport:
        if isinstance(workload, WorkloadUnavailable):
            return Unobserved(scaler, now_seconds, workload)
        if metrics is None:
            raise LookupError(f"the metrics observer gave no answer for {scaler.namespace}/{scaler.name}")
        history = self._histories.recall(scaler, workload.replicas.spec, now_seconds)
        decision_input = DecisionInput(now_seconds, scaler.spec.parameters, workload.replicas, metrics, history)
        decision = decide(decision_input)
        actuation, next_history = self._actuate(scaler, workload, decision, now_seconds)
        self._histories.remember(scaler, next_history)
        return Decided(scaler, now_seconds, workload, decision_input, decision, actuation, next_history)

    def _actuate(
        self, scaler: InferenceScaler, workload: Workload, decision: ScalingDecision, now_seconds: float
    ) -> tuple[ActuationOutcome, ScalingHistory]:
        """What came of the decision, and the history with the rescale in it if there was one."""
        current, desired = workload.replicas.spec, decision.desired_replicas
        if desired == current:
            return ActuationOutcome(Reason.READY_FOR_NEW_SCALE, "the count is as wanted"), decision.next_history
        if workload.competing_writers:
            competitor = workload.competing_writers[0]
            message = f"{current} -> {desired} not written: {competitor.who} steers this target too"
            return ActuationOutcome(competitor.reason, message), decision.next_history
        result = self._actuators[scaler.spec.mode].scale(workload.target, current, desired)
        history = decision.next_history
        if isinstance(result, Actuated) and result.reason is Reason.SUCCEEDED_RESCALE:
            history = with_rescale(history, now_seconds, current, desired)
        return ActuationOutcome(result.reason, result.message), history


Observed = tuple[Workload | WorkloadUnavailable, MetricsObservation | ObservationUnavailable | None]


def _pool_query(scaler: InferenceScaler, workload: Workload) -> PoolQuery:
    return PoolQuery(
        key=scaler.key,
        engine=scaler.spec.engine.value,
        target_name=workload.target.name,
        pods=workload.pods,
        queries=user_queries(scaler.spec),
    )
