"""What is the least that perfect knowledge of the future needs? A plan made from the load itself, found by trying.

The load's work (replicas' worth, `replica_work.py`) is smoothed over a window; the plan has work / u + sqrt(work) / 2
replicas, ordered one mean cold start early, so that no dip shorter than a cold start is followed. Cold starts take
exactly their mean, as somebody who knows the future knows them too, and no node is lost or refused. For each of several
windows the largest u is sought at which 99.5 % of the requests meet their objectives: between two that were tried,
where the logarithm of the missed share would be that of 0.5 %. The plan with the fewest accelerator-hours counts. It is
the best of this family, and so at least what the very best plan would need. Of a long load only six evenly spaced parts
are run in the search, and the hours of the whole plan are counted up. Where even the most generous plan, of four times
the work, gets less than 99.5 %, the target is half a point below what that one gets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.comparison import COMFORTABLE_UTILISATION, Stage
from autoscaler.replay.planned_counts import PlannedCounts
from autoscaler.replay.policy_files import PoolIdentity, ReplayedPolicy
from autoscaler.replay.replica_work import work
from autoscaler.replay.trace import FloatArray, RequestTrace
from autoscaler.replay.trace_load import TraceLoad

TARGET = 0.995
BIN_SECONDS = 15.0
WINDOWS_SECONDS = (120.0, 30.0, 300.0, 900.0)
LEAST_UTILISATION, MOST_UTILISATION = 0.25, 1.3
# A plan is tried on at most about so many requests, and so many are simulated in the whole search.
TRIAL_REQUESTS = 150_000
TRIAL_PARTS = 6
SHORTEST_PART_SECONDS = 900.0
SEARCH_REQUESTS = 2_000_000
FEWEST_PLANS, MOST_PLANS = 8, 24
FIRST_TRIALS, LATER_TRIALS = 5, 3  # of a window
AROUND = 0.12  # another window, or another cold start, moves the utilisation only a little
CLOSE_ENOUGH = 0.0003  # above the target
SHORT_OF_ALL = 0.005  # of what the most generous plan gets, where that is less than the target
LEAST_GAIN = 0.005  # of twice as many replicas in a fixed fleet; less is none
IDENTITY = PoolIdentity("replay", "clairvoyant", "clairvoyant", "vllm")


@dataclass(frozen=True, slots=True)
class Clairvoyant:
    """The plan that was found, and what it came to."""

    counts: tuple[int, ...]
    accelerator_hours: float
    replica_hours: float
    attainment: float
    target: float
    utilisation: float
    window_seconds: float
    plans_tried: int

    def document(self) -> dict[str, Any]:
        """Its part of the JSON report."""
        return {
            "accelerator_hours": self.accelerator_hours,
            "replica_hours": self.replica_hours,
            "attainment": self.attainment,
            "target_attainment": self.target,
            "utilisation": self.utilisation,
            "window_s": self.window_seconds,
            "plans_tried": self.plans_tried,
            "how": (
                "best of a family of plans made from the future load: work smoothed over window_s, work / utilisation "
                "+ sqrt(work) / 2 replicas, ordered one mean cold start early; the largest utilisation that meets "
                "target_attainment in simulation, over several windows"
            ),
        }


def planned_policy(name: str, counts: tuple[int, ...]) -> ReplayedPolicy:
    """A plan as a policy."""
    identity = replace(IDENTITY, name=name)
    return ReplayedPolicy(name, identity, counts[0], counts[0], lambda run: PlannedCounts(name, counts, BIN_SECONDS))


def find_clairvoyant(
    stage: Stage, drawn: RequestTrace, seed: int, near: Clairvoyant | None = None
) -> Clairvoyant | None:
    """The cheapest plan that meets the target; None where the search was stopped or there is no request.

    `near` is the plan for the same load with another cold start: the search begins around it, and anew where nothing
    there meets the target.
    """
    if not len(drawn):
        return None
    search = _Search(stage, drawn, seed)
    plans = max(FEWEST_PLANS, min(MOST_PLANS, SEARCH_REQUESTS // search.requests_of_a_trial))
    best: Clairvoyant | None = None
    if near is None:
        best = search.most_generous()
        low, high, steps, target = LEAST_UTILISATION, MOST_UTILISATION, FIRST_TRIALS, best.target
    else:
        low, high, steps, target = near.utilisation - AROUND, near.utilisation + AROUND, LATER_TRIALS, near.target
    for window in WINDOWS_SECONDS:
        if best is not None and search.tried + steps > plans:
            break
        found = search.largest_utilisation(window, target, low, high, steps)
        if search.was_stopped:
            return None
        if found is not None and (best is None or found.accelerator_hours < best.accelerator_hours):
            best = found
        if best is not None:
            low, high, steps = (
                max(LEAST_UTILISATION, best.utilisation - AROUND),
                best.utilisation + AROUND,
                LATER_TRIALS,
            )
    if best is None:
        return find_clairvoyant(stage, drawn, seed)
    return replace(best, plans_tried=search.tried)


class _Search:
    def __init__(self, stage: Stage, drawn: RequestTrace, seed: int) -> None:
        self.tried = 0
        self.was_stopped = False
        mean = stage.fleet.cold_start.mean_seconds
        nodes = stage.fleet.nodes
        fixed = ColdStart((ColdStartPhase("known", mean, 0.0),))
        if nodes is not None:
            fixed, nodes = stage.fleet.cold_start.at_its_mean(), nodes.without_trouble()
        self._stage = replace(stage, fleet=replace(stage.fleet, cold_start=fixed, nodes=nodes))
        self._drawn = drawn
        self._seed = seed
        load = stage.load.bins(drawn, BIN_SECONDS)
        self._work = work(stage.fleet.profile, load, stage.fleet.objectives)
        self._lead_bins = math.ceil(mean / BIN_SECONDS)
        self._parts = _parts(stage, drawn)
        self.requests_of_a_trial = sum(len(part.drawn) for part in self._parts)

    def most_generous(self) -> Clairvoyant:
        """The plan with the most replicas of the family, which says what can be reached."""
        counts = self.plan(WINDOWS_SECONDS[0], LEAST_UTILISATION)
        trial = self._try(counts)
        target = TARGET if trial.attainment >= TARGET else trial.attainment - SHORT_OF_ALL
        return _plan_of(counts, trial, target, LEAST_UTILISATION, WINDOWS_SECONDS[0])

    def plan(self, window_seconds: float, utilisation: float) -> tuple[int, ...]:
        """The counts by bin."""
        bins = max(1, round(window_seconds / BIN_SECONDS))
        smooth = _centred_mean(self._work, bins)
        needed = np.maximum(1, np.ceil(smooth / utilisation + 0.5 * np.sqrt(smooth))).astype(np.int64)
        ahead = np.concatenate([needed, np.repeat(needed[-1], self._lead_bins)])
        windows = np.lib.stride_tricks.sliding_window_view(ahead, self._lead_bins + 1)
        return tuple(int(count) for count in windows.max(axis=1))

    def largest_utilisation(
        self, window_seconds: float, target: float, low: float, high: float, steps: int
    ) -> Clairvoyant | None:
        """Between the two that are nearest, in whole runs; None where no plan that was tried meets the target."""
        best: Clairvoyant | None = None
        missed: dict[float, float] = {}
        for _ in range(steps):
            middle = _between(low, high, missed, 1.0 - target)
            counts = self.plan(window_seconds, middle)
            trial = self._try(counts)
            if self.was_stopped:
                return None
            missed[middle] = 1.0 - trial.attainment
            if trial.attainment >= target:
                low = middle
                found = _plan_of(counts, trial, target, middle, window_seconds)
                best = found if best is None or found.accelerator_hours < best.accelerator_hours else best
                if trial.attainment < target + CLOSE_ENOUGH:
                    break
            else:
                high = middle
        return best

    def _try(self, counts: tuple[int, ...]) -> _Trial:
        self.tried += 1
        met = requests = 0
        simulated_hours = planned_hours = accelerator_hours = 0.0
        for part in self._parts:
            planned = counts[part.first_bin : part.end_bin]
            stage = replace(self._stage, load=part.load)
            result = stage.run(planned_policy("clairvoyant", planned), part.drawn, self._seed)
            self.was_stopped = self.was_stopped or result.was_stopped
            met, requests = met + result.met, requests + result.requests
            simulated_hours += result.replica_hours
            accelerator_hours += result.accelerator_hours
            planned_hours += math.fsum(planned) * BIN_SECONDS / 3600.0
        # What was simulated has the replicas that drain as well, and a last bin that may be shorter.
        hours = math.fsum(counts) * BIN_SECONDS / 3600.0 * simulated_hours / planned_hours
        # Where nodes are simulated, whole ones are paid for.
        per_replica: float = self._stage.fleet.profile.accelerators_per_replica
        if self._stage.fleet.nodes is not None:
            per_replica = accelerator_hours / simulated_hours
        return _Trial(met / max(requests, 1), hours, hours * per_replica)


def _between(low: float, high: float, missed: Mapping[float, float], wanted: float) -> float:
    """Where the missed share should be the wanted one; the middle where not both ends have been tried."""
    if low not in missed or high not in missed:
        return (low + high) / 2.0
    at_low, at_high, at_wanted = (math.log(max(share, 1e-5)) for share in (missed[low], missed[high], wanted))
    share = (at_wanted - at_low) / max(at_high - at_low, 1e-9)
    return low + min(max(share - 0.05, 0.1), 0.9) * (high - low)


@dataclass(frozen=True, slots=True)
class _Trial:
    attainment: float
    replica_hours: float  # of the whole plan
    accelerator_hours: float


def _plan_of(
    counts: tuple[int, ...], trial: _Trial, target: float, utilisation: float, window_seconds: float
) -> Clairvoyant:
    return Clairvoyant(
        counts=counts,
        accelerator_hours=trial.accelerator_hours,
        replica_hours=trial.replica_hours,
        attainment=trial.attainment,
        target=target,
        utilisation=utilisation,
        window_seconds=window_seconds,
        plans_tried=0,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the load that plans are tried on."""

    load: TraceLoad
    drawn: RequestTrace
    first_bin: int
    end_bin: int


