"""What do policies decide under a load of rates, one after the other? The stage of `--policy-only`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from autoscaler.controller.pool_report import Reporter
from autoscaler.replay.comparison import COMFORTABLE_UTILISATION, FIRST_SECONDS, PolicyOutcome, Stage
from autoscaler.replay.fluid_load import fluid_load
from autoscaler.replay.fluid_replay import LONGEST_STEP_SECONDS, TICK_SECONDS, fitting_step_seconds, fluid_replay
from autoscaler.replay.fluid_replica import replica_limits
from autoscaler.replay.policy_files import ReplayedPolicy, RunContext
from autoscaler.replay.replay import ReplayRun
from autoscaler.replay.result import PoolResult
from autoscaler.replay.step_law import step_law
from autoscaler.replay.trace import RequestTrace
from autoscaler.replay.trace_load import LoadBins

# The baselines that read nothing of single requests.
BASELINES_OF_RATES = ("keda-hpa", "hpa-queue", "knative-kpa", "aibrix-apa", "llmd-wva", "ray-serve")

# What they are made for instead of requests: they do not look at them.
NO_REQUESTS = RequestTrace(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), 0.0)


@dataclass(frozen=True)
class PolicyOnlyStage:
    """A load of rates on a fleet. `asked_step_seconds` None: as short as the load's length allows."""

    stage: Stage
    asked_step_seconds: float | None = None

    @property
    def step_seconds(self) -> float:
        """How often is decided."""
        return self.asked_step_seconds or fitting_step_seconds(self.stage.load.hours)

    @cached_property
    def first_load(self) -> LoadBins:
        """The load by the first seed."""
        return fluid_load(self.stage.load, self.stage.seeds[0])

    def problem(self) -> str | None:
        """Why this load cannot be run; None where it can."""
        if self.first_load.requests_per_second.any():
            return None
        load = self.stage.load
        return (
            f"no request arrives from {load.start_seconds:g} to {load.end_seconds:g} s; choose another --start or --end"
        )

    def assumptions(self) -> Iterator[str]:
        """What a reader of the numbers should know first."""
        step = self.step_seconds
        yield "policy only: the load is a flow of rates, equally spread over the replicas; no request is followed"
        yield (
            "policy only: nothing is known of TTFT, of token gaps of single requests, of attainment and preemptions; "
            "short are the seconds in which more waits or arrives than the ready replicas serve within the token gap"
        )
        yield f"policy only: decided every {step:g} s" + (
            f"; windows, rates and delays of a policy that are shorter act as if they lasted {step:g} s"
            if step > TICK_SECONDS
            else ""
        )
        yield "policy only: nobody measures missed objectives, so a learned safe utilisation stays where it begins"
        if self.stage.load.shared_prefix_tokens:
            yield "policy only: no prefix cache is simulated, so shared prompts are computed every time"

    def typical_request(self) -> RequestTrace:
        """One request of the load's mean lengths: what a policy is sized by that looks at requests' lengths alone."""
        bins = self.first_load
        inputs, outputs = (
            np.array([max(1, round(float(np.average(tokens, weights=bins.requests_per_second))))])
            for tokens in (bins.input_tokens, bins.output_tokens)
        )
        return RequestTrace(np.zeros(1), inputs, outputs, 0.0)

    def compare(
        self, policies: Sequence[ReplayedPolicy], reporters: Callable[[str, int], Sequence[Reporter]]
    ) -> Iterator[PolicyOutcome]:
        """Each policy's outcome as soon as it is there. Ends after the first policy in which a run was stopped."""
        for policy in policies:
            results: list[PoolResult] = []
            for seed in self.stage.seeds:
                results.append(self.run(policy, seed, reporters(policy.name, seed)))
                if results[-1].was_stopped:
                    break
            yield PolicyOutcome(policy.name, tuple(results))
            if results[-1].was_stopped:
                return

    def run(self, policy: ReplayedPolicy, seed: int, reporters: Sequence[Reporter] = ()) -> PoolResult:
        """One run of one policy. The first replicas are within the policy's own bounds."""
        stage, load = self.stage, self.stage.load
        bins = self.first_load if seed == stage.seeds[0] else fluid_load(load, seed)
        first = min(max(self._first_replicas(bins), policy.minimum), policy.maximum)
        run = ReplayRun(
            starts_at_seconds=load.starts_at_seconds,
            ends_at_seconds=load.ends_at_seconds,
            seed=seed,
            dollars_per_accelerator_hour=stage.fleet.description.dollars_per_accelerator_hour,
        )
        begins, length = load.starts_at_seconds, load.hours * 3600.0
        return fluid_replay(
            policy.make(RunContext(load, seed, reporters)),
            stage.setup(policy.identity, first),
            bins,
            run,
            self.step_seconds,
            lambda now_seconds: stage.tells(policy.name, seed, (now_seconds - begins) / length),
        )

    def _first_replicas(self, bins: LoadBins) -> int:
        """As many as the description says, else as the first ten minutes comfortably need; at least 1."""
        fleet = self.stage.fleet
        if fleet.description.initial_replicas is not None:
            return fleet.description.initial_replicas
        first = max(1, round(FIRST_SECONDS / bins.bin_seconds))
        rates = bins.requests_per_second[:first]
        if not rates.any():
            return 1
        inputs = float(np.average(bins.input_tokens[:first], weights=rates))
        outputs = float(np.average(bins.output_tokens[:first], weights=rates))
        served = replica_limits(step_law(fleet.profile), inputs, outputs, fleet.objectives).within_objectives
        return max(1, math.ceil(float(rates.mean()) / served / COMFORTABLE_UTILISATION))


def step_problem(step_seconds: float | None, is_policy_only: bool) -> str | None:
    """What is wrong with --policy-step; None where nothing is."""
    if step_seconds is None:
        return None
    if not is_policy_only:
        return "--policy-step: goes with --policy-only alone; an exact run is decided as often as the controller does"
    if not TICK_SECONDS <= step_seconds <= LONGEST_STEP_SECONDS:
        return (
            f"--policy-step {step_seconds:g}: give {TICK_SECONDS:g} to {LONGEST_STEP_SECONDS:g} seconds; a controller "
            "does not tick more often, and takes a longer silence for time that it has not seen"
        )
    return None
