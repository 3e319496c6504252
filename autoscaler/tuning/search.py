"""Which values of the searched parameters give the best outcomes? Tries by the batch, each on every load and seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.tuning.contender import Contender, contender_key
from autoscaler.tuning.dimension import Dimension, Tried, Values
from autoscaler.tuning.figures import Figures, RunFigures, front_places
from autoscaler.tuning.objective import Objective
from autoscaler.tuning.run_pool import Job
from autoscaler.tuning.scenes import Part, Scene
from autoscaler.tuning.search_space import combinations
from autoscaler.tuning.study_file import RunKey, Study

# Tries that are proposed together and run side by side. The number of cores does not change what is proposed.
BATCH = 8


@dataclass(frozen=True, slots=True)
class Trial:
    """One contender that was tried, and what it came to. Values of the given policy are those that it has."""

    contender: Contender
    values: Values
    figures: Figures


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """All trials that were run, the given contender's first; how many tries were no valid policy."""

    trials: tuple[Trial, ...]
    invalid: int = 0
    was_stopped: bool = False

    @property
    def given(self) -> Trial:
        """What the search began with."""
        return self.trials[0]

    def front(self) -> tuple[Trial, ...]:
        """Those that no other one beats in misses and hours both, from the fewest hours to the most."""
        return tuple(self.trials[place] for place in front_places([trial.figures for trial in self.trials]))

    def best(self, objective: Objective) -> Trial:
        """The best by the objective; the first of equals."""
        return min(self.trials, key=lambda trial: objective.rank(trial.figures, self.given.figures))


@dataclass(frozen=True, slots=True)
class SearchTask:
    """What is searched: the given contender and the values that it has, and how others are made of values."""

    given: Contender
    given_values: Values
    dimensions: tuple[Dimension, ...]
    make: Callable[[Values], Contender | None]  # None: not valid
    budget: int  # tries besides the given one
    seed: int


class Runner(Protocol):
    """Who runs jobs; `RunPool` does."""

    def run(self, jobs: Sequence[Job], was_stopped: Callable[[], bool]) -> Iterator[tuple[int, RunFigures | None]]:
        """Each job's place and figures as soon as they are there; ends early once it was stopped."""
        ...


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where contenders are run: the loads, the workers, and what has been run before."""

    scenes: tuple[Scene, ...]
    runner: Runner
    study: Study
    seeds: tuple[int, ...]
    held_out_seeds: tuple[int, ...]
    was_stopped: Callable[[], bool] = lambda: False
    tells: Callable[[int], None] = lambda runs: None  # that so many more runs are done

    def run(self, contenders: Sequence[Contender], part: Part) -> tuple[Figures | None, ...]:
        """What each comes to on all loads; None where it was stopped before, or cannot be made there."""
        keys = [contender_key(contender) for contender in contenders]
        wanted: dict[RunKey, Job] = {}
        for contender, key in zip(contenders, keys, strict=True):
            for place, scene in enumerate(self.scenes):
                for seed in self._seeds(part):
                    wanted[RunKey(part.value, key, scene.name, seed)] = Job(contender, place, part, seed)
        missing = {key: job for key, job in wanted.items() if key not in self.study.runs}
        self.tells(len(wanted) - len(missing))
        self._run_missing(missing)
        return tuple(self._together(key, part) for key in keys)

    def _run_missing(self, missing: dict[RunKey, Job]) -> None:
        keys, jobs = tuple(missing), tuple(missing.values())
        for place, figures in self.runner.run(jobs, self.was_stopped):
            if figures is not None:
                self.study.add(keys[place], figures)
                self.tells(1)

    def _together(self, key: str, part: Part) -> Figures | None:
        wanted = [RunKey(part.value, key, scene.name, seed) for scene in self.scenes for seed in self._seeds(part)]
        runs = tuple(self.study.runs[each] for each in wanted if each in self.study.runs)
        return Figures(runs) if len(runs) == len(wanted) else None

    def _seeds(self, part: Part) -> tuple[int, ...]:
        return self.seeds if part is Part.SEARCH else self.held_out_seeds


def search(task: SearchTask, laboratory: Laboratory) -> SearchOutcome | None:
    """Tries until the budget is used or everything there is has been tried; None where not even the given one ran."""
    from autoscaler.tuning.proposal import propose  # of an extra, which who searches nothing need not have

    (given,) = laboratory.run([task.given], Part.SEARCH)
    if given is None:
        return None
    trials = [Trial(task.given, task.given_values, given)]
    tried: list[Tried] = [(task.given_values, given.aims)]
    seen: set[str] = set()
    invalid = spent = batch = 0
    while spent < task.budget and len(seen) < combinations(task.dimensions) and not laboratory.was_stopped():
        proposed = propose(task.dimensions, tried, min(BATCH, task.budget - spent), task.seed * 100_003 + batch)
        spent, batch = spent + len(proposed), batch + 1
        contenders = [task.make(values) for values in proposed]
        results = iter(laboratory.run([each for each in contenders if each is not None], Part.SEARCH))
        for values, contender in zip(proposed, contenders, strict=True):
            figures = None if contender is None else next(results)
            key = repr(sorted(values.items()))
            if contender is None:
                invalid += 1
                tried.append((values, None))
            elif figures is not None:
                tried.append((values, figures.aims))
                if key not in seen:
                    trials.append(Trial(contender, values, figures))
            seen.add(key)
    return SearchOutcome(tuple(trials), invalid, laboratory.was_stopped())
