"""What goes wrong in a simulated pool, and when? Times are seconds from the start of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from autoscaler.replay.cold_start import ColdStart
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
        """Its begin and its end."""

        def set_out(is_out: bool) -> None:
            pool.is_prometheus_out = is_out

        return _between(self, run_starts_at_seconds, lambda: set_out(True), lambda: set_out(False))


@dataclass(frozen=True, slots=True)
class LateMetrics:
    """Samples can be queried so long after they were taken, instead of after the setup's delay."""

    at_seconds: float
    delay_seconds: float
    lasts_seconds: float = inf

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin and its end."""

        def set_delay(seconds: float) -> None:
            pool.pages.delay_seconds = seconds

        return _between(
            self,
            run_starts_at_seconds,
            lambda: set_delay(self.delay_seconds),
            lambda: set_delay(pool.setup.scrape.delay_seconds),
        )


@dataclass(frozen=True, slots=True)
class UnscrapedReplicas:
    """The scrapes of this share of the replicas fail, of those that come as of those that are there; 1.0 is all."""

    at_seconds: float
    share: float
    lasts_seconds: float = inf

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin and its end."""

        def set_share(share: float) -> None:
            pool.unscraped_share = share

        return _between(self, run_starts_at_seconds, lambda: set_share(self.share), lambda: set_share(0.0))


@dataclass(frozen=True, slots=True)
class WedgedReplicas:
    """The oldest replicas stop computing, but stay Ready, take requests and show their metrics."""

    at_seconds: float
    replicas: int = 1
    lasts_seconds: float = inf

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin and its end."""
        return _between(self, run_starts_at_seconds, lambda: pool.wedge(self.replicas), pool.unwedge)


@dataclass(frozen=True, slots=True)
class NodeShortage:
    """New pods find no node until it ends; then all that wait begin to start."""

    at_seconds: float
    lasts_seconds: float = inf

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin and its end."""
        return _between(self, run_starts_at_seconds, lambda: pool.set_nodes(False), lambda: pool.set_nodes(True))


@dataclass(frozen=True, slots=True)
class OtherColdStart:
    """Pods that are made meanwhile start as `cold_start` says: a cold registry, larger weights."""

    at_seconds: float
    cold_start: ColdStart
    lasts_seconds: float = inf

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin and its end."""
        return _between(
            self,
            run_starts_at_seconds,
            lambda: pool.set_cold_start(self.cold_start),
            lambda: pool.set_cold_start(pool.setup.cold_start),
        )


@dataclass(frozen=True, slots=True)
class LostReplicas:
    """The oldest replicas are taken away after their notice (a spot node's 120 s; 0: the node dies with its requests).

    Others are started for them at once, as a Deployment does.
    """

    at_seconds: float
    replicas: int = 1
    notice_seconds: float = 0.0

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """The notice."""
        moment = run_starts_at_seconds + self.at_seconds
        return (TimedEvent(moment, lambda: pool.drain_replicas(self.replicas, self.notice_seconds)),)


@dataclass(frozen=True, slots=True)
class Rollout:
    """The target's template is changed: every pod is replaced, a quarter of surge pods at a time."""

    at_seconds: float

    def events(self, pool: SimulatedPool, run_starts_at_seconds: float) -> Sequence[TimedEvent]:
        """Its begin; it ends when every pod is new."""
        return (TimedEvent(run_starts_at_seconds + self.at_seconds, pool.begin_rollout),)


class _Lasting(Protocol):
    @property
    def at_seconds(self) -> float: ...

    @property
    def lasts_seconds(self) -> float: ...


def _between(
    fault: _Lasting, run_starts_at_seconds: float, begin: Callable[[], None], end: Callable[[], None]
) -> tuple[TimedEvent, ...]:
    begins_at = run_starts_at_seconds + fault.at_seconds
    return (TimedEvent(begins_at, begin), TimedEvent(begins_at + fault.lasts_seconds, end))
