"""What happens in one simulated pool from one moment to the next? Requests, a gateway, replicas that come and go."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autoscaler.observers.workload import LivePod, ScaleTarget
from autoscaler.replay.cold_start import IMAGE_PHASE, ColdStart
from autoscaler.replay.gateway import Gateway
from autoscaler.replay.outcomes import LatencyObjectives, RequestLatencies, RequestOutcomes
from autoscaler.replay.replica_profile import ReplicaProfile
from autoscaler.replay.replica_set import ReplicaSet, SimulatedPod
from autoscaler.replay.routers import ROUTERS, RouterName
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample, ScrapeSettings
from autoscaler.replay.seen_starts import SeenStarts
from autoscaler.replay.serving_counters import ServingSnapshot
from autoscaler.replay.serving_replica import Request
from policies.capacity_split import CapacityType, TargetCounts
from policies.cold_start import SHORTEST_NODE_LIMIT_SECONDS, ObservedStart
from policies.observation import ReplicaCounts

# Starts, drains and scrapes happen on this grid.
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
    router: RouterName = RouterName.LEAST_LOADED
    sampled_one_in: int = 1  # each simulated replica stands for so many, under a load that is sampled alike
    spot_target_name: str | None = None  # of a second Deployment, on spot; the first is on demand then
    keeps_latencies: bool = False  # of every request, 12 bytes each; else only those of the last two minutes

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name) of the InferenceScaler."""
        return (self.namespace, self.name)

    @property
    def kinds(self) -> Mapping[CapacityType | None, str]:
        """The Deployments by the kind of node that they run on; None: on any."""
        if self.spot_target_name is None:
            return {None: self.target_name}
        return {CapacityType.ON_DEMAND: self.target_name, CapacityType.SPOT: self.spot_target_name}

    def target_at(self, changes: int, capacity_type: CapacityType | None = None) -> ScaleTarget:
        """The target of a count; how often the count has changed is its version."""
        name = self.kinds.get(capacity_type, self.target_name)
        return ScaleTarget(
            namespace=self.namespace,
            kind="Deployment",
            name=name,
            path=f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{name}/scale",
            uid=f"simulated-{name}",
            resource_version=str(changes),
        )


