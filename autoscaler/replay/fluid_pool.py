"""What happens in a pool from one moment to the next, where load is a flow and single requests are not followed?

Replicas are made, start and end as in `simulated_pool.py`, with the same cold starts. What arrives is served at once,
as far as the ready replicas can; the rest waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from autoscaler.observers.workload import LivePod
from autoscaler.replay.fluid_replica import ReplicaLimits, replica_limits, running_requests, serve, token_gap_seconds
from autoscaler.replay.outcomes import RequestOutcomes
from autoscaler.replay.replica_set import ReplicaSet
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample
from autoscaler.replay.seen_starts import SeenStarts
from autoscaler.replay.serving_counters import (
    INTER_TOKEN_LATENCY_EDGES,
    REQUEST_LENGTH_EDGES,
    TIME_TO_FIRST_TOKEN_EDGES,
    ServingSnapshot,
)
from autoscaler.replay.simulated_pool import CountChange, PoolSetup
from autoscaler.replay.step_law import step_law
from autoscaler.replay.trace_load import LoadBins
from policies.cold_start import ObservedStart
from policies.observation import ReplicaCounts

# Lengths of requests that differ by less than this are taken for the same.
LENGTH_STEP = 0.02


@dataclass(frozen=True, slots=True)
class Flow:
    """The pool as it flows now: requests a second, of what mean lengths, and how many each ready replica serves."""

    arriving_per_second: float = 0.0
    served_per_second: float = 0.0
    served_by_each: float = 0.0
    input_tokens: float = 1.0
    output_tokens: float = 1.0


@dataclass(frozen=True, slots=True)
class BusyReplica:
    """What a ready replica holds under a flow, and the time from one token of an answer to the next."""

    running_requests: float
    held_tokens: float
    token_gap_seconds: float


class FluidPool:
    """A pool of equal replicas, each with an equal part of the load. It moves only by `advance`."""

    def __init__(
        self, setup: PoolSetup, load: LoadBins, generator: np.random.Generator, started_at_seconds: float
    ) -> None:
        """The load's first bin begins at the start; the initial replicas are ready at once."""
        self.setup = setup
        self.now_seconds = started_at_seconds
        self.flow = Flow()
        self.outcomes = RequestOutcomes(setup.objectives)
        self.is_prometheus_out = False
        self.backlog = 0.0
        self.arrived = self.served = self.served_tokens = 0.0
        self.replica_seconds = 0.0  # of all pods that exist, starting and draining ones too
        self.short_seconds = self.short_requests = 0.0  # how long it was short, and what arrived in that time
        self.count_changes: list[CountChange] = []
        self.seen_starts = SeenStarts()
        self._load = load
        self._law = step_law(setup.profile)
        self._started_at = started_at_seconds
        self._limits: dict[tuple[int, int], ReplicaLimits] = {}
        self._busy: tuple[Flow, BusyReplica] | None = None
        self._shown: tuple[ReplicaCounts, tuple[LivePod, ...]] | None = None  # until the replicas change
        self._pages: ScrapedPages | None = None
        # By each replica that was there throughout, since somebody reads pages: requests, prompt and answer tokens.
        self._counted = [0.0, 0.0, 0.0]
        # The second one that is spawned, as in a simulated pool: the k-th pod of a run has the same cold start in both.
        self._replicas = ReplicaSet(setup.target_name, setup.profile, setup.cold_start, generator.spawn(2)[1])
        self._spec_replicas = setup.initial_replicas
        self._replicas.add_ready(setup.initial_replicas, started_at_seconds)
        self._replicas.start_ready(started_at_seconds)

    @property
    def spec_replicas(self) -> int:
        """How many replicas were last asked for."""
        return self._spec_replicas

    @property
    def replicas(self) -> ReplicaCounts:
        """The replicas as the API server would show them."""
        return self._as_shown()[0]

    @property
    def pods(self) -> tuple[LivePod, ...]:
        """The pods that exist and do not terminate."""
        return self._as_shown()[1]

    @property
    def gateway_queue(self) -> int:
        """Requests that no replica was ready for."""
        return 0 if self._replicas.ready else math.ceil(self.backlog)

    @property
    def requests_in_flight(self) -> int:
        """Those that wait, and those that are worked on."""
        return round(self.backlog + self.busy_replica.running_requests * len(self._replicas.ready))

    @property
    def busy_replica(self) -> BusyReplica:
        """What each of the ready replicas has to do now: of each request the prompt and, on average, half the answer
        is held.
        """
        flow = self.flow
        if self._busy is None or self._busy[0] is not flow:
            law, inputs, outputs = self._law, flow.input_tokens, flow.output_tokens
            running = running_requests(law, flow.served_by_each, inputs, outputs)
            held = min(running * (inputs + outputs / 2.0), float(law.kv_capacity_tokens))
            self._busy = (flow, BusyReplica(running, held, token_gap_seconds(law, running, inputs, outputs)))
        return self._busy[1]

    @property
    def pages(self) -> ScrapedPages:
        """What is scraped of the replicas from the first time on that somebody asks for it."""
        if self._pages is None:
            self._pages = ScrapedPages(self.setup.scrape.delay_seconds)
        return self._pages

    def pages_now(self) -> tuple[ServingSnapshot, ...]:
        """The pages of the ready replicas, which are all alike; without latencies, which nobody knows here."""
        return (self._page(),) * len(self._replicas.ready)

    def scale(self, replicas: int, reason: str = "", message: str = "") -> None:
        """Asks for so many replicas. One that goes stays as long as an answer takes, at most the grace."""
        self.count_changes.append(CountChange(self.now_seconds, self._spec_replicas, replicas, reason, message))
        self._spec_replicas = replicas
        answer_seconds = self.flow.output_tokens * self.busy_replica.token_gap_seconds
        self._replicas.set_wanted(replicas, self.now_seconds, min(answer_seconds, self.setup.drain_grace_seconds))
        self._shown = None

    def explain_last_change(self, reason: str, message: str) -> None:
        """Gives the newest change of the count the policy's words."""
        self.count_changes[-1] = replace(self.count_changes[-1], reason=reason, message=message)

    def advance(self, until_seconds: float) -> None:
        """Lets everything happen up to `until_seconds`, from one change of load or replicas to the next."""
        while self.now_seconds < until_seconds:
            place = int((self.now_seconds - self._started_at) / self._load.bin_seconds + 1e-9)
            edge = self._started_at + (place + 1) * self._load.bin_seconds
            changes = [pod.ready_at for pod in self._replicas.starting]
            changes += [pod.ends_at for pod in self._replicas.draining]
            later = min((at for at in changes if at > self.now_seconds), default=math.inf)
            self._flow_for(min(until_seconds, edge, later) - self.now_seconds, place)
            self._change_replicas()

    def _flow_for(self, seconds: float, place: int) -> None:
        load, ready = self._load, len(self._replicas.ready)
        arriving, inputs, outputs = 0.0, self.flow.input_tokens, self.flow.output_tokens
        if place < len(load.requests_per_second) and load.requests_per_second[place] > 0:
            arriving = float(load.requests_per_second[place])
            inputs, outputs = float(load.input_tokens[place]), float(load.output_tokens[place])
        served = serve(arriving, self.backlog, ready, self._limits_for(inputs, outputs), seconds)
        per_replica = served.requests / seconds / ready if ready else 0.0
        self.flow = Flow(arriving, served.requests / seconds, per_replica, inputs, outputs)
        self.backlog = served.backlog
        self.short_seconds += served.short_seconds
        self.short_requests += arriving * served.short_seconds
        self.arrived += arriving * seconds
        self.served += served.requests
        self.served_tokens += served.requests * (inputs + outputs)
        self.outcomes.arrived, self.outcomes.finished = round(self.arrived), round(self.served)
        self.replica_seconds += seconds * (self._replicas.pods + len(self._replicas.draining))
        self.now_seconds += seconds
        if self._pages is not None:
            self._fill(self._pages, per_replica, seconds)

    def _fill(self, pages: ScrapedPages, requests_per_second: float, seconds: float) -> None:
        """The ready replicas' pages at the end of a stretch, and where it is longer an interval before, too."""
        interval = self.setup.scrape.interval_seconds
        if seconds > interval:
            self._count(requests_per_second * (seconds - interval))
            self._scrape(pages, self.now_seconds - interval)
        self._count(requests_per_second * min(seconds, interval))
        self._scrape(pages, self.now_seconds)

    def _count(self, requests: float) -> None:
        """So many requests more of each replica."""
        sizes = (1.0, self.flow.input_tokens, self.flow.output_tokens)
        self._counted = [total + requests * size for total, size in zip(self._counted, sizes, strict=True)]

    def _scrape(self, pages: ScrapedPages, at_seconds: float) -> None:
        """Their pages just early enough to be seen at that moment."""
        sample = ScrapedSample(at_seconds - self.setup.scrape.delay_seconds, self._page())
        for pod in self._replicas.ready:
            pages.add(pod.name, sample)

    def _limits_for(self, inputs: float, outputs: float) -> ReplicaLimits:
        key = (round(math.log(max(inputs, 1.0)) / LENGTH_STEP), round(math.log(max(outputs, 1.0)) / LENGTH_STEP))
        if key not in self._limits:
            self._limits[key] = replica_limits(self._law, inputs, outputs, self.setup.objectives)
        return self._limits[key]

    def _change_replicas(self) -> None:
        started = self._replicas.start_ready(self.now_seconds)
        for pod in started:
            self.seen_starts.add(ObservedStart(None, None, self.now_seconds - pod.created_at))
        draining = self._replicas.draining
        if draining:
            self._replicas.draining = [pod for pod in draining if pod.ends_at > self.now_seconds]
        if started or draining:
            self._shown = None

    def _as_shown(self) -> tuple[ReplicaCounts, tuple[LivePod, ...]]:
        if self._shown is None:
            starting, ready = self._replicas.starting, self._replicas.ready
            counts = ReplicaCounts(
                spec=self._spec_replicas,
                status=self._replicas.pods,
                ready=len(ready),
                starting=len(starting),
                terminating=len(self._replicas.draining),
            )
            serving = [LivePod(pod.name, pod.name, True, pod.ready_at) for pod in ready]
            self._shown = counts, (*serving, *(LivePod(pod.name, pod.name, False, None) for pod in starting))
        return self._shown

    def _page(self) -> ServingSnapshot:
        ready, busy = max(1, len(self._replicas.ready)), self.busy_replica
        requests, prompts, answers = map(round, self._counted)
        return ServingSnapshot(
            running_requests=round(busy.running_requests),
            waiting_requests=round(self.backlog / ready),
            kv_cache_usage=busy.held_tokens / self.setup.profile.kv_capacity_tokens,
            prompt_tokens=prompts,
            generation_tokens=answers,
            preemptions=0,
            finished_requests=requests,
            finished_prompt_tokens=prompts,
            finished_generation_tokens=answers,
            prefix_queried_tokens=prompts,
            prefix_hit_tokens=0,
            time_to_first_token_counts=(0.0,) * (len(TIME_TO_FIRST_TOKEN_EDGES) + 1),
            inter_token_latency_counts=(0.0,) * (len(INTER_TOKEN_LATENCY_EDGES) + 1),
            inter_token_latency_seconds=0.0,
            time_per_output_token_counts=(0.0,) * (len(INTER_TOKEN_LATENCY_EDGES) + 1),
            time_per_output_token_seconds=0.0,
            prompt_length_counts=(0,) * (len(REQUEST_LENGTH_EDGES) + 1),
            answer_length_counts=(0,) * (len(REQUEST_LENGTH_EDGES) + 1),
        )
