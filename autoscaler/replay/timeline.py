"""How did a simulated pool go through a run? One reading at equal intervals."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.replay.simulated_pool import SimulatedPool


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """A pool at one moment: replicas as they stand, requests as counted since the start."""

    at_seconds: float
    wanted: int  # .spec.replicas
    ready: int
    starting: int
    draining: int
    requests_in_flight: int  # the gateway's included
    gateway_queue: int
    arrived: int
    finished: int
    met: int


class TimelineRecorder:
    """Reads one pool at equal intervals. Ticks after the controllers, so that it sees what they have written."""

    def __init__(self, pool: SimulatedPool, interval_seconds: float) -> None:
        self.interval_seconds = interval_seconds
        self.points: list[TimelinePoint] = []
        self._pool = pool

    def tick(self, now_seconds: float) -> None:
        """Keeps one reading."""
        replicas, outcomes, each = self._pool.replicas, self._pool.outcomes, self._pool.setup.sampled_one_in
        self.points.append(
            TimelinePoint(
                now_seconds,
                replicas.spec,
                replicas.ready,
                replicas.starting,
                replicas.terminating,
                self._pool.requests_in_flight,
                self._pool.gateway_queue,
                outcomes.arrived * each,
                outcomes.finished * each,
                outcomes.met * each,
            )
        )
