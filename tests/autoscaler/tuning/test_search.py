"""A search on outcomes that are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import pytest

from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.trace import shipped_trace
from autoscaler.replay.trace_load import trace_load
from autoscaler.tuning.contender import Contender, Variant
from autoscaler.tuning.dimension import Choice, Dimension, NumberRange, Values
from autoscaler.tuning.figures import RunFigures
from autoscaler.tuning.objective import AttainmentAtLeast
from autoscaler.tuning.run_pool import Job
from autoscaler.tuning.scenes import Part, Scene, cut_scene
from autoscaler.tuning.search import BATCH, Laboratory, SearchOutcome, SearchTask, search
from autoscaler.tuning.study_file import Study

DIMENSIONS: tuple[Dimension, ...] = (
    NumberRange("share", 0.1, 10.0, is_log=True),
    Choice("mode", ("good", "bad")),
)
GIVEN: Values = {"share": 1.0, "mode": "bad"}


class KnownOutcomes:
    """A larger share misses more and costs less; 1.0 is the share at which half a percent is missed."""

    def __init__(self, stops_after: float = math.inf) -> None:
        self.ran: list[Job] = []
        self._stops_after = stops_after

    def was_stopped(self) -> bool:
        return len(self.ran) >= self._stops_after

    def run(self, jobs: Sequence[Job], was_stopped: Callable[[], bool]) -> Iterator[tuple[int, RunFigures | None]]:
        for place, job in enumerate(jobs):
            if was_stopped():
                return
            self.ran.append(job)
            values = {**GIVEN, **job.contender.values}
            share = float(str(values["share"]))
            missed = round(min(1e6, 5000.0 * share**2) * (1.0 if values["mode"] == "good" else 2.0))
            yield place, RunFigures(f"load {job.scene}", job.seed, 1.0, 10**6, missed, 10.0 / share, 2, 1, 4)


@pytest.fixture(scope="module")
def scene() -> Scene:
    fleet = fleet_from(None)
    assert isinstance(fleet, Fleet)
    return cut_scene("load 0", fleet, trace_load(shipped_trace("azure_conversation_2023"), 1.0, 0.0, 600.0, 0), 30.0)


def laboratory(scene: Scene, outcomes: KnownOutcomes, study: Study | None = None) -> Laboratory:
    return Laboratory((scene,), outcomes, Study() if study is None else study, (1, 2), (3, 4), outcomes.was_stopped)


def a_task(
    budget: int,
    dimensions: tuple[Dimension, ...] = DIMENSIONS,
    make: Callable[[Values], Contender | None] = lambda values: Variant({}, values),
) -> SearchTask:
    return SearchTask(Variant({}, {}), GIVEN, dimensions, make, budget, seed=1)


def searched(task: SearchTask, laboratory: Laboratory) -> SearchOutcome:
    outcome = search(task, laboratory)
    assert outcome is not None
    return outcome


def told(outcome: SearchOutcome) -> list[tuple[Values, float]]:
    return [(trial.values, trial.figures.missed_share) for trial in outcome.trials]


def test_it_comes_near_the_best_there_is(scene: Scene) -> None:
    outcome = searched(a_task(64), laboratory(scene, KnownOutcomes()))
    best = outcome.best(AttainmentAtLeast(0.995))
    assert best.values["mode"] == "good"
    assert 0.8 <= float(str(best.values["share"])) <= 1.0
    hours = [trial.figures.accelerator_hours for trial in outcome.front()]
    missed = [trial.figures.missed_share for trial in outcome.front()]
    assert hours == sorted(hours)
    assert missed == sorted(missed, reverse=True)


def test_every_policy_is_run_by_every_seed_and_the_given_one_first(scene: Scene) -> None:
    outcomes = KnownOutcomes()
    searched(a_task(8), laboratory(scene, outcomes))
    assert [job.seed for job in outcomes.ran[:2]] == [1, 2]
    assert outcomes.ran[0].contender.values == {}
    assert len(outcomes.ran) == 9 * 2
    assert {job.part for job in outcomes.ran} == {Part.SEARCH}


def test_the_same_seed_gives_the_same_search(scene: Scene) -> None:
    first, second = (searched(a_task(20), laboratory(scene, KnownOutcomes())) for _ in range(2))
    assert told(first) == told(second)


@pytest.mark.parametrize("runs", [1, 2, 7, 2 + 2 * BATCH, 31])
def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(scene: Scene, runs: int) -> None:
    whole = searched(a_task(20), laboratory(scene, KnownOutcomes()))
    study, before = Study(), KnownOutcomes(stops_after=runs)
    stopped = search(a_task(20), laboratory(scene, before, study))
    assert stopped is None or stopped.was_stopped
    after = KnownOutcomes()
    assert told(searched(a_task(20), laboratory(scene, after, study))) == told(whole)
    assert len(before.ran) + len(after.ran) == 21 * 2


def test_a_larger_budget_goes_on_where_the_smaller_one_ended(scene: Scene) -> None:
    study, outcomes = Study(), KnownOutcomes()
    small = searched(a_task(12), laboratory(scene, KnownOutcomes(), study))
    large = searched(a_task(20), laboratory(scene, outcomes, study))
    assert told(large)[: len(small.trials)] == told(small)
    assert len(outcomes.ran) == 8 * 2


def test_where_all_there_is_has_been_tried_it_ends(scene: Scene) -> None:
    few = (Choice("mode", ("good", "bad")), NumberRange("share", 1, 2, is_whole=True))
    outcome = searched(a_task(500, few), laboratory(scene, KnownOutcomes()))
    assert len(outcome.trials) <= 1 + 4
    assert {trial.values["mode"] for trial in outcome.trials} == {"good", "bad"}


def test_values_that_make_no_valid_policy_are_not_run(scene: Scene) -> None:
    def make(values: Values) -> Contender | None:
        return Variant({}, values) if values["mode"] == "good" else None

    outcome = searched(a_task(24, make=make), laboratory(scene, KnownOutcomes()))
    assert outcome.invalid > 0
    assert all(trial.values["mode"] == "good" for trial in outcome.trials[1:])
    assert outcome.invalid + len(outcome.trials) - 1 <= 24
