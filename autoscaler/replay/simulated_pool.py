"""What happens in one simulated pool from one moment to the next? Requests, a gateway, replicas that come and go."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np

from autoscaler.observers.workload import LivePod
from autoscaler.replay.cold_start import ColdStart
from autoscaler.replay.outcomes import LatencyObjectives, RequestLatencies, RequestOutcomes
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample, ScrapeSettings
from autoscaler.replay.serving_replica import Request, ServingReplica
from policies.observation import ReplicaCounts

# The gateway's view of finished requests is at most this old, and starts, drains and scrapes happen on this grid.
BEAT_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class PoolSetup:
    """One pool: which replicas it is made of, how they start, and how it is looked at."""

    namespace: str
    name: str  # of the InferenceScaler
    target_name: str
    engine: str
    profile: ReplicaProfile
    cold_start: ColdStart
    objectives: LatencyObjectives
    initial_replicas: int
    scrape: ScrapeSettings = field(default_factory=ScrapeSettings)
    drain_grace_seconds: float = 600.0
    keeps_latencies: bool = False  # of every request, 12 bytes each; else only those of the last two minutes

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name) of the InferenceScaler."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class CountChange:
    """One change of the wanted count. `reason` and `message` are the policy's own words, "" where it gave none."""

    at_seconds: float
    from_replicas: int
    to_replicas: int
    reason: str = ""
    message: str = ""


@dataclass(slots=True)
class _StartingPod:
    name: str
    ready_at: float


@dataclass(slots=True)
class _ServingPod:
    name: str
    ready_at: float
    serving: ServingReplica
    next_scrape_at: float
    ends_at: float = math.inf  # the end of its grace, once it drains


_LOAD = attrgetter("serving.requests_in_flight")


