"""What goes wrong in a simulated pool, and when? Times are seconds from the start of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.replay.simulated_pool import SimulatedPool
from autoscaler.replay.virtual_clock import TimedEvent


class Fault(Protocol):
    """One thing that goes wrong, and perhaps becomes right again."""

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """What happens to the pool, and when in simulated unix time."""
        ...


@dataclass(frozen=True, slots=True)
class PrometheusOutage:
    """Nothing can be queried; samples are still taken, as by a Prometheus that is only out of reach."""

    at_seconds: float
    lasts_seconds: float

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """The outage's begin and end."""

        def begin() -> None:
            pool.is_prometheus_out = True

        def end() -> None:
            pool.is_prometheus_out = False

        begins_at = run_starts_at_seconds + self.at_seconds
        return (TimedEvent(begins_at, begin), TimedEvent(begins_at + self.lasts_seconds, end))
