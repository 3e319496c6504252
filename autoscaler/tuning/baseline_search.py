"""Which parameters of its own suit a baseline best? The same search as for the policy, over what may be tuned of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autoscaler.replay.baselines.baseline import BASELINES, PUBLISHED, Occasion, Parameters
from autoscaler.tuning.contender import BaselineRun
from autoscaler.tuning.dimension import NumberRange, Values
from autoscaler.tuning.objective import Cost
from autoscaler.tuning.run_pool import RunPool, cores
from autoscaler.tuning.scenes import Part, Scene
from autoscaler.tuning.search import Laboratory, SearchOutcome, SearchTask, search
from autoscaler.tuning.search_range import WIDE_RATIO
from autoscaler.tuning.study_file import Study

# What `tokenscaler replay --tune-baselines` takes: one in a hundred requests missed is worth a tenth of the fleet.
REPLAY_OBJECTIVE = Cost(miss=10.0, hour=1.0)
REPLAY_BUDGET = 24
# Simulated in less time than worker processes take to begin.
FEW_REQUESTS = 100_000


def baseline_dimensions(published: BaselineRun, scene: Scene, seed: int) -> tuple[NumberRange, ...]:
    """What may be tuned of a baseline, sized by the load that is searched on; empty where nothing may be."""
    drawn = scene.drawn(Part.SEARCH, seed)
    occasion = Occasion(scene.stage(Part.SEARCH), drawn, seed, None, published.minimum, published.maximum)
    return tuple(
        NumberRange(each.name, each.low, each.high, is_log=each.high / each.low >= WIDE_RATIO)
        for each in BASELINES[published.name].tunables(occasion)
    )


def search_baseline(published: BaselineRun, laboratory: Laboratory, budget: int, seed: int) -> SearchOutcome | None:
    """The search around a baseline; of one that has nothing to be tuned, as published. None where it did not run."""
    dimensions = baseline_dimensions(published, laboratory.scenes[0], laboratory.seeds[0])

    def make(values: Values) -> BaselineRun:
        return BaselineRun(published.name, _numbers(values), published.minimum, published.maximum)

    return search(SearchTask(published, {}, dimensions, make, budget if dimensions else 0, seed), laboratory)


def _numbers(values: Values) -> Mapping[str, float]:
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def best_parameters(
    name: str, scene: Scene, bounds: tuple[int, int], seeds: tuple[int, ...], goes_on: Callable[[str, float], bool]
) -> Parameters | None:
    """The best parameters of a baseline for a whole load; None where nothing may be tuned, or the search was stopped.

    `goes_on` is told how much of the search is done, and ends it by False. `scene` is not cut: its search part is all.
    """
    published = BaselineRun(name, PUBLISHED, *bounds)
    if not baseline_dimensions(published, scene, seeds[0]):
        return None
    done = 0

    def tells(runs: int) -> None:
        nonlocal done
        done += runs

    def was_stopped() -> bool:
        return not goes_on(f"{name}: tuning", done / ((REPLAY_BUDGET + 1) * len(seeds)))

    requests = len(scene.search.draw(seeds[0])) * len(seeds) * REPLAY_BUDGET
    with RunPool((scene,), cores() if requests > FEW_REQUESTS else 1) as pool:
        laboratory = Laboratory((scene,), pool, Study(), seeds, (), was_stopped, tells)
        outcome = search_baseline(published, laboratory, REPLAY_BUDGET, seeds[0])
    if outcome is None or outcome.was_stopped:
        return None
    best = outcome.best(REPLAY_OBJECTIVE).contender
    return best.values if isinstance(best, BaselineRun) else None
