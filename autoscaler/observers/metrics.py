"""The port through which the signals of all pools are read at once, and what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from autoscaler.observers.workload import LivePod
from policies.capacity.objectives import LatencyObjectives
from policies.observation import MetricsObservation, ObservationUnavailable

PoolKey: TypeAlias = tuple[str, str]
"""(namespace, name) of an InferenceScaler."""


@dataclass(frozen=True, slots=True)
class PoolQuery:
    """What is to be read for one pool: the signals of its live pods, and the user's own PromQL by name."""

    key: PoolKey
    engine: str
    target_name: str
    pods: tuple[LivePod, ...]
    queries: Mapping[str, str]
    objectives: LatencyObjectives | None = None


class MetricsObserver(Protocol):
    """Reads the signals of all pools in one go: the number of requests does not grow with the number of pools."""

    def observe_metrics(
        self, pools: Sequence[PoolQuery], now_seconds: float
    ) -> Mapping[PoolKey, MetricsObservation | ObservationUnavailable]:
        """An entry for every pool that was asked for, whatever happened."""
        ...
