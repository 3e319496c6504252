"""Which searches a policy admits."""

from __future__ import annotations

import pytest

from autoscaler.tuning.search_space import SearchRefused, combinations, read_search
from tests.tuning_builders import a_policy_document

WINDOW = "behavior.scaleDown.stabilizationWindowSeconds=60..900"


@pytest.mark.parametrize(
    ("texts", "size"),
    [
        pytest.param([WINDOW], 841, id="whole numbers are counted"),
        pytest.param(["minReplicas=1..4", "forecast.mode=Off,Active"], 8, id="of several all combinations"),
        pytest.param(["behavior.scaleUp.tolerance=0..0.2"], float("inf"), id="numbers have no end"),
        pytest.param([], 1, id="of nothing there is one policy"),
        pytest.param(["minReplicas=1..12", "maxReplicas=4..16"], 156, id="an end that another dimension makes valid"),
    ],
)
def test_a_search_that_the_policy_admits(texts: list[str], size: float) -> None:
    dimensions = read_search(texts, a_policy_document())
    assert not isinstance(dimensions, SearchRefused)
    assert combinations(dimensions) == size


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        pytest.param([WINDOW, WINDOW], "it is given more than once", id="a parameter twice"),
        pytest.param(["minReplicas=1..12"], "with 12 the policy is refused", id="beyond the policy's own maximum"),
        pytest.param(
            ["signals.pendingRequests.perReplica=1..4"],
            "the policy is refused: spec.signals.pendingRequests.query is missing",
            id="a block that needs more than the parameter",
        ),
        pytest.param(
            ["behavior.scaleDown.policies[0].value=1..4"],
            "spec.behavior.scaleDown.policies[0] is not in the policy; write it there first",
            id="an item that is not there",
        ),
    ],
)
def test_a_search_that_it_does_not_admit(texts: list[str], problem: str) -> None:
    found = read_search(texts, a_policy_document())
    assert isinstance(found, SearchRefused)
    assert any(problem in each for each in found.problems)


def test_every_problem_is_said_at_once() -> None:
    found = read_search(["minReplicas=4", "nothing=1..2", WINDOW], a_policy_document())
    assert isinstance(found, SearchRefused)
    assert len(found.problems) == 2
