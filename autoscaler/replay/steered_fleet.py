"""What does a policy see of the fleet that it steers, however that fleet is simulated?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from autoscaler.actuators.actuator import ReplicaActuator
from autoscaler.observers.metrics import MetricsObserver, PoolKey
from autoscaler.observers.workload import LivePod, WorkloadObserver
from autoscaler.replay.outcomes import RequestOutcomes
from autoscaler.replay.scraped_pages import ScrapedPages
from autoscaler.replay.serving_counters import ServingSnapshot
from autoscaler.replay.simulated_pool import PoolSetup
from policies.observation import ReplicaCounts


class SteeredPool(Protocol):
    """One pool, as those see it who read its pods and its Prometheus themselves."""

    setup: PoolSetup
    is_prometheus_out: bool
    outcomes: RequestOutcomes

    @property
    def pages(self) -> ScrapedPages:
        """What has been scraped of its replicas."""
        ...

    @property
    def spec_replicas(self) -> int:
        """How many replicas were last asked for."""
        ...

    @property
    def replicas(self) -> ReplicaCounts:
        """The replicas as the API server would show them."""
        ...

    @property
    def pods(self) -> tuple[LivePod, ...]:
        """The pods that exist and do not terminate."""
        ...

    @property
    def requests_in_flight(self) -> int:
        """Requests that arrived and have not ended."""
        ...

    @property
    def gateway_queue(self) -> int:
        """Requests that no replica was ready for."""
        ...

    def pages_now(self) -> tuple[ServingSnapshot, ...]:
        """The metrics pages of the ready replicas as they are now."""
        ...

    def scale(self, replicas: int, reason: str = "", message: str = "") -> None:
        """Asks for so many replicas."""
        ...

    def explain_last_change(self, reason: str, message: str) -> None:
        """Gives the newest change of the count the policy's words."""
        ...


class SteeredFleet(WorkloadObserver, MetricsObserver, ReplicaActuator, Protocol):
    """The ports of the live controller, and the pools behind them."""

    now_seconds: float

    @property
    def pools(self) -> Mapping[PoolKey, SteeredPool]:
        """The pools by (namespace, name) of their InferenceScalers."""
        ...

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds` (simulated unix time)."""
        ...
