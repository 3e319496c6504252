from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies.constraints.behavior import PolicyType, ScaleDownRules, ScaleUpRules, ScalingPolicy
from policies.constraints.rate_limit import scale_down_limit, scale_up_limit
from policies.decision import decide
from policies.reasons import Reason
from tests.builders import NOW, a_decision_input, a_history, a_policy, an_observation


def policy(kind: str, value: int, period_seconds: int) -> dict[str, Any]:
    return {"type": kind, "value": value, "periodSeconds": period_seconds}


@pytest.mark.parametrize(
    ("rules", "rescaled", "replicas"),
    [
        pytest.param({}, {}, 20, id="by default a pool of 10 may double in 15 s"),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {}, 14, id="4 more"),
        pytest.param({"policies": [policy("Percent", 10, 60)]}, {}, 11, id="10 percent more"),
        pytest.param({"policies": [policy("Percent", 11, 60)]}, {}, 12, id="11 percent more, rounded up"),
        pytest.param({"policies": [policy("Percent", 3900, 60)]}, {}, 400, id="40 times as many"),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {59: 3}, 11, id="3 of the 4 were added 59 s ago"),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {60: 3}, 14, id="60 s ago is outside a period of 60 s"),
        pytest.param(
            {"policies": [policy("Pods", 4, 60)]}, {30: -2}, 16, id="2 taken away meanwhile may come back too"
        ),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {30: 9}, 10, id="more were added than allowed: none taken"),
        pytest.param({"policies": [policy("Pods", 4, 60), policy("Pods", 9, 60)]}, {}, 19, id="the largest of two"),
        pytest.param(
            {"policies": [policy("Pods", 4, 60), policy("Pods", 9, 60)], "selectPolicy": "Min"},
            {},
            14,
            id="the smallest of two, where that is asked for",
        ),
        pytest.param({"selectPolicy": "Disabled"}, {}, 10, id="growth is switched off"),
    ],
)
def test_how_far_a_pool_of_ten_may_grow(rules: dict[str, Any], rescaled: Mapping[float, int], replicas: int) -> None:
    spec = a_policy(
        signals={"pendingRequests": {"query": "q", "perReplica": 1}}, behavior={"scaleUp": rules}, maxReplicas=1000
    )
    metrics = an_observation(queries={"pendingRequests": 500}, ready=10)
    decision = decide(a_decision_input(spec, metrics, replicas=10, history=a_history(rescaled=rescaled)))
    assert (decision.desired_replicas, decision.reason) == (replicas, Reason.SCALE_UP_LIMIT)


@pytest.mark.parametrize(
    ("rules", "rescaled", "replicas"),
    [
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {}, 6, id="4 fewer"),
        pytest.param({"policies": [policy("Percent", 10, 60)]}, {}, 9, id="10 percent fewer"),
        pytest.param({"policies": [policy("Percent", 35, 60)]}, {}, 6, id="35 percent fewer: 6.5 is cut to 6"),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {59: -3}, 9, id="3 of the 4 went 59 s ago"),
        pytest.param({"policies": [policy("Pods", 4, 60)]}, {60: -3}, 6, id="60 s ago is outside a period of 60 s"),
        pytest.param(
            {"policies": [policy("Pods", 4, 60)]}, {30: -9}, 10, id="more went than allowed: none brought back"
        ),
        pytest.param({"policies": [policy("Pods", 4, 60), policy("Pods", 6, 60)]}, {}, 4, id="the largest of two"),
        pytest.param(
            {"policies": [policy("Pods", 4, 60), policy("Pods", 6, 60)], "selectPolicy": "Min"},
            {},
            6,
            id="the smallest of two, where that is asked for",
        ),
        pytest.param({"selectPolicy": "Disabled"}, {}, 10, id="shrinking is switched off"),
    ],
)
def test_how_far_a_pool_of_ten_may_shrink(rules: dict[str, Any], rescaled: Mapping[float, int], replicas: int) -> None:
    spec = a_policy(signals={"pendingRequests": {"query": "q", "perReplica": 1}}, behavior={"scaleDown": rules})
    metrics = an_observation(queries={"pendingRequests": 1}, ready=10)
    decision = decide(a_decision_input(spec, metrics, replicas=10, history=a_history(rescaled=rescaled)))
    assert (decision.desired_replicas, decision.reason) == (replicas, Reason.SCALE_DOWN_LIMIT)


def test_the_message_has_the_numbers() -> None:
    spec = a_policy(
        signals={"pendingRequests": {"query": "q", "perReplica": 1}},
        behavior={"scaleUp": {"policies": [policy("Pods", 4, 60), policy("Percent", 50, 30)]}},
    )
    metrics = an_observation(queries={"pendingRequests": 50}, ready=10)
    message = decide(a_decision_input(spec, metrics, replicas=10)).message
    assert "wanted 50, 15 for now by scaleUp (Max of 4 replicas in 60 s, 50 % in 30 s)" in message


@pytest.mark.parametrize(
    ("kind", "value", "floor", "ceiling"),
    [
        pytest.param("Percent", 50, 500, 1500, id="half of a large pool"),
        pytest.param("Percent", 1, 990, 1010, id="a hundredth"),
        pytest.param("Pods", 7, 993, 1007, id="a few"),
        pytest.param("Pods", 2000, -1000, 3000, id="more than there are: the floor may lie below zero"),
    ],
)
def test_the_limits_of_a_pool_of_a_thousand(kind: str, value: int, floor: int, ceiling: int) -> None:
    rate = (ScalingPolicy(type=PolicyType(kind), value=value, period_seconds=60),)
    assert scale_down_limit(1000, ScaleDownRules(policies=rate), (), NOW) == floor
    assert scale_up_limit(1000, ScaleUpRules(policies=rate), (), NOW) == ceiling
