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
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from autoscaler.actuators.actuator import Actuated, ReplicaActuator
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Reporter, Unobserved
from autoscaler.decision_record import ActuationOutcome
from autoscaler.foresight.foresight import Foresight, SeenPool
from autoscaler.observers.metrics import MetricsObserver, PoolKey, PoolQuery
from autoscaler.observers.workload import Workload, WorkloadObserver, WorkloadUnavailable
from forecasting.forecast import Forecast, ForecastUnavailable
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import ScalingHistory, with_followed_rescale, with_owner_of_zero, with_rescale
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason
from policies.recommenders.forecast import ForecastMode, ForecastParameters
from policies.user_queries import user_queries

logger = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")


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
        foresight: Foresight | None = None,
    ) -> None:
        """With an executor the pools of a tick are reconciled side by side, so that one slow write delays no other.

        Without a foresight nothing is forecast.
        """
        self._foresight = foresight
        self._workloads = workloads
        self._metrics = metrics
        self._actuators = actuators
        self._histories = histories
        self._reporters = reporters
        self._map: Callable[..., Iterable[PoolReport]] = executor.map if executor else map

    def reconcile_all(
        self, scalers: Sequence[InferenceScaler | InvalidInferenceScaler], now_seconds: float
    ) -> tuple[PoolReport, ...]:
        """One tick over all pools. A bug that one pool, the metrics or a reporter runs into does not stop the rest."""
        seen = self._observe([scaler for scaler in scalers if isinstance(scaler, InferenceScaler)], now_seconds)
        seen = self._foresee([each for each in scalers if isinstance(each, InferenceScaler)], seen, now_seconds)
        reports = tuple(self._map(lambda scaler: self._reconcile(scaler, seen.get(scaler.key), now_seconds), scalers))
        self._report(reports)
        self._histories.retain(frozenset(scaler.key for scaler in scalers))
        return reports

    def stand_down(self) -> None:
        """Tells the reporters that no pool is looked after here, so that nothing stale is shown or compared with."""
        self._report(())

    def _report(self, reports: Sequence[PoolReport]) -> None:
        for reporter in self._reporters:
            _contain("report", type(reporter).__name__, reporter.report, reports)

    def _observe(self, scalers: Sequence[InferenceScaler], now_seconds: float) -> dict[PoolKey, _Seen | _Bug]:
        seen = {s.key: _contain("observe", _name(s), self._observe_workload, s, now_seconds) for s in scalers}
        queries = [each.query for each in seen.values() if isinstance(each, _Seen) and each.query is not None]
        if not queries:
            return seen
        metrics = _contain("observe", "the metrics of all pools", self._metrics.observe_metrics, queries, now_seconds)
        return {key: _with_metrics(each, metrics) for key, each in seen.items()}

    def _observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> _Seen:
        workload = self._workloads.observe_workload(scaler, now_seconds)
        return _Seen(workload, _pool_query(scaler, workload) if isinstance(workload, Workload) else None)

    def _foresee(
        self, scalers: Sequence[InferenceScaler], seen: dict[PoolKey, _Seen | _Bug], now_seconds: float
    ) -> dict[PoolKey, _Seen | _Bug]:
        pools = [pool for scaler in scalers if (pool := _foreseeable(scaler, seen[scaler.key])) is not None]
        if self._foresight is None or not pools:
            return seen
        forecasts = _contain("forecast", "the load of all pools", self._foresight.foresee, pools, now_seconds)
        # A bug there is in the log, and having no forecast is normal.
        return seen if isinstance(forecasts, _Bug) else {key: _with_forecast(s, forecasts) for key, s in seen.items()}

    def _reconcile(
        self, scaler: InferenceScaler | InvalidInferenceScaler, seen: _Seen | _Bug | None, now_seconds: float
    ) -> PoolReport:
        if isinstance(scaler, InvalidInferenceScaler):
            return Rejected(scaler, now_seconds)
        assert seen is not None
        if isinstance(seen, _Bug):
            return Crashed(scaler, now_seconds, seen.problem)
        if isinstance(seen.workload, WorkloadUnavailable):
            return Unobserved(scaler, now_seconds, seen.workload)
        report = _contain("decide", _name(scaler), self._decide, scaler, seen, seen.workload, now_seconds)
        return Crashed(scaler, now_seconds, report.problem) if isinstance(report, _Bug) else report

    def _decide(
        self,
        scaler: InferenceScaler,
        seen: _Seen,
        workload: Workload,
        now_seconds: float,
    ) -> Decided:
        history = self._histories.recall(scaler, workload.replicas.spec, now_seconds)
        if scaler.spec.mode is Mode.EXTERNAL_METRIC:
            history = with_followed_rescale(history, scaler.spec.behavior, now_seconds, workload.replicas.spec)
        else:
            history = with_owner_of_zero(history, workload.replicas.spec, workload.is_count_ours)
        decision_input = DecisionInput(
            now_seconds=now_seconds,
            parameters=scaler.spec.parameters,
            replicas=workload.replicas,
            metrics=seen.metrics,
            history=history,
            learned_cold_start=workload.cold_start,
            forecast=seen.forecast,
        )
        decision = decide(decision_input)
        actuation, next_history = self._actuate(scaler, workload, decision, now_seconds)
        self._histories.remember(scaler, next_history)
        return Decided(scaler, now_seconds, workload, decision_input, decision, actuation, next_history)

    def _actuate(
        self, scaler: InferenceScaler, workload: Workload, decision: ScalingDecision, now_seconds: float
    ) -> tuple[ActuationOutcome, ScalingHistory]:
        """What came of the decision, and the history with the rescale in it if there was one."""
        current, desired, history = workload.replicas.spec, decision.desired_replicas, decision.next_history
        rivals = workload.competing_writers
        if scaler.spec.mode is Mode.EXTERNAL_METRIC:
            # Whoever scales by our count is wanted here; what is not is another InferenceScaler, or nobody at all.
            if not any(each.reason is Reason.COMPETING_AUTOSCALER for each in rivals):
                return ActuationOutcome(Reason.NO_AUTOSCALER, _nobody_reads(scaler)), history
            rivals = tuple(each for each in rivals if each.reason is Reason.COMPETING_SCALER)
        if rivals:
            who = " and ".join(each.who for each in rivals)
            steer = "steers" if len(rivals) == 1 else "steer"
            unwritten = f", so {current} -> {desired} is not written" if desired != current else ""
            return ActuationOutcome(rivals[0].reason, f"{who} {steer} it too{unwritten}"), history
        if desired == current:
            return ActuationOutcome(Reason.READY_FOR_NEW_SCALE, "the count is as wanted"), history
        result = self._actuators[scaler.spec.mode].scale(workload.target, current, desired)
        if isinstance(result, Actuated) and result.reason is Reason.SUCCEEDED_RESCALE:
            history = with_rescale(history, scaler.spec.behavior, now_seconds, current, desired)
        return ActuationOutcome(result.reason, result.message), history


