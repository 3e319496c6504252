"""What did runs come to, each and together?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoscaler.replay.result import PoolResult


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run: which load, by which seed, and what came of it. Requests that did not meet all objectives are missed.

    Of a run of rates those are missed that arrived while it was short.
    """

    load: str
    seed: int
    hours: float
    requests: int
    missed: int
    accelerator_hours: float
    scale_changes: int
    reversals: int
    max_replicas: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Several runs together: sums over the loads, means over the seeds of each."""

    runs: tuple[RunFigures, ...]

    @property
    def missed_share(self) -> float:
        """Missed requests by all that arrived; 0 where none did."""
        requests = sum(run.requests for run in self.runs)
        return sum(run.missed for run in self.runs) / requests if requests else 0.0

    @property
    def attainment(self) -> float:
        """Share of the requests that met all objectives."""
        return 1.0 - self.missed_share

    @property
    def accelerator_hours(self) -> float:
        """Of one pass over all loads."""
        seeds = len({run.seed for run in self.runs})
        return math.fsum(run.accelerator_hours for run in self.runs) / max(seeds, 1)

    @property
    def aims(self) -> tuple[float, float]:
        """What is to be small: missed share and accelerator-hours."""
        return self.missed_share, self.accelerator_hours

    @property
    def reversals_per_hour(self) -> float:
        """How often an hour the count went the other way than before."""
        hours = math.fsum(run.hours for run in self.runs)
        return sum(run.reversals for run in self.runs) / hours if hours else 0.0

    @property
    def max_replicas(self) -> int:
        """The most of any run."""
        return max((run.max_replicas for run in self.runs), default=0)

    def by_load(self) -> tuple[tuple[str, Figures], ...]:
        """The same of each load alone, in order."""
        names = dict.fromkeys(run.load for run in self.runs)
        return tuple((name, Figures(tuple(run for run in self.runs if run.load == name))) for name in names)


def run_figures(result: PoolResult, load: str) -> RunFigures:
    """What tuning keeps of a run."""
    return RunFigures(
        load=load,
        seed=result.seed,
        hours=result.hours,
        requests=result.requests,
        missed=result.requests - result.met if result.short_requests is None else result.short_requests,
        accelerator_hours=result.accelerator_hours,
        scale_changes=len(result.changes),
        reversals=result.reversals,
        max_replicas=result.max_replicas,
    )


def front_places(figures: Sequence[Figures]) -> tuple[int, ...]:
    """Which of them no other one dominates, from the fewest accelerator-hours to the most; the first of equals only."""
    order = sorted(
        range(len(figures)), key=lambda place: (figures[place].accelerator_hours, figures[place].missed_share, place)
    )
    found: list[int] = []
    for place in order:
        if not found or figures[place].missed_share < figures[found[-1]].missed_share:
            found.append(place)
    return tuple(found)
