"""One reconcile of one pool, in eight named steps; live run, dry run and simulated runs use this same class.

1. accept    the spec, or say what is wrong with it
2. observe   replicas from the API server's watches, signals from Prometheus (all pools at once)
3. forecast  what comes within the cold start (a pool without a forecaster skips it)
4. recommend and
5. constrain are `policies.decision.decide`
6. actuate   nodes first (`node_capacity.py`), then the one writer of the pool's mode, only where the count changes and
             nobody else steers
7. report    record, status, Event, metrics, page
8. remember  the next history
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.actuators.victim_marker import VictimMarker
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.controller.actuation import Considered, carry_out
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.keeper import Keeper
from autoscaler.controller.node_capacity import NodeCapacity
from autoscaler.controller.pool_report import Crashed, PoolReport, Rejected, Reporter, Unobserved
from autoscaler.controller.replica_wish import ReplicaWish, accelerator_pool_of, may_refer, wish_of
from autoscaler.foresight.foresight import Foresight, SeenPool
from autoscaler.observers.metrics import MetricsObserver, PoolKey, PoolQuery
from autoscaler.observers.workload import Workload, WorkloadObserver, WorkloadUnavailable
from forecasting.forecast import Forecast, ForecastUnavailable
from policies.accelerator_sharing import AcceleratorAllowance
from policies.bursts import BurstMemory, measured_load, watch_bursts
from policies.capacity.learning import CapacityEvidence, learn_capacity
from policies.capacity.memory import CapacityMemory
from policies.capacity_split import ReplicaSplit
from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.history import with_followed_rescale, with_owner_of_zero
from policies.load.rise import LoadRise, rise_of, watch_arrivals
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason
from policies.recommenders.forecast import ForecastMode, ForecastParameters
from policies.standing_for_bursts import ExpectedBursts, RecurringBursts, expected_bursts, recurring_bursts
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
        node_capacity: NodeCapacity | None = None,
        marker: VictimMarker | None = None,
        keepers: Sequence[Keeper] = (),
    ) -> None:
        """With an executor the pools of a tick are reconciled side by side, so that one slow write delays no other.

        Without a foresight nothing is forecast, and without a node capacity replicas have to find their nodes.
        """
        self._foresight = foresight
        self._node_capacity = node_capacity
        self._marker = marker
        self._keepers = keepers
        self._workloads = workloads
        self._metrics = metrics
        self._actuators = actuators
        self._histories = histories
        self._reporters = reporters
        self._map: Callable[..., Iterable[Any]] = executor.map if executor else map

    def reconcile_all(
        self, scalers: Sequence[InferenceScaler | InvalidInferenceScaler], now_seconds: float
    ) -> tuple[PoolReport, ...]:
        """One tick over all pools. A bug that one pool, the metrics or a reporter runs into does not stop the rest."""
        accepted = [scaler for scaler in scalers if isinstance(scaler, InferenceScaler)]
        seen = self._foresee(accepted, self._observe(accepted, now_seconds), now_seconds)
        considered = tuple(self._map(lambda each: self._consider(each, seen.get(each.key), now_seconds), scalers))
        considered = self._share(considered, now_seconds)
        splits = self._provide(scalers, considered, now_seconds)
        reports = tuple(self._map(lambda each: self._carry_out(each, splits), considered))
        for keeper in self._keepers:
            _contain("keep", type(keeper).__name__, keeper.keep, reports)
        self._report(reports)
        self._histories.retain(frozenset(scaler.key for scaler in scalers))
        return reports

    def forget_all(self) -> None:
        """Drops what is remembered of pools, and what other pools left them of accelerators; `.status` counts then."""
        self._histories.forget_all()
        if self._node_capacity is not None:
            self._node_capacity.forget_all()
        for keeper in self._keepers:
            keeper.forget_all()

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

    def _consider(
        self, scaler: InferenceScaler | InvalidInferenceScaler, seen: _Seen | _Bug | None, now_seconds: float
    ) -> PoolReport | Considered:
        if isinstance(scaler, InvalidInferenceScaler):
            return Rejected(scaler, now_seconds)
        assert seen is not None
        if isinstance(seen, _Bug):
            return Crashed(scaler, now_seconds, seen.problem)
        if isinstance(seen.workload, WorkloadUnavailable):
            return Unobserved(scaler, now_seconds, seen.workload)
        considered = _contain("decide", _name(scaler), self._decide, scaler, seen, seen.workload, now_seconds)
        return Crashed(scaler, now_seconds, considered.problem) if isinstance(considered, _Bug) else considered

    def _decide(
        self,
        scaler: InferenceScaler,
        seen: _Seen,
        workload: Workload,
        now_seconds: float,
    ) -> Considered:
        history = self._histories.recall(scaler, workload.replicas.spec, now_seconds)
        if scaler.spec.mode is Mode.EXTERNAL_METRIC:
            behavior = scaler.spec.parameters.behavior
            history = with_followed_rescale(history, behavior, now_seconds, workload.replicas.spec)
        else:
            history = with_owner_of_zero(history, workload.replicas.spec, workload.is_count_ours)
        capacity = self._learn_capacity(scaler, seen, workload, now_seconds)
        recurring, expected = self._bursts_to_come(scaler, now_seconds)
        decision_input = DecisionInput(
            now_seconds=now_seconds,
            parameters=scaler.spec.parameters,
            replicas=workload.replicas,
            metrics=seen.metrics,
            history=history,
            learned_cold_start=workload.cold_start,
            learned_capacity=capacity.capacity if capacity else None,
            forecast=seen.forecast,
            load_rise=self._watch_arrivals(scaler, seen, now_seconds),
            recurring_bursts=recurring,
            expected_bursts=expected,
            accelerator_allowance=self._node_capacity.allowance(scaler.key) if self._node_capacity else None,
            node_move=self._node_capacity.node_move(scaler.key) if self._node_capacity else None,
        )
        decision = decide(decision_input)
        bursts = self._watch_bursts(scaler, decision_input, decision)
        return Considered(scaler, workload, decision_input, decision, capacity, bursts)

    def _watch_arrivals(self, scaler: InferenceScaler, seen: _Seen, now_seconds: float) -> LoadRise | None:
        """How the load rises; None for a policy that has no use for it."""
        if scaler.spec.parameters.objectives is None:
            return None
        arrivals = watch_arrivals(self._histories.recall_arrivals(scaler), seen.metrics, now_seconds)
        self._histories.remember_arrivals(scaler, arrivals)
        return rise_of(arrivals)

    def _bursts_to_come(
        self, scaler: InferenceScaler, now_seconds: float
    ) -> tuple[RecurringBursts | None, ExpectedBursts | None]:
        """Those that recur, else those that the policy expects."""
        parameters = scaler.spec.parameters.recurring_bursts
        memory = self._histories.recall_bursts(scaler)
        quantile_percent, amplification = parameters.quantile_percent, parameters.expected_amplification
        recurring = recurring_bursts(memory, quantile_percent, parameters.within_seconds, now_seconds, amplification)
        if recurring is not None:
            return recurring, None
        return None, expected_bursts(memory, quantile_percent, amplification)

    def _watch_bursts(
        self, scaler: InferenceScaler, decision_input: DecisionInput, decision: ScalingDecision
    ) -> BurstMemory:
        memory = watch_bursts(
            self._histories.recall_bursts(scaler),
            measured_load(decision_input, decision.recommendations),
            decision_input.replicas.serving,
            decision_input.cold_start,
            decision_input.now_seconds,
        )
        self._histories.remember_bursts(scaler, memory)
        return memory

    def _learn_capacity(
        self, scaler: InferenceScaler, seen: _Seen, workload: Workload, now_seconds: float
    ) -> CapacityMemory | None:
        """What is known of a replica's capacity after this tick; None for a policy that has no use for it."""
        objectives = scaler.spec.parameters.objectives
        if objectives is None:
            return None
        # While pods are out of the router a replica's share of the load is not what it is told for.
        is_unsteady = workload.is_rolling_out or any(pod.is_drained for pod in workload.pods)
        evidence = CapacityEvidence(
            now_seconds, seen.metrics, workload.replicas, objectives, workload.template, is_unsteady
        )
        memory = learn_capacity(self._histories.recall_capacity(scaler), evidence)
        self._histories.remember_capacity(scaler, memory)
        return memory

    def _share(
        self, considered: Sequence[PoolReport | Considered], now_seconds: float
    ) -> tuple[PoolReport | Considered, ...]:
        """Decides again for those whose share of a ceiling was not known before all others had decided too.

        After a change of leader that is everybody: without a share each would ask for all that there is.
        """
        wishes = _wishes(considered)
        if self._node_capacity is None or not wishes:
            return tuple(considered)
        shares = _contain("share", "the nodes of all pools", self._node_capacity.first_allowances, wishes, now_seconds)
        return tuple(considered) if isinstance(shares, _Bug) else tuple(_within(each, shares) for each in considered)

    def _provide(
        self,
        scalers: Sequence[InferenceScaler | InvalidInferenceScaler],
        considered: Sequence[PoolReport | Considered],
        now_seconds: float,
    ) -> Mapping[PoolKey, ReplicaSplit]:
        """Nodes before replicas. Where that fails the counts are written all the same: their pods wait for nodes.

        Returns how pools with two targets share their count between them; without that these are left alone.
        """
        if self._node_capacity is None:
            return {}
        wishes = _wishes(considered)
        referring = {scaler.key: accelerator_pool_of(scaler) for scaler in scalers if may_refer(scaler)}
        splits = _contain(
            "provide", "the nodes of all pools", self._node_capacity.provide, wishes, referring, now_seconds
        )
        return {} if isinstance(splits, _Bug) else splits

    def _carry_out(self, considered: PoolReport | Considered, splits: Mapping[PoolKey, ReplicaSplit]) -> PoolReport:
        if not isinstance(considered, Considered):
            return considered
        scaler = considered.scaler
        nodes = self._node_capacity.nodes_of_split(scaler.key) if self._node_capacity else None
        report = _contain(
            "actuate",
            _name(scaler),
            carry_out,
            considered,
            self._actuators,
            splits.get(scaler.key),
            self._marker,
            nodes,
        )
        if isinstance(report, _Bug):
            return Crashed(scaler, considered.decision_input.now_seconds, report.problem)
        self._histories.remember(scaler, report.next_history)
        return report


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
    found = metrics.get(seen.query.key, _NOT_ASKED)
    return _Seen(_without_wedged(seen.workload, found), seen.query, found, seen.forecast)


