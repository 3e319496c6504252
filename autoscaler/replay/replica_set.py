"""Which pods does a simulated pool have? They are made, become ready, drain, are lost and are replaced, as a
Deployment's are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from autoscaler.replay.cold_start import ColdStart
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.serving_replica import ServingReplica
from policies.capacity_split import CapacityType

# A Deployment's own maxSurge; maxUnavailable is taken to be 0, as is usual for replicas that take minutes to start.
SURGE_SHARE = 0.25


@dataclass(slots=True)
class SimulatedPod:
    """One pod, which is one replica. It starts until `ready_at`, then serves, then drains until `ends_at`."""

    name: str
    revision: int
    created_at: float
    ready_at: float  # infinite while there is no node for it
    scrape_luck: float  # from 0 to 1: the lower, the sooner its scrapes fail where some do
    popularity: float  # of its part of the users, with mean 1, for a router that does not balance
    generator: np.random.Generator
    serving: ServingReplica
    next_scrape_at: float = math.inf
    ends_at: float = math.inf
    is_reclaimed: bool = False  # its node has had its notice
    deletion_cost: int = 0  # of ready pods that with the lowest goes first
    capacity_type: CapacityType | None = None  # the only kind of node that it runs on; None: it runs on any
    node_seconds: float | None = None  # how long it has waited for its node, where nodes are simulated

    @property
    def requests_in_flight(self) -> int:
        """Running or waiting on it."""
        return self.serving.requests_in_flight


class ReplicaSet:
    """The pods of one pool by what they do. Every pod has chances of its own, whatever happens to the others."""

    def __init__(
        self, name: str, profile: ReplicaProfile, cold_start: ColdStart, generator: np.random.Generator
    ) -> None:
        self._wanted: dict[CapacityType | None, int] = {}
        self.starting: list[SimulatedPod] = []
        self.ready: list[SimulatedPod] = []
        self.draining: list[SimulatedPod] = []
        self.is_rolling_out = False
        self.cold_start = cold_start  # of the pods made from now on
        self.has_nodes = True  # whether a new pod finds a node
        self.neighbours: Callable[[SimulatedPod], int] = lambda _: 0  # other replicas on a pod's node
        self._name = name
        self._profile = profile
        self._generator = generator
        self._revision = 1
        self._created = 0

    @property
    def wanted(self) -> int:
        """The pods of all kinds together that are asked for."""
        return sum(self._wanted.values())

    @property
    def pods(self) -> int:
        """Those that exist and are not draining; during a rollout more than are wanted."""
        return len(self.starting) + len(self.ready)

    @property
    def nodeless(self) -> list[SimulatedPod]:
        """Pods that wait for a node."""
        return [pod for pod in self.starting if math.isinf(pod.ready_at)]

    def add_ready(self, replicas: int, now_seconds: float, capacity_type: CapacityType | None = None) -> None:
        """Adds pods that become ready at once, as at the beginning of a run."""
        self._wanted[capacity_type] = self._wanted.get(capacity_type, 0) + replicas
        self.starting += [self._make_pod(now_seconds, now_seconds, capacity_type) for _ in range(replicas)]

    def set_wanted(
        self, replicas: int, now_seconds: float, grace_seconds: float, capacity_type: CapacityType | None = None
    ) -> None:
        """Another count of a kind: missing pods start. Of surplus ones those that start go first, then those with the
        lowest deletion cost, then those that share a node with the most others, then the youngest, as in a ReplicaSet.
        """
        self._wanted[capacity_type] = replicas
        self._fit(now_seconds, grace_seconds)

    def start_ready(self, now_seconds: float) -> list[SimulatedPod]:
        """The pods that have become ready since the last call, in the order in which they were made."""
        became_ready = [pod for pod in self.starting if pod.ready_at <= now_seconds]
        if became_ready:
            self.starting = [pod for pod in self.starting if pod.ready_at > now_seconds]
            self.ready += became_ready
        return became_ready

    def begin_rollout(self) -> None:
        """From now on every pod of today is replaced by a new one."""
        self._revision += 1
        self.is_rolling_out = True

    def go_on_with_rollout(self, now_seconds: float, grace_seconds: float) -> None:
        """Surge pods start; for each new one that is ready an old one goes."""
        old = [pod for pod in self.ready if pod.revision < self._revision]
        if not old and all(pod.revision == self._revision for pod in self.starting):
            self.is_rolling_out = False
        for pod in old[: max(0, len(self.ready) - self.wanted)]:
            self._drain(pod, now_seconds + grace_seconds)
        self._fit(now_seconds, grace_seconds)

    def drain(self, pods: list[SimulatedPod], now_seconds: float, grace_seconds: float) -> None:
        """These pods of the ready ones go after their grace, and others are started for them."""
        for pod in pods:
            self._drain(pod, now_seconds + grace_seconds)
        self._fit(now_seconds, grace_seconds)

    def lose(self, pods: Sequence[SimulatedPod], ends_at: float, now_seconds: float, grace_seconds: float) -> None:
        """These pods lose their node at `ends_at`, and others are started for them. Those that start go at once."""
        for pod in pods:
            if pod in self.starting:
                self.starting.remove(pod)
            elif pod in self.ready:
                self._drain(pod, min(ends_at, now_seconds + grace_seconds))
            pod.ends_at = min(pod.ends_at, ends_at)
        self._fit(now_seconds, grace_seconds)

    def give_nodes(self, now_seconds: float) -> None:
        """There are nodes again: the pods that have waited begin to start."""
        self.has_nodes = True
        for pod in self.starting:
            if math.isinf(pod.ready_at):
                pod.ready_at = now_seconds + self.cold_start.draw_seconds(pod.generator)

    def _fit(self, now_seconds: float, grace_seconds: float) -> None:
        for capacity_type, wanted in self._wanted.items():
            self._fit_kind(capacity_type, wanted, now_seconds, grace_seconds)

    def _fit_kind(
        self, capacity_type: CapacityType | None, wanted: int, now_seconds: float, grace_seconds: float
    ) -> None:
        """Each kind is a Deployment of its own."""
        starting = [pod for pod in self.starting if pod.capacity_type is capacity_type]
        ready = [pod for pod in self.ready if pod.capacity_type is capacity_type]
        pods = len(starting) + len(ready)
        newest = sum(pod.revision == self._revision for pod in (*starting, *ready))
        allowed = wanted + (math.ceil(SURGE_SHARE * wanted) if self.is_rolling_out else 0)
        for _ in range(min(allowed - pods, wanted - newest)):
            made = self._make_pod(now_seconds, math.inf, capacity_type)
            if self.has_nodes:
                made.ready_at = now_seconds + self.cold_start.draw_seconds(made.generator)
            self.starting.append(made)
        for _ in range(pods - allowed):
            if starting:
                goes = ([pod for pod in starting if math.isinf(pod.ready_at)] or starting)[-1]
                starting.remove(goes)
                self.starting.remove(goes)
            else:
                victim = max(ready, key=self._rank_of_victim)
                ready.remove(victim)
                self._drain(victim, now_seconds + grace_seconds)

    def _rank_of_victim(self, pod: SimulatedPod) -> tuple[int, int, int, float, str]:
        return (-pod.revision, -pod.deletion_cost, self.neighbours(pod), pod.ready_at, pod.name)

    def _drain(self, pod: SimulatedPod, ends_at: float) -> None:
        self.ready.remove(pod)
        pod.ends_at = ends_at
        self.draining.append(pod)

    def _make_pod(self, now_seconds: float, ready_at: float, capacity_type: CapacityType | None = None) -> SimulatedPod:
        self._created += 1
        (generator,) = self._generator.spawn(1)
        return SimulatedPod(
            name=f"{self._name}-{self._created:05d}",
            revision=self._revision,
            created_at=now_seconds,
            ready_at=ready_at,
            scrape_luck=float(generator.uniform()),
            popularity=float(generator.lognormal(-0.5, 1.0)),
            generator=generator,
            serving=ServingReplica(self._profile, now_seconds),
            capacity_type=capacity_type,
        )
