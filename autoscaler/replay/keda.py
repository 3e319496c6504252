"""What does KEDA 2.21 with its HPA do with a simulated pool? It polls every 30 s, and its HPA syncs every 15 s.

The poll alone steps between zero and one (or the minimum) and counts failures; every HPA sync asks each trigger anew
and counts failures too, so that both loops together reach a failure threshold sooner than either. A trigger in fallback
reports `target x fallback replicas`. Read in KEDA's source: pkg/scaling/executor, pkg/fallback, pkg/scalers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from autoscaler.replay.promql_reading import Expression
from autoscaler.replay.simulated_prometheus import SeveralSeriesError, single_value
from autoscaler.replay.steered_fleet import SteeredFleet
from autoscaler.replay.stock_hpa import DEFAULT_TOLERANCE, HPASync, PoolWorld, StockHPA, world_of
from autoscaler.replay.virtual_clock import Recurring
from policies.constraints.behavior import ScalingBehavior
from policies.hpa.metric_proposal import Tolerance, milli_target, milli_value
from policies.hpa.metrics import (
    FAILED_GET_EXTERNAL_METRIC,
    FailedMetric,
    MeasuredMetric,
    Metric,
    TargetType,
)
from policies.recommenders.schedule import ScheduleWindow, open_windows


class FallbackBehavior(StrEnum):
    """Which count a trigger in fallback stands for."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    CURRENT_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_IF_LOWER = "currentReplicasIfLower"


@dataclass(frozen=True, slots=True)
class Fallback:
    """More consecutive failures than this, and the trigger stands for `replicas`."""

    failure_threshold: int
    replicas: int
    behavior: FallbackBehavior = FallbackBehavior.STATIC

    def count(self, current: int) -> int:
        """The count it stands for, now that `current` replicas are asked for."""
        match self.behavior:
            case FallbackBehavior.STATIC:
                return self.replicas
            case FallbackBehavior.CURRENT:
                return current
            case FallbackBehavior.CURRENT_IF_HIGHER:
                return max(current, self.replicas)
            case FallbackBehavior.CURRENT_IF_LOWER:
                return min(current, self.replicas)


class Trigger(Protocol):
    """One trigger of a ScaledObject."""

    @property
    def target_type(self) -> TargetType:
        """Per pod, or for the whole."""
        ...

    @property
    def target(self) -> float:
        """The value at which nothing is to change."""
        ...

    @property
    def activation(self) -> float:
        """Above this (strictly) the trigger is active."""
        ...

    @property
    def is_cached(self) -> bool:
        """Whether the HPA is given the last poll's value."""
        ...

    def value(self, world: PoolWorld, now_seconds: float) -> float | None:
        """What it measures; None where that fails."""
        ...


@dataclass(frozen=True, slots=True)
class PrometheusTrigger:
    """A query for one number. No series, NaN and infinity are 0 where nulls are ignored, else a failure."""

    query: Expression
    target: float
    activation: float = 0.0
    target_type: TargetType = TargetType.AVERAGE_VALUE
    ignores_nulls: bool = True
    is_cached: bool = False

    def value(self, world: PoolWorld, now_seconds: float) -> float | None:
        """Negative values count as 0; several series are a failure always, and so is an outage."""
        if world.pool.is_prometheus_out:
            return None
        try:
            value = single_value(world.prometheus.ask(self.query, now_seconds))
        except SeveralSeriesError:
            return None
        if value is None or not math.isfinite(value):
            return 0.0 if self.ignores_nulls else None
        return max(0.0, value)


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """`replicas` while the window is open, else 0; the target is 1 a pod."""

    window: ScheduleWindow
    replicas: int
    target: float = 1.0
    activation: float = 0.0
    target_type: TargetType = TargetType.AVERAGE_VALUE
    is_cached: bool = False

    def value(self, world: PoolWorld, now_seconds: float) -> float | None:
        """Known always."""
        return float(self.replicas) if open_windows((self.window,), now_seconds) else 0.0