def _parts(stage: Stage, drawn: RequestTrace) -> tuple[_Part, ...]:
    """The whole load, or evenly spaced parts of a long one; each begins at a bin."""
    load = stage.load
    bins = math.ceil(load.hours * 3600.0 / BIN_SECONDS)
    share = min(1.0, TRIAL_REQUESTS / len(drawn))
    length = max(math.ceil(bins * share / TRIAL_PARTS), math.ceil(SHORTEST_PART_SECONDS / BIN_SECONDS))
    if share == 1.0 or length * TRIAL_PARTS >= bins:
        return (_Part(load, drawn, 0, bins),)
    firsts = [round(place * (bins - length) / (TRIAL_PARTS - 1)) for place in range(TRIAL_PARTS)]
    parts = []
    for first in firsts:
        begins = load.start_seconds + first * BIN_SECONDS
        ends = min(begins + length * BIN_SECONDS, load.end_seconds)
        part = replace(load, start_seconds=begins, end_seconds=ends)
        parts.append(_Part(part, drawn.part(begins, ends), first, first + length))
    return tuple(part for part in parts if len(part.drawn))


def least_fixed_count(stage: Stage, drawn: RequestTrace, seed: int, target: float) -> int:
    """The least fixed count at which the target is met; where none meets it, one of which twice as many gain less than
    half a point.

    A whole run is made for every count that is tried; so the search begins at what the busiest two minutes comfortably
    need, and goes from there in steps that double.
    """
    peak = work(stage.fleet.profile, stage.load.bins(drawn, BIN_SECONDS), stage.fleet.objectives)
    busiest = float(_centred_mean(peak, 8).max())

    def attainment(count: int) -> float:
        result = stage.run(planned_policy("static-peak", (count,)), drawn, seed)
        return target if result.was_stopped else result.attainment or 0.0

    def meets(count: int) -> bool:
        return attainment(count) >= target

    ample = max(1, math.ceil(2.0 * busiest) + 1)
    found = _least_between(meets, 0, ample, math.ceil(busiest / COMFORTABLE_UTILISATION), math.ceil(busiest / 16.0))
    if found < ample:
        return found
    # Long requests may miss in a fleet that has room enough for its work.
    missed, count, share = ample - 1, ample, attainment(ample)
    while share < target:
        share_of_twice = attainment(2 * count)
        if share_of_twice - share < LEAST_GAIN:
            return count
        missed, count, share = count, 2 * count, share_of_twice
    return _least_between(meets, missed, count, (missed + count) // 2, 1)


def _least_between(meets: Callable[[int], bool], missed: int, met: int, tried: int, step: int) -> int:
    """The least count above `missed` that meets the target, at most `met`, which is not tried itself."""
    step = max(1, step)
    while met - missed > 1:
        tried = tried if missed < tried < met else (missed + met) // 2
        if meets(tried):
            met, tried = tried, tried - step
        else:
            missed, tried = tried, tried + step
        step *= 2
    return met


def _centred_mean(values: FloatArray, bins: int) -> FloatArray:
    kernel = np.ones(bins)
    weight: FloatArray = np.convolve(np.ones_like(values), kernel, mode="full")
    total: FloatArray = np.convolve(values, kernel, mode="full")
    first = (bins - 1) // 2
    return (total / weight)[first : first + len(values)]