_NOT_ASKED = ObservationUnavailable(Reason.INTERNAL_ERROR, "the metrics observer gave no answer for this pool")


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was observed of one pool; `query` is what is asked of its metrics, where there is a target at all."""

    workload: Workload | WorkloadUnavailable
    query: PoolQuery | None
    metrics: MetricsObservation | ObservationUnavailable = _NOT_ASKED
    forecast: Forecast | ForecastUnavailable | None = None


@dataclass(frozen=True, slots=True)
class _Bug:
    problem: str


def _with_metrics(
    seen: _Seen | _Bug, metrics: Mapping[PoolKey, MetricsObservation | ObservationUnavailable] | _Bug
) -> _Seen | _Bug:
    if isinstance(seen, _Bug) or seen.query is None:
        return seen
    if isinstance(metrics, _Bug):
        # Being blind by a bug of ours is being blind: the count is held, then the fallback rules.
        return replace(seen, metrics=ObservationUnavailable(Reason.INTERNAL_ERROR, metrics.problem))
    return replace(seen, metrics=metrics.get(seen.query.key, _NOT_ASKED))


def _foreseeable(scaler: InferenceScaler, seen: _Seen | _Bug) -> SeenPool | None:
    """The pool, where its policy wants a forecast and it was seen."""
    parameters: ForecastParameters | None = scaler.spec.forecast
    if parameters is None or parameters.mode is ForecastMode.OFF:
        return None
    if isinstance(seen, _Bug) or seen.query is None or not isinstance(seen.workload, Workload):
        return None
    return SeenPool(seen.query, parameters, seen.workload.replicas, seen.metrics)


def _with_forecast(seen: _Seen | _Bug, forecasts: Mapping[PoolKey, Forecast | ForecastUnavailable]) -> _Seen | _Bug:
    if isinstance(seen, _Bug) or seen.query is None:
        return seen
    return replace(seen, forecast=forecasts.get(seen.query.key))


def _contain(step: str, about: str, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | _Bug:
    """What the action returns. A bug in it is logged with its traceback and must not stop the fleet."""
    try:
        return action(*args, **kwargs)
    except Exception as error:  # the only one of its kind: everywhere else a bug may come up to here
        logger.exception("a step of the tick failed", extra={"step": step, "about": about})
        return _Bug(f"{step}: {type(error).__name__}: {error}")


def _name(scaler: InferenceScaler) -> str:
    return f"{scaler.namespace}/{scaler.name}"


def _nobody_reads(scaler: InferenceScaler) -> str:
    return (
        f"no HorizontalPodAutoscaler has {scaler.spec.scale_target_ref.kind} "
        f"{scaler.namespace}/{scaler.spec.scale_target_ref.name}: `tokenscaler hpa {_name(scaler)}` prints one"
    )


def _pool_query(scaler: InferenceScaler, workload: Workload) -> PoolQuery:
    return PoolQuery(
        key=scaler.key,
        engine=scaler.spec.engine.value,
        target_name=workload.target.name,
        pods=workload.pods,
        queries=user_queries(scaler.spec),
    )