@dataclass(frozen=True, slots=True)
class ScaledObject:
    """One ScaledObject, with KEDA's defaults."""

    name: str
    triggers: tuple[Trigger, ...]
    minimum: int = 0
    maximum: int = 100
    idle: int | None = None
    polling_seconds: float = 30.0
    cooldown_seconds: float = 300.0
    fallback: Fallback | None = None
    behavior: ScalingBehavior | None = None
    tolerance: Tolerance = DEFAULT_TOLERANCE

    def controllers(self, fleet: SteeredFleet) -> Sequence[Recurring]:
        """KEDA's poll, then the HPA that it makes: its minimum is at least 1."""
        world = world_of(fleet)
        health = [_Health() for _ in self.triggers]
        hpa = StockHPA(
            name=self.name,
            minimum=max(1, self.minimum),
            maximum=self.maximum,
            metrics=tuple(
                _TriggerMetric(trigger, self, state) for trigger, state in zip(self.triggers, health, strict=True)
            ),
            behavior=self.behavior,
            tolerance=self.tolerance,
        )
        return (_Poll(self, world, health), _SyncUnlessAsleep(hpa, world))


@dataclass(slots=True)
class _Health:
    """A trigger's failures in a row, over both loops, and what the last poll read."""

    failures: int = 0
    polled: float | None = None

    def note(self, value: float | None) -> None:
        self.failures = 0 if value is not None else self.failures + 1


@dataclass(frozen=True, slots=True)
class _TriggerMetric:
    trigger: Trigger
    scaled_object: ScaledObject
    health: _Health = field(compare=False)

    def read(self, world: PoolWorld, now_seconds: float) -> Metric:
        trigger, fallback = self.trigger, self.scaled_object.fallback
        value = self.health.polled if trigger.is_cached else trigger.value(world, now_seconds)
        self.health.note(value)
        target_milli = milli_target(trigger.target)
        if value is None:
            if fallback is None or self.health.failures <= fallback.failure_threshold:
                return FailedMetric(FAILED_GET_EXTERNAL_METRIC, is_external=True)
            count = fallback.count(world.pool.spec_replicas)
            if trigger.target_type is TargetType.VALUE:
                ready = world.pool.replicas.ready
                if not ready:
                    return FailedMetric(FAILED_GET_EXTERNAL_METRIC, is_external=True)
                return MeasuredMetric(TargetType.VALUE, target_milli, (milli_value(trigger.target * count / ready),))
            return MeasuredMetric(TargetType.AVERAGE_VALUE, target_milli, (target_milli * count,))
        return MeasuredMetric(trigger.target_type, target_milli, (milli_value(value),))


class _SyncUnlessAsleep(HPASync):
    """An HPA leaves a target at zero alone; what it remembers stays."""

    def __init__(self, hpa: StockHPA, world: PoolWorld) -> None:
        super().__init__(hpa, world)
        self._pool = world.pool

    def tick(self, now_seconds: float) -> None:
        if self._pool.spec_replicas > 0:
            super().tick(now_seconds)


class _Poll:
    """The activation loop: who is active, and the steps between zero and the first replicas."""

    def __init__(self, scaled_object: ScaledObject, world: PoolWorld, health: Sequence[_Health]) -> None:
        self.interval_seconds = scaled_object.polling_seconds
        self._object = scaled_object
        self._world = world
        self._health = health
        self._last_active_at: float | None = None

    def tick(self, now_seconds: float) -> None:
        scaled_object, pool = self._object, self._world.pool
        is_active = has_failed = False
        for trigger, health in zip(scaled_object.triggers, self._health, strict=True):
            value = trigger.value(self._world, now_seconds)
            health.polled = value
            health.note(value)
            has_failed = has_failed or value is None
            is_active = is_active or (value is not None and value > trigger.activation)
            is_active = is_active or self._is_in_fallback(health)
        current = pool.spec_replicas
        if is_active:
            if not has_failed:
                self._last_active_at = now_seconds
            least = scaled_object.minimum or 1
            if current == 0 or (scaled_object.idle is not None and current < scaled_object.minimum):
                pool.scale(least, "KEDAScaleTargetActivated", "a trigger is active")
        elif has_failed:
            return
        elif self._may_sleep(now_seconds, current):
            pool.scale(scaled_object.idle or 0, "KEDAScaleTargetDeactivated", "no trigger is active")
        elif 0 < current < scaled_object.minimum and scaled_object.idle is None:
            pool.scale(scaled_object.minimum, "ScaledToMinimum", "below minReplicaCount")

    def _is_in_fallback(self, health: _Health) -> bool:
        fallback = self._object.fallback
        return fallback is not None and health.failures > fallback.failure_threshold

    def _may_sleep(self, now_seconds: float, current: int) -> bool:
        scaled_object = self._object
        if scaled_object.minimum > 0 and scaled_object.idle is None:
            return False
        if current <= (scaled_object.idle or 0):
            return False
        return self._last_active_at is None or now_seconds - self._last_active_at > scaled_object.cooldown_seconds
