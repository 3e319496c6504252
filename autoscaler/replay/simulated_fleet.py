"""The plant: simulated pools behind the ports through which the controller sees and scales real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.observers.metrics import PoolKey, PoolQuery
from autoscaler.observers.workload import ScaleTarget, TargetPart, Workload, WorkloadUnavailable
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_metrics import SimulatedMetrics
from autoscaler.replay.simulated_nodes import STEP_SECONDS, SimulatedNodes
from autoscaler.replay.simulated_pool import PoolSetup, SimulatedPool
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.reasons import Reason


class SimulatedFleet:
    """A WorkloadObserver, a MetricsObserver and a ReplicaActuator over pools on simulated time.

    `advance` brings all pools to one moment; observations and writes then are of that moment. The same pools,
    requests and seed give the same run, whatever the machine.
    """

    def __init__(
        self,
        pools: Sequence[tuple[PoolSetup, Iterator[Request]]],
        started_at_seconds: float,
        seed: int,
        nodes: SimulatedNodes | None = None,
    ) -> None:
        """Requests of each pool come in order of arrival, in simulated unix seconds. Without `nodes` a replica finds
        one at once. Nodes that a sampled fleet stands on stand for as many as its replicas do.
        """
        self.nodes = nodes
        # For which count two targets as they stand were made; None where that is not known.
        self.asked_for: Callable[[PoolKey, Sequence[TargetPart]], int | None] = lambda _key, _parts: None
        self._next_step = started_at_seconds + STEP_SECONDS
        self.now_seconds = started_at_seconds
        self._pools: dict[PoolKey, SimulatedPool] = {}
        self._metrics: dict[PoolKey, SimulatedMetrics] = {}
        for number, (setup, requests) in enumerate(pools):
            generator = np.random.default_rng([seed, number])
            pool = SimulatedPool(setup, requests, generator, started_at_seconds)
            self._pools[setup.key] = pool
            self._metrics[setup.key] = SimulatedMetrics(setup.engine, setup.profile.kv_capacity_tokens, pool.pages)
            if nodes is not None:
                nodes.take_in(pool)

    @property
    def pools(self) -> Mapping[PoolKey, SimulatedPool]:
        """The pools by (namespace, name) of their InferenceScalers."""
        return self._pools

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds` (simulated unix time)."""
        if self.nodes is not None:
            while self._next_step <= until_seconds:
                self._advance_pools(self._next_step)
                self.nodes.step(tuple(self._pools.values()), self._next_step)
                self._next_step += STEP_SECONDS
        self._advance_pools(until_seconds)
        self.now_seconds = until_seconds

    def _advance_pools(self, until_seconds: float) -> None:
        for pool in self._pools.values():
            pool.advance(until_seconds)

    def observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> Workload | WorkloadUnavailable:
        """The pool's pods as they are at the time the fleet was advanced to."""
        pool = self._pools.get(scaler.key)
        if pool is None or scaler.spec.first_target_ref.name != pool.setup.target_name:
            reference = scaler.spec.first_target_ref
            return WorkloadUnavailable(
                Reason.TARGET_NOT_FOUND,
                f"{reference.kind} {scaler.namespace}/{reference.name} is not part of the simulated fleet",
            )
        seen = pool.seen_starts
        cold_start = seen.learned(scaler.spec.cold_start.prior_seconds)
        parts = _parts(pool)
        asked_for = self.asked_for(scaler.key, parts) if parts else None
        spec = pool.spec_replicas if asked_for is None else asked_for
        counts = pool.replicas_of(spec, cold_start.node_limit_seconds)
        late = min(pool.starting_longer_than(cold_start.start_limit_seconds), counts.starting)
        return Workload(
            target=parts[0].target if parts else pool.target_now(),
            replicas=replace(counts, starting=counts.starting - late, stuck=counts.stuck + late),
            pods=pool.pods,
            is_rolling_out=pool.is_rolling_out,
            accelerators_per_replica=None if self.nodes is None else pool.setup.profile.accelerators_per_replica,
            cold_start=cold_start if seen.starts else None,
            starts=seen.starts,
            parts=parts,
        )

    def observe_metrics(
        self, pools: Sequence[PoolQuery], now_seconds: float
    ) -> Mapping[PoolKey, MetricsObservation | ObservationUnavailable]:
        """What has been scraped of each pool by `now_seconds`."""
        return {query.key: self._observe_pool(query, now_seconds) for query in pools}

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        """Writes the count, unless it is another than the one that was observed."""
        pool = self.pool_of(target)
        if pool is None:
            return ActuationFailed(Reason.FAILED_UPDATE_SCALE, f"{target.name} is not part of the simulated fleet")
        kind = pool.kind_of(target.name)
        count = pool.count_of(kind)
        if count != from_replicas or pool.target_now(kind) != target:
            return ActuationFailed(
                Reason.CONFLICT, f"{target.name} has {count} replicas and was changed since it was read"
            )
        pool.scale(to_replicas, capacity_type=kind)
        return Actuated(Reason.SUCCEEDED_RESCALE, f"scaled from {from_replicas} to {to_replicas}")

    def _observe_pool(self, query: PoolQuery, now_seconds: float) -> MetricsObservation | ObservationUnavailable:
        pool = self._pools.get(query.key)
        if pool is None:
            return ObservationUnavailable(
                Reason.METRICS_UNAVAILABLE, f"{query.target_name} is not part of the simulated fleet"
            )
        if pool.is_prometheus_out:
            return ObservationUnavailable(Reason.PROMETHEUS_UNREACHABLE, "the simulated Prometheus does not answer")
        return self._metrics[query.key].observe(query, pool.gateway_queue, now_seconds)

    def pool_of(self, target: ScaleTarget) -> SimulatedPool | None:
        """The pool behind a target; None where none is."""
        for pool in self._pools.values():
            if pool.setup.namespace == target.namespace and target.name in pool.setup.kinds.values():
                return pool
        return None


def _parts(pool: SimulatedPool) -> tuple[TargetPart, ...]:
    """The two targets of a pool; none where it has one."""
    return tuple(
        TargetPart(kind, pool.target_now(kind), pool.counts_of(kind)) for kind in pool.setup.kinds if kind is not None
    )
