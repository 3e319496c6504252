"""What does the page show? An immutable snapshot of the fleet that the loop replaces by assignment after each tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoscaler.dashboard.series import NO_SERIES, PoolSeries
from forecasting.forecast import Forecast
from policies.decision import ScalingDecision
from policies.observation import ReplicaCounts


@dataclass(frozen=True, slots=True)
class FleetSource:
    """Where the numbers come from: said on the page, so that nobody takes a simulation for a cluster."""

    title: str
    about: str
    is_simulated: bool
    seconds_per_second: float = 1.0  # how much faster than real time


@dataclass(frozen=True, slots=True)
class CountChange:
    """A decision for another count, and what came of the write."""

    at_seconds: float
    from_replicas: int
    to_replicas: int
    reason: str
    message: str
    outcome: str


@dataclass(frozen=True, slots=True)
class PoolView:
    """One pool. `problem` says why nothing was decided at the last tick; what was known before it stays."""

    namespace: str
    name: str
    engine: str
    mode: str
    min_replicas: int
    max_replicas: int
    at_seconds: float
    problem: str | None = None
    replicas: ReplicaCounts | None = None
    decision: ScalingDecision | None = None
    outcome: str | None = None
    forecast: Forecast | None = None
    changes: tuple[CountChange, ...] = ()  # newest first
    series: PoolSeries = NO_SERIES

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """All pools after one tick, in the order of the tick."""

    source: FleetSource
    now_seconds: float
    pools: Mapping[tuple[str, str], PoolView]
