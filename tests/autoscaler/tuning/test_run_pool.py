"""Worker processes run what this process would run."""

from __future__ import annotations

import pytest

from autoscaler.replay.fleet_description import Fleet, fleet_from
from autoscaler.replay.trace import shipped_trace
from autoscaler.replay.trace_load import trace_load
from autoscaler.tuning.baseline_search import baseline_dimensions, best_parameters, search_baseline
from autoscaler.tuning.contender import BaselineRun
from autoscaler.tuning.run_pool import Job, RunPool
from autoscaler.tuning.scenes import Part, Scene, cut_scene
from autoscaler.tuning.search import Laboratory
from autoscaler.tuning.study_file import Study

KEDA = BaselineRun("keda-hpa", {}, 1, 12)


@pytest.fixture(scope="module")
def scene() -> Scene:
    fleet = fleet_from("llama-3.1-8b-bf16-1xa100-vllm")
    assert isinstance(fleet, Fleet)
    return cut_scene("chat", fleet, trace_load(shipped_trace("azure_conversation_2023"), 4.0, 0.0, 600.0, 0), 50.0)


def never() -> bool:
    return False


def test_workers_come_to_what_this_process_comes_to_and_stop_when_they_are_told(scene: Scene) -> None:
    jobs = [Job(KEDA, 0, part, seed) for part in Part for seed in (1, 2)]
    with RunPool((scene,), 1) as here, RunPool((scene,), 2) as workers:
        ours, theirs = dict(here.run(jobs, never)), dict(workers.run(jobs, never))
        came = runs_before_a_stop(workers)
    assert ours == theirs
    assert {figures.requests for figures in ours.values() if figures} == {
        len(scene.load(part).draw(seed)) for part in Part for seed in (1, 2)
    }
    assert came == 2


def test_this_process_stops_when_it_is_told(scene: Scene) -> None:
    with RunPool((scene,), 1) as pool:
        assert runs_before_a_stop(pool) == 2


def runs_before_a_stop(pool: RunPool) -> int:
    jobs = [Job(KEDA, 0, Part.SEARCH, seed) for seed in range(1, 9)]
    came: list[int] = []
    for place, _ in pool.run(jobs, lambda: len(came) >= 2):
        came.append(place)
    return len(came)


def test_a_searched_baseline_is_at_least_as_good_as_the_published_one(scene: Scene) -> None:
    with RunPool((scene,), 1) as pool:
        laboratory = Laboratory((scene,), pool, Study(), (1,), (2,))
        outcome = search_baseline(KEDA, laboratory, 4, seed=1)
    assert outcome is not None
    assert outcome.given.contender == KEDA
    assert len(outcome.trials) == 5
    names = {dimension.path for dimension in baseline_dimensions(KEDA, scene, 1)}
    assert all(trial.values.keys() == names for trial in outcome.trials[1:])


def test_what_has_nothing_to_be_tuned_is_run_as_published(scene: Scene) -> None:
    with RunPool((scene,), 1) as pool:
        laboratory = Laboratory((scene,), pool, Study(), (1,), (2,))
        outcome = search_baseline(BaselineRun("static-mean", {}, 1, 12), laboratory, 4, seed=1)
    assert outcome is not None
    assert len(outcome.trials) == 1
    assert best_parameters("static-mean", scene, (1, 12), (1,), lambda what, share: True) is None