class SimulatedPool:
    """A pool on simulated time. It moves only by `advance`, and depends on nothing but its setup, requests and seed."""

    def __init__(
        self,
        setup: PoolSetup,
        requests: Iterator[Request],
        generator: np.random.Generator,
        started_at_seconds: float,
    ) -> None:
        """`requests` come in order of arrival. The initial replicas are ready at once."""
        self.setup = setup
        self.now_seconds = started_at_seconds
        self.pages = ScrapedPages(setup.scrape.delay_seconds)
        latencies = RequestLatencies(started_at_seconds) if setup.keeps_latencies else None
        self.outcomes = RequestOutcomes(setup.objectives, latencies)
        self.replica_seconds = 0.0  # of all pods that exist, starting and draining ones too: what is paid for
        self.spec_replicas = setup.initial_replicas
        self.count_changes: list[CountChange] = []
        self.is_prometheus_out = False
        self._requests = requests
        self._next_request = next(requests, None)
        self._generator = generator
        self._gateway: deque[Request] = deque()
        self._starting: list[_StartingPod] = []
        self._ready: list[_ServingPod] = []
        self._draining: list[_ServingPod] = []
        self._created = 0
        self._ended_preemptions = 0
        self._turn = 0
        self._next_beat = started_at_seconds
        for _ in range(setup.initial_replicas):
            self._starting.append(self._create_pod(started_at_seconds))
        self._make_ready(started_at_seconds)

    @property
    def replicas(self) -> ReplicaCounts:
        """The replicas as the API server would show them."""
        starting, ready = len(self._starting), len(self._ready)
        return ReplicaCounts(
            spec=self.spec_replicas,
            status=starting + ready,
            ready=ready,
            starting=starting,
            terminating=len(self._draining),
        )

    @property
    def pods(self) -> tuple[LivePod, ...]:
        """The pods that exist and do not terminate."""
        ready = tuple(LivePod(pod.name, pod.name, True, pod.ready_at) for pod in self._ready)
        return ready + tuple(LivePod(pod.name, pod.name, False, None) for pod in self._starting)

    @property
    def gateway_queue(self) -> int:
        """Requests that no replica was ready for."""
        return len(self._gateway)

    @property
    def requests_in_flight(self) -> int:
        """Requests that arrived and have neither finished nor failed, the gateway's included."""
        pods = (*self._ready, *self._draining)
        return len(self._gateway) + sum(pod.serving.requests_in_flight for pod in pods)

    @property
    def preemptions(self) -> int:
        """Of all replicas since the start, those that are gone included."""
        pods = (*self._ready, *self._draining)
        return self._ended_preemptions + sum(pod.serving.counters.preemptions for pod in pods)

    def scale(self, replicas: int, reason: str = "", message: str = "") -> None:
        """Asks for so many replicas: new ones start; surplus ones go, first those that start, then the youngest."""
        self.count_changes.append(CountChange(self.now_seconds, self.spec_replicas, replicas, reason, message))
        self.spec_replicas = replicas
        missing = replicas - len(self._starting) - len(self._ready)
        for _ in range(missing):
            ready_at = self.now_seconds + self.setup.cold_start.draw_seconds(self._generator)
            self._starting.append(self._create_pod(ready_at))
        for _ in range(-missing):
            if self._starting:
                self._starting.pop()
                continue
            victim = max(self._ready, key=lambda pod: (pod.ready_at, pod.name))
            self._ready.remove(victim)
            victim.ends_at = self.now_seconds + self.setup.drain_grace_seconds
            self._draining.append(victim)

    def explain_last_change(self, reason: str, message: str) -> None:
        """Gives the newest change of the count the policy's words."""
        self.count_changes[-1] = replace(self.count_changes[-1], reason=reason, message=message)

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds`, which must not lie before the present."""
        if until_seconds < self.now_seconds:
            raise ValueError(f"a pool cannot go back from {self.now_seconds} to {until_seconds}")
        while self._next_beat <= until_seconds:
            beat = self._next_beat
            self._route_until(beat)
            self._beat(beat)
            self._next_beat = beat + BEAT_SECONDS
        self._route_until(until_seconds)
        self.now_seconds = until_seconds

    def _create_pod(self, ready_at: float) -> _StartingPod:
        self._created += 1
        return _StartingPod(f"{self.setup.target_name}-{self._created:05d}", ready_at)

    def _route_until(self, until_seconds: float) -> None:
        overhead = self.setup.profile.request_overhead_seconds
        while (request := self._next_request) is not None and request.arrived_at + overhead <= until_seconds:
            self._next_request = next(self._requests, None)
            self.outcomes.arrived += 1
            if request.input_tokens + request.output_tokens > self.setup.profile.longest_request_tokens:
                self.outcomes.rejected += 1
            elif self._ready:
                self._hand_over(request, request.arrived_at + overhead)
            else:
                self._gateway.append(request)

    def _hand_over(self, request: Request, at_seconds: float) -> None:
        serving = self._least_loaded()
        self.outcomes.add_finished(serving.advance(at_seconds))
        serving.add(request)

    def _least_loaded(self) -> ServingReplica:
        """The ready replica with the fewest requests; the search begins elsewhere each time, which shares out ties."""
        self._turn = (self._turn + 1) % len(self._ready)
        return min(self._ready[self._turn :] + self._ready[: self._turn], key=_LOAD).serving

    def _beat(self, now_seconds: float) -> None:
        self.replica_seconds += BEAT_SECONDS * (len(self._starting) + len(self._ready) + len(self._draining))
        if self._starting:
            self._make_ready(now_seconds)
        pods = (*self._ready, *self._draining)
        for pod in pods:
            finished = pod.serving.advance(now_seconds)
            if finished:
                self.outcomes.add_finished(finished)
            if pod.next_scrape_at <= now_seconds:
                self._scrape(pod, now_seconds)
        if self._draining:
            self._end_drained(now_seconds)

    def _make_ready(self, now_seconds: float) -> None:
        ready = [pod for pod in self._starting if pod.ready_at <= now_seconds]
        if not ready:
            return
        self._starting = [pod for pod in self._starting if pod.ready_at > now_seconds]
        for pod in ready:
            serving = ServingReplica(self.setup.profile, now_seconds)
            # Each target is scraped at a moment of its own within the interval, as Prometheus does.
            first_scrape = now_seconds + self._generator.uniform(0.0, self.setup.scrape.interval_seconds)
            self._ready.append(_ServingPod(pod.name, now_seconds, serving, first_scrape))
        while self._gateway:
            self._hand_over(self._gateway.popleft(), now_seconds)

    def _end_drained(self, now_seconds: float) -> None:
        remaining = []
        for pod in self._draining:
            in_flight = pod.serving.requests_in_flight
            if in_flight and now_seconds < pod.ends_at:
                remaining.append(pod)
            else:
                self.outcomes.dropped += in_flight
                self._ended_preemptions += pod.serving.counters.preemptions
        self._draining = remaining

    def _scrape(self, pod: _ServingPod, now_seconds: float) -> None:
        self.pages.add(pod.name, ScrapedSample(now_seconds, pod.serving.snapshot()))
        pod.next_scrape_at += self.setup.scrape.interval_seconds
        self.outcomes.forget_old(now_seconds)
        self.pages.forget_old(now_seconds)
