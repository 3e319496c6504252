"""What is the least that perfect knowledge of the future needs? A plan made from the load itself, found by trying.

The load's work (replicas' worth, `replica_work.py`) is smoothed over a window; the plan has work / u + sqrt(work) / 2
replicas, ordered one mean cold start early, so that no dip shorter than a cold start is followed. Cold starts take
exactly their mean, as somebody who knows the future knows them too. For each of several windows the largest u is sought
by bisection at which 99.5 % of the requests meet their objectives; the plan with the fewest accelerator-hours counts.
It is the best of this family, and so at least what the very best plan would need. Where even a fleet of several times
the work gets less than 99.5 %, the target is half a point below what that fleet gets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.comparison import Stage
from autoscaler.replay.planned_counts import PlannedCounts
from autoscaler.replay.policy_files import PoolIdentity, ReplayedPolicy
from autoscaler.replay.replica_work import work
from autoscaler.replay.result import PoolResult
from autoscaler.replay.trace import FloatArray, RequestTrace

TARGET = 0.995
BIN_SECONDS = 15.0
WINDOWS_SECONDS = (120.0, 30.0, 300.0, 900.0)
LEAST_UTILISATION, MOST_UTILISATION = 0.25, 1.3
# So many requests are simulated in the search at most, but no fewer than so many plans tried.
SEARCH_REQUESTS = 3_000_000
FEWEST_PLANS = 6
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
    return ReplayedPolicy(
        name, identity, counts[0], counts[0], lambda reporters: PlannedCounts(name, counts, BIN_SECONDS)
    )


def find_clairvoyant(stage: Stage, drawn: RequestTrace, seed: int) -> Clairvoyant | None:
    """The cheapest plan that meets the target; None where the search was stopped or there is no request."""
    if not len(drawn):
        return None
    search = _Search(stage, drawn, seed)
    plans = max(FEWEST_PLANS, min(24, SEARCH_REQUESTS // len(drawn)))
    target = search.reachable_target()
    best: Clairvoyant | None = None
    low, high, steps = LEAST_UTILISATION, MOST_UTILISATION, 6
    for window in WINDOWS_SECONDS:
        if best is not None and search.tried + steps > plans:
            break
        found = search.largest_utilisation(window, target, low, high, steps)
        if search.was_stopped:
            return None
        if found is not None and (best is None or found.accelerator_hours < best.accelerator_hours):
            best = found
        if best is not None:
            # Another window moves the utilisation only a little.
            low, high, steps = max(LEAST_UTILISATION, best.utilisation - 0.15), best.utilisation + 0.15, 4
    return None if best is None else replace(best, plans_tried=search.tried)


class _Search:
    def __init__(self, stage: Stage, drawn: RequestTrace, seed: int) -> None:
        self.tried = 0
        self.was_stopped = False
        mean = stage.fleet.cold_start.mean_seconds
        fixed = ColdStart((ColdStartPhase("known", mean, 0.0),))
        self._stage = replace(stage, fleet=replace(stage.fleet, cold_start=fixed))
        self._drawn = drawn
        self._seed = seed
        load = stage.load.bins(drawn, BIN_SECONDS)
        self._work = work(stage.fleet.profile, load, stage.fleet.objectives)
        self._lead_bins = math.ceil(mean / BIN_SECONDS)

    def reachable_target(self) -> float:
        """99.5 %, or half a point below what the most generous plan of the family gets."""
        result = self._run(self.plan(WINDOWS_SECONDS[0], LEAST_UTILISATION))
        return min(TARGET, (result.attainment or 0.0) - 0.005)

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
        """By bisection, in whole runs; None where no plan that was tried meets the target."""
        best: Clairvoyant | None = None
        for _ in range(steps):
            middle = (low + high) / 2.0
            counts = self.plan(window_seconds, middle)
            result = self._run(counts)
            if self.was_stopped:
                return None
            attainment = result.attainment or 0.0
            if attainment >= target:
                low = middle
                found = Clairvoyant(
                    counts=counts,
                    accelerator_hours=result.accelerator_hours,
                    replica_hours=result.replica_hours,
                    attainment=attainment,
                    target=target,
                    utilisation=middle,
                    window_seconds=window_seconds,
                    plans_tried=0,
                )
                best = found if best is None or found.accelerator_hours < best.accelerator_hours else best
            else:
                high = middle
        return best

    def _run(self, counts: tuple[int, ...]) -> PoolResult:
        self.tried += 1
        result = self._stage.run(planned_policy("clairvoyant", counts), self._drawn, self._seed)
        self.was_stopped = self.was_stopped or result.was_stopped
        return result


def least_fixed_count(stage: Stage, drawn: RequestTrace, seed: int, target: float) -> int:
    """The least fixed count at which the target is met, or beyond which nothing is gained."""
    peak = work(stage.fleet.profile, stage.load.bins(drawn, BIN_SECONDS), stage.fleet.objectives)
    low, high = 0, max(1, math.ceil(2.0 * float(_centred_mean(peak, 8).max())) + 1)

    def meets(count: int) -> bool:
        result = stage.run(planned_policy("static-peak", (count,)), drawn, seed)
        return result.was_stopped or (result.attainment or 0.0) >= target

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _centred_mean(values: FloatArray, bins: int) -> FloatArray:
    kernel = np.ones(bins)
    weight: FloatArray = np.convolve(np.ones_like(values), kernel, mode="full")
    total: FloatArray = np.convolve(values, kernel, mode="full")
    first = (bins - 1) // 2
    return (total / weight)[first : first + len(values)]
