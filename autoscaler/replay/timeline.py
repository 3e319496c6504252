"""How did a simulated pool go through a run? One reading at equal intervals."""

from __future__ import annotations

from dataclasses import dataclass

from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.steered_fleet import SteeredPool
from policies.capacity_split import CapacityType


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
    on_demand_nodes: int = 0  # where nodes are simulated
    spot_nodes: int = 0


class TimelineRecorder:
    """Reads one pool at equal intervals. Ticks after the controllers, so that it sees what they have written."""

    def __init__(self, pool: SteeredPool, interval_seconds: float, nodes: SimulatedNodes | None = None) -> None:
        self.interval_seconds = interval_seconds
        self.points: list[TimelinePoint] = []
        self._pool = pool
        self._nodes = nodes

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
                self._existing_nodes(CapacityType.ON_DEMAND),
                self._existing_nodes(CapacityType.SPOT),
            )
        )

    def _existing_nodes(self, capacity_type: CapacityType) -> int:
        return 0 if self._nodes is None else self._nodes.existing_nodes(capacity_type)
