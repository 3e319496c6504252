"""Which of two outcomes an objective prefers."""

from __future__ import annotations

import pytest

from autoscaler.tuning.figures import Figures, RunFigures, front_places
from autoscaler.tuning.objective import AttainmentAtLeast, Cost, Objective, read_objective


def outcome(missed: int, hours: float, requests: int = 1000, load: str = "day", seed: int = 1) -> Figures:
    return Figures((RunFigures(load, seed, 1.0, requests, missed, hours, 4, 2, 3),))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("attainment>=99.5", AttainmentAtLeast(0.995), id="a share of requests"),
        pytest.param(" attainment >= 99 % ", AttainmentAtLeast(0.99), id="with spaces and a percent sign"),
        pytest.param("cost:miss=10,hour=1", Cost(10.0, 1.0), id="a cost"),
        pytest.param("cost: miss=0, hour=0.5", Cost(0.0, 0.5), id="misses at no cost"),
    ],
)
def test_what_is_asked_for(text: str, expected: Objective) -> None:
    assert read_objective(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("attainment>99", "is wanted, such as", id="another sign"),
        pytest.param("attainment>=101", "at most 100 percent", id="more than all"),
        pytest.param("attainment>=0", "above 0", id="nothing"),
        pytest.param("cost:miss=1", "is wanted, such as", id="half a cost"),
        pytest.param("cost:miss=1,hour=0", "the largest fleet is the best", id="hours at no cost"),
        pytest.param("cheap", "is wanted, such as", id="a word"),
    ],
)
def test_what_is_wrong(text: str, problem: str) -> None:
    found = read_objective(text)
    assert isinstance(found, str)
    assert found.startswith(f"--objective {text}: ")
    assert problem in found


@pytest.mark.parametrize(
    ("objective", "better", "worse"),
    [
        pytest.param(AttainmentAtLeast(0.99), (10, 3.0), (0, 3.1), id="beyond the share only hours count"),
        pytest.param(AttainmentAtLeast(0.99), (10, 9.0), (11, 3.0), id="below it nothing is cheap enough"),
        pytest.param(AttainmentAtLeast(0.99), (20, 9.0), (30, 3.0), id="where none reaches it the nearest counts"),
        pytest.param(Cost(10.0, 1.0), (0, 2.19), (20, 2.0), id="two in a hundred are worth a fifth of the hours"),
        pytest.param(Cost(10.0, 1.0), (20, 2.0), (0, 2.41), id="and no more than that"),
    ],
)
def test_what_is_better(objective: Objective, better: tuple[int, float], worse: tuple[int, float]) -> None:
    given = outcome(0, 1.0)
    assert objective.rank(outcome(*better), given) < objective.rank(outcome(*worse), given)


def test_of_several_loads_and_seeds_hours_are_those_of_one_pass() -> None:
    runs = [outcome(10, 2.0), outcome(0, 4.0, seed=2), outcome(5, 1.0, 500, "night"), outcome(0, 1.0, 500, "night", 2)]
    together = Figures(tuple(run for figures in runs for run in figures.runs))
    assert together.accelerator_hours == 4.0  # (2 + 4) / 2 + (1 + 1) / 2
    assert together.missed_share == 15 / 3000
    assert [(name, alone.accelerator_hours) for name, alone in together.by_load()] == [("day", 3.0), ("night", 1.0)]


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        pytest.param([(5, 2.0), (0, 3.0), (9, 1.0)], (2, 0, 1), id="from the fewest hours to the fewest misses"),
        pytest.param([(5, 2.0), (5, 3.0), (6, 2.0)], (0,), id="what is no better in anything is left out"),
        pytest.param([(5, 2.0), (5, 2.0)], (0,), id="of equals the first stands for all"),
    ],
)
def test_the_front(points: list[tuple[int, float]], expected: tuple[int, ...]) -> None:
    assert front_places([outcome(*point) for point in points]) == expected
