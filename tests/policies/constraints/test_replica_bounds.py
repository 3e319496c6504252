from __future__ import annotations

from typing import Any

import pytest

from policies.constraints.replica_bounds import bounds_at
from policies.decision import decide
from policies.reasons import Reason
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_observation

ALWAYS = {"start": "* * * * *", "end": "0 0 29 2 *"}
PENDING = {"pendingRequests": {"query": "q", "perReplica": 1}}


@pytest.mark.parametrize(
    ("spec", "current", "wanted", "replicas", "reason"),
    [
        pytest.param({"maxReplicas": 6}, 4, 8, 6, Reason.TOO_MANY_REPLICAS, id="capped by the maximum"),
        pytest.param({"minReplicas": 3}, 4, 1, 3, Reason.TOO_FEW_REPLICAS, id="kept by the minimum"),
        pytest.param({}, 4, 5, 5, Reason.PENDING_REQUESTS, id="within the bounds"),
        pytest.param({"maxReplicas": 5}, 4, 5, 5, Reason.PENDING_REQUESTS, id="exactly the maximum is within them"),
        pytest.param({"minReplicas": 3}, 4, 3, 3, Reason.PENDING_REQUESTS, id="so is exactly the minimum"),
        pytest.param({"minReplicas": 4}, 4, 4, 4, Reason.PENDING_REQUESTS, id="and a count that stays at it"),
        pytest.param({"maxReplicas": 6}, 9, 20, 6, Reason.TOO_MANY_REPLICAS, id="a pool above the maximum"),
        pytest.param({"minReplicas": 6}, 4, 20, 6, Reason.TOO_FEW_REPLICAS, id="a pool below the minimum, as in HPA"),
        pytest.param(
            {"schedules": [{**ALWAYS, "name": "a", "minReplicas": 12}]},
            4,
            1,
            12,
            Reason.TOO_FEW_REPLICAS,
            id="a window's minimum is there at once, whatever the rate",
        ),
        pytest.param(
            {"schedules": [{**ALWAYS, "name": "a", "maxReplicas": 5}]},
            4,
            8,
            5,
            Reason.TOO_MANY_REPLICAS,
            id="a window's maximum caps",
        ),
        pytest.param(
            {
                "schedules": [
                    {**ALWAYS, "name": "a", "maxReplicas": 5},
                    {**ALWAYS, "name": "b", "minReplicas": 7},
                ]
            },
            4,
            1,
            7,
            Reason.TOO_FEW_REPLICAS,
            id="of windows that contradict each other the minimum wins",
        ),
        pytest.param(
            {"maxReplicas": 6, "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}},
            9,
            9,
            6,
            Reason.TOO_MANY_REPLICAS,
            id="a maximum lowered below the count is no matter of rates",
        ),
    ],
)
def test_the_count_stays_within_the_bounds(
    spec: dict[str, Any], current: int, wanted: int, replicas: int, reason: Reason
) -> None:
    metrics = an_observation(queries={"pendingRequests": wanted}, ready=current)
    decision = decide(a_decision_input(a_policy(signals=PENDING, **spec), metrics, replicas=current))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("schedules", "minimum_from", "maximum_from"),
    [
        pytest.param([], "minReplicas", "maxReplicas", id="no window"),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 3}], "schedule a", "maxReplicas", id="a window with more replicas"
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "maxReplicas": 8}], "minReplicas", "schedule a", id="a window with fewer replicas"
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "minReplicas": 2, "maxReplicas": 9}],
            "minReplicas",
            "maxReplicas",
            id="a window of the policy's own bounds",
        ),
        pytest.param(
            [{**ALWAYS, "name": "a", "maxReplicas": 4}, {**ALWAYS, "name": "b", "minReplicas": 5}],
            "schedule b",
            "schedule b",
            id="windows that contradict each other",
        ),
    ],
)
def test_bounds_say_where_they_come_from(schedules: list[dict[str, Any]], minimum_from: str, maximum_from: str) -> None:
    bounds = bounds_at(a_policy(minReplicas=2, maxReplicas=9, schedules=schedules), NOW, 0.0)
    assert (bounds.minimum_from, bounds.maximum_from) == (minimum_from, maximum_from)


def test_a_cap_is_named_after_the_maximum_even_where_the_minimum_is_the_same() -> None:
    policy = a_policy(signals=PENDING, minReplicas=4, maxReplicas=4)
    decision = decide(a_decision_input(policy, an_observation(queries={"pendingRequests": 8})))
    assert "capped at 4 by maxReplicas" in decision.message


def test_a_cap_says_what_was_wanted_and_what_caps_it() -> None:
    policy = a_policy(signals=PENDING, schedules=[{**ALWAYS, "name": "night", "maxReplicas": 6}])
    decision = decide(a_decision_input(policy, an_observation(queries={"pendingRequests": 8})))
    assert "wanted 8, capped at 6 by schedule night" in decision.message


@pytest.mark.parametrize(
    ("mode", "replicas", "reason"),
    [
        pytest.param("Scale", 1, Reason.PENDING_REQUESTS, id="Scale lowers"),
        pytest.param("DryRun", 1, Reason.PENDING_REQUESTS, id="DryRun decides what Scale would"),
        pytest.param("ScaleUpOnly", 4, Reason.SCALE_UP_ONLY, id="ScaleUpOnly does not lower"),
    ],
)
def test_the_mode(mode: str, replicas: int, reason: Reason) -> None:
    metrics = an_observation(queries={"pendingRequests": 1})
    decision = decide(a_decision_input(a_policy(signals=PENDING, mode=mode), metrics, history=a_history()))
    assert (decision.desired_replicas, decision.reason) == (replicas, reason)


def test_scale_up_only_keeps_even_what_is_above_the_maximum() -> None:
    decision = decide(a_decision_input(a_policy(signals=PENDING, mode="ScaleUpOnly", maxReplicas=2)))
    assert decision.desired_replicas == 4


@pytest.mark.parametrize(("wanted", "replicas"), [(4, 4), (6, 6)])
def test_scale_up_only_has_nothing_to_say_to_counts_that_do_not_fall(wanted: int, replicas: int) -> None:
    metrics = an_observation(queries={"pendingRequests": wanted})
    decision = decide(a_decision_input(a_policy(signals=PENDING, mode="ScaleUpOnly"), metrics))
    assert (decision.desired_replicas, decision.reason) == (replicas, Reason.PENDING_REQUESTS)
