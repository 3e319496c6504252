"""A fluid pool behind the ports through which the controller sees and scales real ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.replica_signals import replica_signals
from autoscaler.observers.workload import ScaleTarget, Workload, WorkloadUnavailable
from autoscaler.replay.fluid_pool import FluidPool
from autoscaler.replay.promql_reading import NotUnderstoodError, read_promql
from autoscaler.replay.simulated_prometheus import SimulatedPrometheus, unsimulated_metrics
from policies.observation import MetricsObservation, ObservationUnavailable, PoolLatency, QueryUnknown, QueryValue
from policies.reasons import Reason
from policies.recommenders.pending_requests import PENDING_REQUESTS
from policies.signals import PoolSignal, Signal

# A replica's capacity is learned from the gap whenever it was measured anew, which is most of what a decision costs.
# The law of the plant does not change: after the first two hours it is measured every half an hour only.
LEARNING_SECONDS = 7200.0
MEASURED_EVERY_SECONDS = 1800.0


class FluidFleet:
    """A WorkloadObserver, a MetricsObserver and a ReplicaActuator over one fluid pool.

    Signals are those of the flow at the moment: what the engine's pages would say if every replica had its equal part.
    Of latencies only the mean gap of tokens is known; nothing is said of quantiles.
    """

    def __init__(self, pool: FluidPool) -> None:
        self.now_seconds = pool.now_seconds
        self._pool = pool
        self._began_at = self._measured_at = pool.now_seconds
        self._measured = PoolLatency()
        self._targets: dict[int, ScaleTarget] = {}  # by how often its count has changed, the newest

    @property
    def pools(self) -> Mapping[PoolKey, FluidPool]:
        """The pool by (namespace, name) of its InferenceScaler."""
        return {self._pool.setup.key: self._pool}

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds` (simulated unix time)."""
        self._pool.advance(until_seconds)
        self.now_seconds = until_seconds

    def observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> Workload | WorkloadUnavailable:
        """The pool's pods as they are at the time the fleet was advanced to. Nothing is ever stuck here."""
        pool, seen = self._pool, self._pool.seen_starts
        if scaler.key != pool.setup.key:
            return WorkloadUnavailable(Reason.TARGET_NOT_FOUND, f"{scaler.name} is not part of the simulated fleet")
        return Workload(
            target=self._target(len(pool.count_changes)),
            replicas=pool.replicas,
            pods=pool.pods,
            is_rolling_out=False,
            cold_start=seen.learned(scaler.spec.cold_start.prior_seconds) if seen.starts else None,
            starts=seen.starts,
        )

    def observe_metrics(
        self, pools: Sequence[PoolQuery], now_seconds: float
    ) -> Mapping[PoolKey, MetricsObservation | ObservationUnavailable]:
        """What the flow shows of each pool that is asked for."""
        return {query.key: self._observe(query, now_seconds) for query in pools}

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Writes the count."""
        self._pool.scale(to_replicas)
        return Actuated(Reason.SUCCEEDED_RESCALE, f"scaled from {from_replicas} to {to_replicas}")

    def _observe(self, query: PoolQuery, now_seconds: float) -> MetricsObservation:
        pool, flow = self._pool, self._pool.flow
        ready = pool.replicas.ready
        values = self._per_replica(ready) if ready else dict.fromkeys(replica_signals(query.engine), 0.0)
        is_busy = ready > 0 and flow.served_per_second > 0
        return MetricsObservation(
            signals={
                signal: _equal_parts(values[signal], ready)
                for signal in replica_signals(query.engine)
                if signal in values
            },
            queries={name: self._answer(name, text, now_seconds) for name, text in query.queries.items()},
            ready_replicas=ready,
            fresh_replicas=ready,
            prompt_tokens_per_request=flow.input_tokens if pool.served else None,
            generation_tokens_per_request=flow.output_tokens if pool.served else None,
            latency=self._latency(now_seconds) if is_busy else PoolLatency(),
        )

    def _target(self, changes: int) -> ScaleTarget:
        if changes not in self._targets:
            self._targets = {changes: self._pool.setup.target_at(changes)}
        return self._targets[changes]

    def _latency(self, now_seconds: float) -> PoolLatency:
        """The gap as it was last measured."""
        age = now_seconds - self._began_at
        if age <= LEARNING_SECONDS or now_seconds - self._measured_at >= MEASURED_EVERY_SECONDS:
            self._measured_at, gap_seconds = now_seconds, self._pool.busy_replica.token_gap_seconds
            self._measured = PoolLatency(
                mean_time_per_output_token_seconds=gap_seconds, measured_at_seconds=self._measured_at
            )
        return self._measured

    def _per_replica(self, ready: int) -> Mapping[Signal, float]:
        flow, busy, capacity = self._pool.flow, self._pool.busy_replica, self._pool.setup.profile.kv_capacity_tokens
        arriving, served = flow.arriving_per_second / ready, flow.served_by_each
        return {
            Signal.RUNNING_REQUESTS: busy.running_requests,
            Signal.WAITING_REQUESTS: self._pool.backlog / ready,
            Signal.KV_CACHE_USAGE: busy.held_tokens / capacity,
            Signal.KV_CACHE_USED_TOKENS: busy.held_tokens,
            Signal.KV_CACHE_CAPACITY_TOKENS: capacity,
            Signal.PROMPT_TOKENS: served * flow.input_tokens,
            Signal.GENERATION_TOKENS: served * flow.output_tokens,
            Signal.REQUESTS_FINISHED: served,
            Signal.PREEMPTIONS: 0.0,
            Signal.REQUESTS_ARRIVED: arriving,
            Signal.REQUESTS_ARRIVED_RECENTLY: arriving,
        }

    def _answer(self, name: str, text: str, now_seconds: float) -> QueryValue | QueryUnknown:
        """As in an exact run: `pendingRequests` that no replica exposes is what waits with no replica ready."""
        pool = self._pool
        try:
            expression = read_promql(text)
        except NotUnderstoodError as error:
            if name == PENDING_REQUESTS:
                return QueryValue(float(pool.gateway_queue), age_seconds=0.0)
            return QueryUnknown(f"in a simulation: {error}")
        if name == PENDING_REQUESTS and unsimulated_metrics(expression):
            return QueryValue(float(pool.gateway_queue), age_seconds=0.0)
        live = [pod.name for pod in pool.pods if pod.is_ready]
        prometheus = SimulatedPrometheus(pool.pages, pool.setup.profile.kv_capacity_tokens, lambda: live)
        answer = prometheus.ask(expression, now_seconds)
        values = list(answer.values()) if isinstance(answer, dict) else [answer]
        total = math.fsum(values) if values else math.nan
        if not math.isfinite(total) or total < 0:
            return QueryUnknown("the query has no number that could be used")
        return QueryValue(total, age_seconds=0.0)


def _equal_parts(value: float, replicas: int) -> PoolSignal:
    """One signal of replicas that are all alike."""
    return PoolSignal(value * replicas, value if replicas else 0.0, replicas)