def _without_wedged(
    workload: Workload | WorkloadUnavailable, metrics: MetricsObservation | ObservationUnavailable
) -> Workload | WorkloadUnavailable:
    """The workload with the replicas that only their metrics betray among the stuck ones."""
    if isinstance(workload, WorkloadUnavailable) or isinstance(metrics, ObservationUnavailable):
        return workload
    if not metrics.wedged_replicas:
        return workload
    return replace(workload, replicas=workload.replicas.without_wedged(len(metrics.wedged_replicas)))


def _foreseeable(scaler: InferenceScaler, seen: _Seen | _Bug) -> SeenPool | None:
    """The pool, where its policy wants a forecast and it was seen."""
    parameters: ForecastParameters | None = scaler.spec.parameters.forecast
    if parameters is None or parameters.mode is ForecastMode.OFF:
        return None
    if isinstance(seen, _Bug) or seen.query is None or not isinstance(seen.workload, Workload):
        return None
    return SeenPool(seen.query, parameters, seen.workload.replicas, seen.metrics)


def _with_forecast(seen: _Seen | _Bug, forecasts: Mapping[PoolKey, Forecast | ForecastUnavailable]) -> _Seen | _Bug:
    if isinstance(seen, _Bug) or seen.query is None:
        return seen
    return _Seen(seen.workload, seen.query, seen.metrics, forecasts.get(seen.query.key))


