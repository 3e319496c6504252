"""What does a stock HorizontalPodAutoscaler do with a simulated pool? Its own sync, every 15 s (`policies/hpa`).

A failing metric is one that gives no value; HPA's own rules say what then happens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.replay.simulated_prometheus import SimulatedPrometheus
from autoscaler.replay.steered_fleet import SteeredFleet, SteeredPool
from autoscaler.replay.virtual_clock import Recurring
from policies.constraints.behavior import ScalingBehavior
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import Metric, PodCounts
from policies.hpa.reconcile import HPAMemory, HPASpec, reconcile

SYNC_SECONDS = 15.0
DEFAULT_TOLERANCE = Tolerance(0.1, 0.1)  # kube-controller-manager's


class HPAMetricSource(Protocol):
    """Where one metric of an HPA comes from."""

    def read(self, world: PoolWorld, now_seconds: float) -> Metric:
        """The metric at one sync, FailedMetric where it has no value."""
        ...


@dataclass(frozen=True, slots=True)
class PoolWorld:
    """The pool and the Prometheus that scrapes it."""

    pool: SteeredPool
    prometheus: SimulatedPrometheus

    @property
    def pods(self) -> PodCounts:
        """The pool as an HPA counts it."""
        replicas = self.pool.replicas
        return PodCounts(replicas.spec, replicas.status, replicas.ready, replicas.status + replicas.terminating)


@dataclass(frozen=True, slots=True)
class StockHPA:
    """One HPA: bounds, behavior (None: the controller's own windows), tolerance, and where its metrics come from."""

    name: str
    minimum: int
    maximum: int
    metrics: tuple[HPAMetricSource, ...]
    behavior: ScalingBehavior | None = None
    tolerance: Tolerance = DEFAULT_TOLERANCE

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """The HPA controller's loop over the fleet's only pool."""
        return (HPASync(self, world_of(fleet)),)


def world_of(fleet: SteeredFleet) -> PoolWorld:
    """The fleet's only pool and what is scraped of it."""
    (pool,) = fleet.pools.values()
    prometheus = SimulatedPrometheus(
        pool.pages, pool.setup.profile.kv_capacity_tokens, lambda: [pod.name for pod in pool.pods if pod.is_ready]
    )
    return PoolWorld(pool, prometheus)


class HPASync:
    """The HPA controller's loop over one HPA."""

    interval_seconds = SYNC_SECONDS

    def __init__(self, hpa: StockHPA, world: PoolWorld) -> None:
        self._hpa = hpa
        self._world = world
        self._memory = HPAMemory()

    def tick(self, now_seconds: float) -> None:
        """One sync; a changed count is written."""
        hpa = self._hpa
        spec = HPASpec(
            minimum=hpa.minimum,
            maximum=hpa.maximum,
            metrics=tuple(metric.read(self._world, now_seconds) for metric in hpa.metrics),
            tolerance=hpa.tolerance,
            behavior=hpa.behavior,
        )
        outcome = reconcile(spec, self._world.pods, self._memory, now_seconds)
        self._memory = outcome.memory
        if outcome.is_rescaled:
            limited = outcome.conditions.get("ScalingLimited", "")
            self._world.pool.scale(outcome.replicas, limited.partition("/")[2], outcome.rescale_reason)