@dataclass(frozen=True, slots=True)
class CountChange:
    """One change of the wanted count. `reason` and `message` are the policy's own words, "" where it gave none."""

    at_seconds: float
    from_replicas: int
    to_replicas: int
    reason: str = ""
    message: str = ""


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
        self.pages = ScrapedPages(setup.scrape.delay_seconds, setup.sampled_one_in)
        latencies = RequestLatencies(started_at_seconds) if setup.keeps_latencies else None
        self.outcomes = RequestOutcomes(setup.objectives, latencies)
        self.replica_seconds = 0.0  # of all pods that exist, starting and draining ones too: what is paid for
        self.count_changes: list[CountChange] = []
        self.is_prometheus_out = False
        self.unscraped_share = 0.0  # of the pods, whose scrapes fail
        router_generator, replica_generator = generator.spawn(2)
        router = ROUTERS[setup.router](router_generator)
        self._replicas = ReplicaSet(setup.target_name, setup.profile, setup.cold_start, replica_generator)
        self._gateway = Gateway(requests, router, setup.profile, self.outcomes)
        self._ended_preemptions = 0
        self._next_beat = started_at_seconds
        self.seen_starts = SeenStarts()
        self._uses_nodes = False
        first, *others = setup.kinds
        self._counts: dict[CapacityType | None, int] = {first: setup.initial_replicas, **dict.fromkeys(others, 0)}
        self._changes: Counter[CapacityType | None] = Counter()
        self._replicas.add_ready(self._simulated(setup.initial_replicas), started_at_seconds, first)
        self._make_ready(started_at_seconds)

    @property
    def spec_replicas(self) -> int:
        """How many replicas were last asked for."""
        return sum(self._counts.values())

    @property
    def replicas(self) -> ReplicaCounts:
        """The replicas as the API server would show them."""
        return self.replicas_of(self.spec_replicas)

    def target_now(self, capacity_type: CapacityType | None = None) -> ScaleTarget:
        """The target of a count as it stands."""
        return self.setup.target_at(self._changes[capacity_type], capacity_type)

    def kind_of(self, target_name: str) -> CapacityType | None:
        """The kind of node of a Deployment of the pool."""
        return next(kind for kind, name in self.setup.kinds.items() if name == target_name)

    def count_of(self, capacity_type: CapacityType | None) -> int:
        """How many replicas one of its Deployments was last asked for."""
        return self._counts[capacity_type]

    def counts_of(self, capacity_type: CapacityType | None) -> TargetCounts:
        """One of its Deployments: what was asked for, what serves, what has its node."""
        each, existing = self.setup.sampled_one_in, (*self._replicas.starting, *self._replicas.ready)
        ready = sum(pod.capacity_type is capacity_type for pod in self._replicas.ready) * each
        placed = sum(pod.capacity_type is capacity_type and math.isfinite(pod.ready_at) for pod in existing) * each
        spec = self._counts[capacity_type]
        return TargetCounts(spec, min(ready, spec), min(placed, spec))

    def replicas_of(self, spec: int, node_limit_seconds: float = SHORTEST_NODE_LIMIT_SECONDS) -> ReplicaCounts:
        """The replicas as if so many were asked for: of two targets more may stand while their shares change.

        Those that wait for a node are stuck: at once, and where nodes are simulated after the time that a launch may
        take, as for the live controller.
        """
        each = self.setup.sampled_one_in
        made_before = self.now_seconds - (node_limit_seconds if self._uses_nodes else 0.0)
        nodeless = sum(pod.created_at <= made_before for pod in self._replicas.nodeless) * each
        ready = min(len(self._replicas.ready) * each, spec)
        in_time = min(len(self._replicas.starting) * each - nodeless, spec - ready)
        return ReplicaCounts(
            spec=spec,
            status=self._replicas.pods if each == 1 else spec,
            ready=ready,
            starting=in_time,
            stuck=min(nodeless, spec - ready - in_time),
            terminating=len(self._replicas.draining) * each,
        )

    def starting_longer_than(self, seconds: float) -> int:
        """How many replicas have a node and have not become ready in this time."""
        made_before = self.now_seconds - seconds
        late = sum(pod.created_at <= made_before and math.isfinite(pod.ready_at) for pod in self._replicas.starting)
        return late * self.setup.sampled_one_in

    @property
    def pods(self) -> tuple[LivePod, ...]:
        """The pods that exist and do not terminate."""
        named = self.pages.names
        ready = [LivePod(name, name, True, pod.ready_at) for pod in self._replicas.ready for name in named(pod.name)]
        starting = [LivePod(name, name, False, None) for pod in self._replicas.starting for name in named(pod.name)]
        return (*ready, *starting)

    def pages_now(self) -> tuple[ServingSnapshot, ...]:
        """The metrics pages of the ready replicas as they are now: what somebody sees who asks them directly."""
        for pod in self._replicas.ready:
            self._advance_pod(pod, self.now_seconds)
        return tuple(pod.serving.snapshot() for pod in self._replicas.ready)

    @property
    def is_rolling_out(self) -> bool:
        """Whether pods are being replaced by new ones."""
        return self._replicas.is_rolling_out

    @property
    def gateway_queue(self) -> int:
        """Requests that no replica was ready for."""
        return len(self._gateway.queue) * self.setup.sampled_one_in

    @property
    def requests_in_flight(self) -> int:
        """Requests that arrived and have neither finished nor failed, the gateway's included."""
        pods = (*self._replicas.ready, *self._replicas.draining)
        in_flight = len(self._gateway.queue) + sum(pod.requests_in_flight for pod in pods)
        return in_flight * self.setup.sampled_one_in

    @property
    def preemptions(self) -> int:
        """Of all replicas since the start, those that are gone included."""
        pods = (*self._replicas.ready, *self._replicas.draining)
        preemptions = self._ended_preemptions + sum(pod.serving.counters.preemptions for pod in pods)
        return preemptions * self.setup.sampled_one_in

    def scale(
        self, replicas: int, reason: str = "", message: str = "", capacity_type: CapacityType | None = None
    ) -> None:
        """Asks for so many replicas: new ones start; surplus ones go, first those that start, then the youngest.

        Of two targets `capacity_type` says which one is meant.
        """
        before = self.spec_replicas
        after = before - self._counts[capacity_type] + replicas
        self.count_changes.append(CountChange(self.now_seconds, before, after, reason, message))
        self._counts[capacity_type] = replicas
        self._changes[capacity_type] += 1
        grace_seconds = self.setup.drain_grace_seconds
        self._replicas.set_wanted(self._simulated(replicas), self.now_seconds, grace_seconds, capacity_type)

    def explain_last_change(self, reason: str, message: str) -> None:
        """Gives the newest change of the count the policy's words."""
        self.count_changes[-1] = replace(self.count_changes[-1], reason=reason, message=message)

    def begin_rollout(self) -> None:
        """Replaces every pod by a new one, a quarter more than wanted at a time, none fewer."""
        self._replicas.begin_rollout()

    def wedge(self, replicas: int) -> None:
        """The oldest ready replicas stop computing; they stay Ready, take requests, and their pages are served."""
        for pod in self._replicas.ready[:replicas]:
            self._advance_pod(pod, self.now_seconds)
            pod.serving.wedge()

    def unwedge(self) -> None:
        """Wedged replicas go on with what they have."""
        for pod in (*self._replicas.ready, *self._replicas.draining):
            if pod.serving.is_wedged:
                pod.serving.go_on(self.now_seconds)

    def drain_replicas(self, replicas: int, grace_seconds: float) -> None:
        """The oldest ready replicas have so long to finish (0: their node dies); new ones are started for them."""
        self._replicas.drain(self._replicas.ready[:replicas], self.now_seconds, grace_seconds)

    def set_nodes(self, are_there: bool) -> None:
        """Whether new pods find a node; those that wait for one begin to start when there are nodes again."""
        if self._uses_nodes:
            raise ValueError("this pool's nodes are simulated: outOfCapacity of a NodePool says when there are none")
        self._replicas.has_nodes = are_there
        if are_there:
            self._replicas.give_nodes(self.now_seconds)

    def use_nodes(self, neighbours: Callable[[SimulatedPod], int]) -> None:
        """From now on pods start when somebody calls `start_pod`. `neighbours`: other replicas on a pod's node."""
        self._uses_nodes = True
        self._replicas.has_nodes = False
        self._replicas.neighbours = neighbours

    @property
    def existing_pods(self) -> tuple[SimulatedPod, ...]:
        """All that have not ended: starting, ready and draining ones."""
        return (*self._replicas.starting, *self._replicas.ready, *self._replicas.draining)

    @property
    def waiting_pods(self) -> list[SimulatedPod]:
        """Those that wait for a node, in the order in which they were made."""
        return self._replicas.nodeless

    def draw_start(self, pod: SimulatedPod) -> tuple[float, float]:
        """How long a pod takes on its node: for the image, and for all the rest."""
        phases = self._replicas.cold_start.draw_phases(pod.generator)
        image_seconds = sum(seconds for name, seconds in phases if name == IMAGE_PHASE)
        return image_seconds, sum(seconds for _, seconds in phases) - image_seconds

    def start_pod(self, pod: SimulatedPod, seconds: float) -> None:
        """A pod that has waited has its node now, and is ready after so many seconds."""
        pod.node_seconds = self.now_seconds - pod.created_at
        pod.ready_at = self.now_seconds + seconds

    def lose_pods(self, pods: Sequence[SimulatedPod], ends_at: float, is_reclaimed: bool) -> None:
        """The node of these pods ends then; they finish what they can, and others are made for them at once."""
        for pod in pods:
            pod.is_reclaimed = is_reclaimed
        self._replicas.lose(pods, ends_at, self.now_seconds, self.setup.drain_grace_seconds)

    def set_cold_start(self, cold_start: ColdStart) -> None:
        """The cold start of the pods made from now on."""
        self._replicas.cold_start = cold_start

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds`, which must not lie before the present."""
        if until_seconds < self.now_seconds:
            raise ValueError(f"a pool cannot go back from {self.now_seconds} to {until_seconds}")
        while self._next_beat <= until_seconds:
            beat = self._next_beat
            self._gateway.route_until(self._replicas.ready, beat)
            self._beat(beat)
            self._next_beat = beat + BEAT_SECONDS
        self._gateway.route_until(self._replicas.ready, until_seconds)
        self.now_seconds = until_seconds

    def _simulated(self, replicas: int) -> int:
        """How many pods stand for so many replicas."""
        return -(-replicas // self.setup.sampled_one_in)

    def _advance_pod(self, pod: SimulatedPod, until_seconds: float) -> None:
        finished = pod.serving.advance(until_seconds)
        if finished:
            self.outcomes.add_finished(finished)

    def _beat(self, now_seconds: float) -> None:
        replicas = self._replicas
        existing = replicas.pods + len(replicas.draining)
        self.replica_seconds += BEAT_SECONDS * existing * self.setup.sampled_one_in
        if replicas.starting:
            self._make_ready(now_seconds)
        if replicas.is_rolling_out:
            replicas.go_on_with_rollout(now_seconds, self.setup.drain_grace_seconds)
        pods = (*replicas.ready, *replicas.draining)
        for pod in pods:
            if pod.serving.quiet_until_seconds < now_seconds:
                finished = pod.serving.advance(now_seconds, leaves_last_run=True)
                if finished:
                    self.outcomes.add_finished(finished)
        for pod in pods:
            if pod.next_scrape_at <= now_seconds:
                self._advance_pod(pod, now_seconds)
                self._scrape(pod, now_seconds)
        if replicas.draining:
            self._end_drained(now_seconds)

    def _make_ready(self, now_seconds: float) -> None:
        ready = self._replicas.start_ready(now_seconds)
        if not ready:
            return
        for pod in ready:
            if pod.created_at < now_seconds:
                waited = pod.node_seconds
                self.seen_starts.add(ObservedStart(waited, None, now_seconds - pod.created_at - (waited or 0.0)))
            pod.ready_at = now_seconds
            pod.serving.now_seconds = now_seconds
            # Each target is scraped at a moment of its own within the interval, as Prometheus does.
            pod.next_scrape_at = now_seconds + pod.generator.uniform(0.0, self.setup.scrape.interval_seconds)
        self._gateway.empty_queue(self._replicas.ready, now_seconds)

    def _end_drained(self, now_seconds: float) -> None:
        remaining = []
        for pod in self._replicas.draining:
            in_flight = pod.requests_in_flight
            if in_flight and now_seconds < pod.ends_at:
                remaining.append(pod)
            else:
                self.outcomes.dropped += in_flight
                self.outcomes.lost_to_reclaims += in_flight if pod.is_reclaimed else 0
                self._ended_preemptions += pod.serving.counters.preemptions
        self._replicas.draining = remaining

    def _scrape(self, pod: SimulatedPod, now_seconds: float) -> None:
        if pod.scrape_luck >= self.unscraped_share:
            self.pages.add(pod.name, ScrapedSample(now_seconds, pod.serving.snapshot()))
        pod.next_scrape_at += self.setup.scrape.interval_seconds
        self.outcomes.forget_old(now_seconds)
