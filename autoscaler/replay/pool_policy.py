"""Who steers a simulated pool? The production controller, or another policy to compare it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from autoscaler.api.accelerator_pool import AcceleratorPool
from autoscaler.api.inference_scaler import InferenceScaler, InferenceScalerSpec
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Crashed, Decided, Reporter
from autoscaler.controller.reconcile import Reconciler
from autoscaler.foresight.foresight import Foresight
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_karpenter import node_capacity_of
from autoscaler.replay.simulated_victims import SimulatedVictims
from autoscaler.replay.steered_fleet import SteeredFleet
from autoscaler.replay.virtual_clock import Recurring
from policies.parameters import Mode
from policies.reasons import Reason


class PoolPolicy(Protocol):
    """A policy that can be replayed. It is made anew for every run, so it may keep what it remembers in itself."""

    @property
    def name(self) -> str:
        """The name it has in the report."""
        ...

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """What steers the fleet's pool from now on; several parts where the policy is made of several loops."""
        ...


class ReconciledPolicy:
    """InferenceScalers, applied by the reconciler of the live controller: whatever their mode says, counts are written.

    `reporters` get the reports of every tick, as in the live controller; without a `foresight` nothing is forecast.
    AcceleratorPools keep the limits of the fleet's NodePools in step, where the fleet has nodes.
    """

    def __init__(
        self,
        scalers: Sequence[InferenceScaler],
        tick_seconds: float = 15.0,
        reporters: Sequence[Reporter] = (),
        foresight: Foresight | None = None,
        accelerator_pools: Sequence[AcceleratorPool] = (),
    ) -> None:
        self._scalers = tuple(map(_as_if_we_wrote, scalers))
        self._tick_seconds = tick_seconds
        self._reporters = tuple(reporters)
        self._foresight = foresight
        self._accelerator_pools = tuple(accelerator_pools)

    @property
    def name(self) -> str:
        """The first scaler's name."""
        return self._scalers[0].name

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """One loop over all scalers."""
        actuators = dict.fromkeys(Mode, fleet)
        simulated, pools = fleet if isinstance(fleet, SimulatedFleet) else None, self._accelerator_pools
        nodes = None if simulated is None else simulated.nodes
        victims = None if simulated is None or nodes is None else SimulatedVictims(nodes, simulated.pool_of)
        node_capacity = None
        if nodes is not None and pools and victims is not None:
            node_capacity = node_capacity_of(nodes, pools, victims)
        if simulated is not None and node_capacity is not None:
            simulated.asked_for = node_capacity.asked_for
        scalers = [scaler if _has_two(simulated, scaler) else with_one_target(scaler) for scaler in self._scalers]
        reconciler = Reconciler(
            fleet,
            fleet,
            actuators,
            HistoryStore(),
            self._reporters,
            foresight=self._foresight,
            node_capacity=node_capacity,
            marker=victims,
        )
        return (_ReconcilerTick(reconciler, fleet, tuple(scalers), self._tick_seconds),)


def with_one_target(scaler: InferenceScaler) -> InferenceScaler:
    """The scaler with its first target alone, for a fleet without spot nodes."""
    if scaler.spec.capacity_types is None:
        return scaler
    one = {"capacity_types": None, "scale_target_ref": scaler.spec.first_target_ref.model_dump()}
    return replace(scaler, spec=InferenceScalerSpec.model_validate({**scaler.spec.model_dump(), **one}))


def _has_two(fleet: SimulatedFleet | None, scaler: InferenceScaler) -> bool:
    pool = None if fleet is None else fleet.pools.get(scaler.key)
    return pool is not None and pool.setup.spot_target_name is not None


def _as_if_we_wrote(scaler: InferenceScaler) -> InferenceScaler:
    """There is no HorizontalPodAutoscaler in a simulation that would write the count for us."""
    if scaler.spec.mode is not Mode.EXTERNAL_METRIC:
        return scaler
    spec = InferenceScalerSpec.model_validate({**scaler.spec.model_dump(), "mode": Mode.SCALE})
    return replace(scaler, spec=spec)


class _ReconcilerTick:
    def __init__(
        self,
        reconciler: Reconciler,
        fleet: SteeredFleet,
        scalers: tuple[InferenceScaler, ...],
        tick_seconds: float,
    ) -> None:
        self._reconciler = reconciler
        self._fleet = fleet
        self._scalers = scalers
        self.interval_seconds = tick_seconds

    def tick(self, now_seconds: float) -> None:
        for report in self._reconciler.reconcile_all(self._scalers, now_seconds):
            match report:
                case Crashed():
                    raise RuntimeError(f"{report.scaler.namespace}/{report.scaler.name}: {report.problem}")
                case Decided() if report.actuation.reason is Reason.SUCCEEDED_RESCALE:
                    pool = self._fleet.pools[report.scaler.key]
                    pool.explain_last_change(report.decision.reason.value, report.decision.message)
