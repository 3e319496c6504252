from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from policies.constraints.behavior import PolicyType, SelectPolicy
from policies.parameters import ScalingParameters

MORNING = {"name": "morning", "start": "30 7 * * 1-5", "end": "0 19 * * 1-5", "minReplicas": 4}
KV_CACHE = {"name": "queue", "query": "sum(q)", "perReplica": 4}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        pytest.param({"minReplicas": 9}, "minReplicas 9 is above maxReplicas 8", id="a minimum above the maximum"),
        pytest.param(
            {"minReplicas": 0, "signals": {"kvCache": {}}},
            "minReplicas 0 needs something that can be seen without replicas",
            id="zero replicas that nothing can wake up",
        ),
        pytest.param(
            {"missingData": {"fallback": {"replicas": 9}}},
            "missingData.fallback.replicas 9 is above maxReplicas 8",
            id="a fallback above the maximum",
        ),
        pytest.param(
            {"schedules": [MORNING, MORNING]},
            "schedules has 'morning' more than once",
            id="two windows of one name",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "minReplicas": 9}]},
            "schedule 'morning': minReplicas 9 is above the policy's maxReplicas 8",
            id="a window that asks for more than the maximum",
        ),
        pytest.param(
            {"minReplicas": 3, "schedules": [{**MORNING, "minReplicas": None, "maxReplicas": 2}]},
            "schedule 'morning': maxReplicas 2 is below the policy's minReplicas 3",
            id="a window that allows less than the minimum",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "minReplicas": 5, "maxReplicas": 4}]},
            "minReplicas 5 is above its maxReplicas 4",
            id="a window whose own bounds are the wrong way round",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "minReplicas": None}]},
            "give it minReplicas, maxReplicas or both",
            id="a window that changes nothing",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "end": MORNING["start"]}]},
            "starts and ends at the same moments",
            id="a window that ends when it starts",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "minReplicas": 5, "maxReplicas": 5}]}, None, id="a window of exactly one count"
        ),
        pytest.param({"schedules": [{**MORNING, "minReplicas": 8}]}, None, id="a window that asks for the maximum"),
        pytest.param(
            {"minReplicas": 3, "schedules": [{**MORNING, "minReplicas": None, "maxReplicas": 3}]},
            None,
            id="a window that allows the minimum alone",
        ),
        pytest.param({"minReplicas": 8}, None, id="a pool of exactly one count"),
        pytest.param(
            {"forecast": {"quantilePercent": 90, "missIdleCostRatio": 9}},
            "give quantilePercent or missIdleCostRatio, not both",
            id="a quantile that is given twice",
        ),
        pytest.param(
            {"missingData": {"fallback": {"replicas": 8}}}, None, id="a fallback to as many as there may ever be"
        ),
        pytest.param(
            {"schedules": [{**MORNING, "end": None}]},
            "schedule 'morning': start and end go together; for whole days give dates without them",
            id="a window without an end",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "start": None, "end": None}]},
            "schedule 'morning' never opens: give it start and end, or dates",
            id="a window without any time",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "dates": ["2026-02-29"]}]},
            "'2026-02-29' is no date; write 2026-12-24, or 2026-12-24/2026-12-27 for several days",
            id="a day that its year does not have",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "exceptDates": ["2026-12-24/2026-12-32"]}]},
            "'2026-12-24/2026-12-32' is no date",
            id="several days of which the last does not exist",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "dates": ["2026-12-24/2026-12-23"]}]},
            "'2026-12-24/2026-12-23' ends before it begins; write the earlier date first",
            id="several days that are the wrong way round",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "dates": ["2026-12-24/2026-12-24"]}]}, None, id="from a day to the same day"
        ),
        pytest.param(
            {"schedules": [{**MORNING, "timezone": "Mars/Olympus"}]},
            "'Mars/Olympus' is no IANA time zone",
            id="an unknown time zone",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "timezone": "../etc/passwd"}]},
            "timezone",
            id="a path for a time zone",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "start": "0 30 7 * * 1-5"}]},
            "five fields are wanted",
            id="a cron expression with seconds",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "start": "30 27 * * *"}]},
            "'30 27 * * *' is no cron expression",
            id="an hour that no day has",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "start": "0 0 31 2 1-5"}]},
            None,
            id="the 31st of February or a weekday: happens on weekdays",
        ),
        pytest.param(
            {"schedules": [{**MORNING, "start": "0 0 31 4 *"}]},
            "never happens",
            id="a day that its month never has",
        ),
        pytest.param(
            {"signals": {"custom": [KV_CACHE, KV_CACHE]}},
            "signals.custom has 'queue' more than once",
            id="two custom votes of one name",
        ),
        pytest.param(
            {"signals": {"custom": [{**KV_CACHE, "name": "Queue depth"}]}},
            "should match pattern",
            id="a custom vote whose name is no label",
        ),
        pytest.param(
            {"behavior": {"scaleUp": {"policies": []}}},
            "at least 1 item",
            id="a direction without policies, as in autoscaling/v2",
        ),
        pytest.param(
            {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 15}]}}},
            "greater than 0",
            id="a policy that allows nothing",
        ),
        pytest.param(
            {"behavior": {"scaleDown": {"policies": [{"type": "Percent", "value": 1, "periodSeconds": 1801}]}}},
            "less than or equal to 1800",
            id="a period longer than half an hour",
        ),
        pytest.param(
            {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601}}},
            "less than or equal to 3600",
            id="a window longer than an hour",
        ),
        pytest.param({"maxReplica": 4}, "Extra inputs are not permitted", id="a field that does not exist"),
        pytest.param({"signals": {"kvCache": {"headroomPercent": 100}}}, "less than or equal to 95", id="all headroom"),
        pytest.param({"minReplicas": 0, "schedules": [MORNING]}, None, id="zero replicas that a schedule wakes up"),
    ],
)
def test_a_policy_is_refused_with_a_sentence_to_act_on(spec: dict[str, Any], problem: str | None) -> None:
    document = {"maxReplicas": 8, **spec}
    if problem is None:
        ScalingParameters.model_validate(document)
        return
    with pytest.raises(ValidationError) as caught:
        ScalingParameters.model_validate(document)
    assert problem in str(caught.value)


def test_what_is_left_out_of_behavior_has_its_default_by_field_and_by_direction() -> None:
    behavior = ScalingParameters.model_validate(
        {"maxReplicas": 8, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 60}}}
    ).behavior
    assert behavior.scale_up.stabilization_window_seconds == 60
    assert behavior.scale_up.select_policy is SelectPolicy.MAX
    assert [(policy.type, policy.value, policy.period_seconds) for policy in behavior.scale_up.policies] == [
        (PolicyType.PODS, 4, 15),
        (PolicyType.PERCENT, 100, 15),
    ]
    assert behavior.scale_up.tolerance == 0.05
    assert behavior.scale_down.stabilization_window_seconds == 300
    assert behavior.scale_down.tolerance == 0.10
    assert [(policy.type, policy.value, policy.period_seconds) for policy in behavior.scale_down.policies] == [
        (PolicyType.PERCENT, 100, 15)
    ]


def test_given_policies_replace_the_default_ones() -> None:
    policies = [{"type": "Percent", "value": 100, "periodSeconds": 30}]
    parameters = ScalingParameters.model_validate({"maxReplicas": 8, "behavior": {"scaleUp": {"policies": policies}}})
    assert len(parameters.behavior.scale_up.policies) == 1
