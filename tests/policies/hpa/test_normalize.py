from __future__ import annotations

import pytest

from policies.constraints.behavior import ScalingBehavior
from policies.hpa.normalize import limit_with_behavior, limit_without_behavior
from policies.reasons import Reason
from tests.builders import NOW

WITHIN = Reason.DESIRED_WITHIN_RANGE


@pytest.mark.parametrize(
    ("current", "desired", "replicas", "reason"),
    [
        pytest.param(5, 10, 10, WITHIN, id="exactly what the policies allow"),
        pytest.param(5, 11, 10, Reason.SCALE_UP_LIMIT, id="one more than they allow"),
        pytest.param(15, 20, 20, WITHIN, id="exactly the maximum"),
        pytest.param(15, 21, 20, Reason.TOO_MANY_REPLICAS, id="one more than the maximum"),
        pytest.param(5, 2, 2, WITHIN, id="exactly the minimum"),
        pytest.param(5, 1, 2, Reason.TOO_FEW_REPLICAS, id="one fewer than the minimum"),
        pytest.param(5, 5, 5, WITHIN, id="no change"),
        pytest.param(10, 30, 20, Reason.TOO_MANY_REPLICAS, id="the policies allow the maximum: the maximum is named"),
    ],
)
def test_where_a_limit_begins_to_act(current: int, desired: int, replicas: int, reason: Reason) -> None:
    limited = limit_with_behavior(current, desired, 2, 20, ScalingBehavior(), (), NOW)
    assert (limited.replicas, limited.reason) == (replicas, reason)


@pytest.mark.parametrize(
    ("current", "desired", "replicas", "reason"),
    [
        pytest.param(5, 10, 10, WITHIN, id="exactly double"),
        pytest.param(5, 11, 10, Reason.SCALE_UP_LIMIT, id="more than double"),
        pytest.param(1, 4, 4, WITHIN, id="four are always allowed"),
        pytest.param(15, 20, 20, WITHIN, id="exactly the maximum"),
        pytest.param(10, 30, 20, Reason.TOO_MANY_REPLICAS, id="double is the maximum: the maximum is named"),
        pytest.param(5, 2, 2, WITHIN, id="exactly the minimum"),
    ],
)
def test_where_a_limit_begins_to_act_without_behavior(
    current: int, desired: int, replicas: int, reason: Reason
) -> None:
    limited = limit_without_behavior(current, desired, 2, 20)
    assert (limited.replicas, limited.reason) == (replicas, reason)


def test_a_floor_at_the_minimum_is_named_after_the_minimum() -> None:
    policies = [{"type": "Pods", "value": 3, "periodSeconds": 60}]
    behavior = ScalingBehavior.model_validate({"scaleDown": {"policies": policies}})
    limited = limit_with_behavior(5, 1, 2, 20, behavior, (), NOW)
    assert (limited.replicas, limited.reason) == (2, Reason.TOO_FEW_REPLICAS)
