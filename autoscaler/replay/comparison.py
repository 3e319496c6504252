"""How do several policies do under the same load on the same fleet? All runs, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from autoscaler.controller.pool_report import Reporter
from autoscaler.replay.cold_start import NODE_PHASE
from autoscaler.replay.fleet_description import Fleet
from autoscaler.replay.node_agreement import splits_targets
from autoscaler.replay.policy_files import PoolIdentity, ReplayedPolicy, RunContext
from autoscaler.replay.replay import ReplayRun, replay
from autoscaler.replay.replica_work import work
from autoscaler.replay.result import PoolResult
from autoscaler.replay.simulated_pool import PoolSetup
from autoscaler.replay.trace import RequestTrace
from autoscaler.replay.trace_load import TRACE_BEGINS_AT_SECONDS, TraceLoad
from policies.capacity_split import CapacityType

# What the first replicas are sized by.
FIRST_SECONDS = 600.0
# Replicas' worth of work that are comfortable for a replica: at 0.7 one request in forty misses its objectives.
COMFORTABLE_UTILISATION = 0.55


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """One policy's results, one a seed; fewer where the comparison was stopped."""

    name: str
    results: tuple[PoolResult, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """A load on a fleet: what every policy is run on."""

    fleet: Fleet
    load: TraceLoad
    seeds: tuple[int, ...] = (1,)
    tells: Callable[[str, int, float], bool] = field(default=lambda name, seed, share: True)

    def setup(self, identity: PoolIdentity, initial_replicas: int, has_split: bool = False) -> PoolSetup:
        """The pool, called as the policy calls it; with a split its two targets are simulated."""
        description = self.fleet.description
        return PoolSetup(
            namespace=identity.namespace,
            name=identity.name,
            target_name=identity.target_name,
            engine=identity.engine,
            profile=self.fleet.profile,
            cold_start=self.fleet.cold_start if self.fleet.nodes is None else self.fleet.cold_start.without(NODE_PHASE),
            objectives=self.fleet.objectives,
            initial_replicas=initial_replicas,
            scrape=self.fleet.scrape,
            drain_grace_seconds=description.drain_grace_seconds,
            router=description.router,
            sampled_one_in=self.load.sampled_one_in,
            spot_target_name=identity.spot_target_name if has_split else None,
        )

    def first_replicas(self, drawn: RequestTrace) -> int:
        """As many as the description says, else as the first ten minutes of the load comfortably need; at least 1."""
        if self.fleet.description.initial_replicas is not None:
            return self.fleet.description.initial_replicas
        first = drawn.part(self.load.start_seconds, self.load.start_seconds + FIRST_SECONDS)
        bins = self.load.bins(first, min(FIRST_SECONDS, self.load.hours * 3600.0))
        need = float(work(self.fleet.profile, bins, self.fleet.objectives)[0])
        return max(1, math.ceil(need / COMFORTABLE_UTILISATION))

    def run(
        self, policy: ReplayedPolicy, drawn: RequestTrace, seed: int, reporters: Sequence[Reporter] = ()
    ) -> PoolResult:
        """One run of one policy. The first replicas are within the policy's own bounds, and find room on nodes."""
        load, nodes = self.load, self.fleet.nodes
        first = min(max(self.first_replicas(drawn), policy.minimum), policy.maximum)
        has_two = policy.identity.spot_target_name is not None and splits_targets(policy.accelerator_pools, nodes)
        if nodes is not None:
            first_nodes = nodes.only(CapacityType.ON_DEMAND) if has_two else nodes
            room = first_nodes.most_replicas(self.fleet.profile.accelerators_per_replica, load.sampled_one_in)
            first = first if room is None else min(first, room)
        return replay(
            policy.make(RunContext(load, seed, reporters)),
            self.setup(policy.identity, first, has_two),
            load.requests(drawn),
            ReplayRun(
                starts_at_seconds=load.starts_at_seconds,
                ends_at_seconds=load.ends_at_seconds,
                seed=seed,
                dollars_per_accelerator_hour=self.fleet.description.dollars_per_accelerator_hour,
                nodes=nodes,
                trace_began_at=TRACE_BEGINS_AT_SECONDS,
            ),
            self._progress(policy.name, seed),
        )

    def _progress(self, name: str, seed: int) -> Callable[[float], bool]:
        begins, length = self.load.starts_at_seconds, self.load.hours * 3600.0
        return lambda now_seconds: self.tells(name, seed, (now_seconds - begins) / length)


def compare(
    stage: Stage, policies: Sequence[ReplayedPolicy], reporters: Callable[[str, int], Sequence[Reporter]]
) -> Iterator[PolicyOutcome]:
    """Each policy's outcome as soon as it is there. Ends after the first policy in which a run was stopped."""
    drawn = {seed: stage.load.draw(seed) for seed in stage.seeds}
    for policy in policies:
        results: list[PoolResult] = []
        for seed in stage.seeds:
            results.append(stage.run(policy, drawn[seed], seed, reporters(policy.name, seed)))
            if results[-1].was_stopped:
                break
        yield PolicyOutcome(policy.name, tuple(results))
        if results[-1].was_stopped:
            return
