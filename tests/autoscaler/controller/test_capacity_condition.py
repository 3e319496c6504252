from __future__ import annotations

from dataclasses import replace

import pytest

from autoscaler.api.conditions import ConditionType
from autoscaler.controller.pool_conditions import judged_conditions
from policies.capacity.learned_capacity import LearnedCapacity
from policies.capacity.memory import CapacityMemory
from tests.builders import NOW
from tests.pool_builders import a_decision_report

CAPACITY = LearnedCapacity(16_000.0, 750.0, 54_000.0, 0.75, 0.05, 41.4, "8B on one fast accelerator")
LEARNED = (
    "True CapacityLearned a replica computes 16 000 prompt tokens or 750 answer tokens a second within the objectives, "
    "75 % of which is safe; learned from 41 minutes, nearest to 8B on one fast accelerator"
)
UNLEARNED = (
    "False CapacityNotLearned what a replica can do within the objectives is not known yet, so the pool grows and does "
    "not shrink"
)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        pytest.param(CapacityMemory(NOW, capacity=CAPACITY), LEARNED, id="learned"),
        pytest.param(
            CapacityMemory(NOW, capacity=replace(CAPACITY, safe_utilization=0.45)),
            LEARNED.replace(
                "75 % of which is safe",
                "45 % of which is safe, the least that is learned: where the objectives are still missed, state looser "
                "ones, a larger minReplicas, or shorten prompts",
            ),
            id="as few requests a replica as it learns to give, and what is left to do",
        ),
        pytest.param(CapacityMemory(NOW), UNLEARNED, id="not learned yet"),
        pytest.param(
            CapacityMemory(NOW, "what its pods are made of has changed"),
            f"{UNLEARNED}; begun anew: what its pods are made of has changed",
            id="begun anew, and why",
        ),
        pytest.param(None, None, id="a policy without objectives"),
    ],
)
def test_the_condition(memory: CapacityMemory | None, expected: str | None) -> None:
    report = replace(a_decision_report(), capacity=memory)
    conditions = {condition.type: condition for condition in judged_conditions((), report)}
    found = conditions.get(ConditionType.CAPACITY_LEARNED)
    assert (f"{found.status.value} {found.reason} {found.message}" if found else None) == expected
