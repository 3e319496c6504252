"""The port through which a pool's replicas are seen, and what is seen of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.pod_requests import NO_REQUESTS, PodRequests
from policies.capacity_split import CapacityType, TargetCounts
from policies.cold_start import ColdStart, ObservedStart
from policies.observation import ReplicaCounts
from policies.reasons import Reason


@dataclass(frozen=True, slots=True)
class LivePod:
    """A pod of the target that exists and is not terminating. Several pods may make up one replica."""

    name: str
    replica: str
    is_ready: bool
    ready_since_seconds: float | None  # unix time of the last change of its Ready condition
    is_drained: bool = False  # it is out of the router, as it is to go


@dataclass(frozen=True, slots=True)
class CompetingWriter:
    """Somebody else who steers the same target: reason says which kind, `who` names it for a person."""

    reason: Reason
    who: str


@dataclass(frozen=True, slots=True)
class ScaleTarget:
    """Where the count is written. `path` is the URL path of the target's scale subresource on the API server."""

    namespace: str
    kind: str
    name: str
    path: str
    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class TargetPart:
    """One of the two targets of a pool that is split by kind of capacity."""

    capacity_type: CapacityType
    target: ScaleTarget
    counts: TargetCounts


@dataclass(frozen=True, slots=True)
class Workload:
    """What the API server says of one pool. `cache_age_seconds` is the age of the oldest watch it was read from."""

    target: ScaleTarget
    replicas: ReplicaCounts
    pods: tuple[LivePod, ...]
    competing_writers: tuple[CompetingWriter, ...] = ()
    is_paused: bool = False  # the target's own rollout is paused
    is_rolling_out: bool = False
    template: str | None = None  # identifies what a replica is made of; None: nobody says
    cache_age_seconds: float = 0.0
    is_count_ours: bool | None = None  # whether the count that stands is one we have written; None: nobody says
    accelerators_per_replica: int | None = None  # by the spec, else by the pod template; None: nobody says
    requests: PodRequests = NO_REQUESTS  # of the pod of a replica; nothing where it is not known
    cold_start: ColdStart | None = None  # as its own starts have taught; None: none has been seen
    starts: tuple[ObservedStart, ...] = ()  # the last of them, oldest first
    foreign_pods: int = 0  # its selector matches them, and they are another target's
    parts: tuple[TargetPart, ...] = ()  # on demand and spot, where the pool has two targets; `target` is the first then


@dataclass(frozen=True, slots=True)
class WorkloadUnavailable:
    """Why nothing is known of the target: not found, no /scale, not yet synced, stale cache."""

    reason: Reason
    message: str


class WorkloadObserver(Protocol):
    """Sees the replicas behind an InferenceScaler. Reads caches only; never blocks on the network."""

    def observe_workload(self, scaler: InferenceScaler, now_seconds: float) -> Workload | WorkloadUnavailable:
        """The pool's workload now, or why it cannot be seen."""
        ...