def _wishes(considered: Iterable[PoolReport | Considered]) -> list[ReplicaWish]:
    return [wish for each in considered if isinstance(each, Considered) and (wish := wish_of(each)) is not None]


def _within(
    considered: PoolReport | Considered, shares: Mapping[PoolKey, AcceleratorAllowance]
) -> PoolReport | Considered:
    if not isinstance(considered, Considered) or considered.scaler.key not in shares:
        return considered
    share = shares[considered.scaler.key]
    decision_input = replace(considered.decision_input, accelerator_allowance=share)
    return replace(considered, decision_input=decision_input, decision=decide(decision_input))


def _contain(step: str, about: str, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | _Bug:
    """What the action returns. A bug in it is logged with its traceback and must not stop the fleet."""
    try:
        return action(*args, **kwargs)
    except Exception as error:  # the only one of its kind: everywhere else a bug may come up to here
        logger.exception("a step of the tick failed", extra={"step": step, "about": about})
        return _Bug(f"{step}: {type(error).__name__}: {error}")


def _name(scaler: InferenceScaler) -> str:
    return f"{scaler.namespace}/{scaler.name}"


def _pool_query(scaler: InferenceScaler, workload: Workload) -> PoolQuery:
    return PoolQuery(
        key=scaler.key,
        engine=scaler.spec.engine.value,
        target_name=workload.target.name,
        pods=workload.pods,
        queries=user_queries(scaler.spec),
        objectives=scaler.spec.parameters.objectives,
    )
