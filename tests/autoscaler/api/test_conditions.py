from __future__ import annotations

import pytest

from autoscaler.api.conditions import Condition, ConditionStatus, ConditionType, rfc3339, set_condition
from policies.reasons import Reason

NOW_SECONDS = 1_790_000_000.0
EARLIER, NOW = rfc3339(NOW_SECONDS - 60), rfc3339(NOW_SECONDS)
TRUE, FALSE = ConditionStatus.TRUE, ConditionStatus.FALSE


def condition(status: ConditionStatus, at: str, reason: str = "ValidMetricFound", message: str = "fine") -> Condition:
    return Condition(
        type=ConditionType.SCALING_ACTIVE,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=at,
        observed_generation=1,
    )


OTHER = Condition(type=ConditionType.TARGET_FOUND, status=TRUE, reason="x", last_transition_time=EARLIER)


@pytest.mark.parametrize(
    ("before", "status", "expected_time"),
    [
        pytest.param((), TRUE, NOW, id="a new condition begins now"),
        pytest.param((condition(TRUE, EARLIER),), TRUE, EARLIER, id="the same status keeps its time"),
        pytest.param((condition(FALSE, EARLIER),), TRUE, NOW, id="another status begins now"),
        pytest.param((OTHER, condition(TRUE, EARLIER)), TRUE, EARLIER, id="other conditions do not matter"),
    ],
)
def test_transition_time(before: tuple[Condition, ...], status: ConditionStatus, expected_time: str) -> None:
    after = set_condition(
        before, ConditionType.SCALING_ACTIVE, status, Reason.LOW_COVERAGE, "2 of 4 replicas", 5, NOW_SECONDS
    )
    changed = next(each for each in after if each.type is ConditionType.SCALING_ACTIVE)
    assert changed.last_transition_time == expected_time
    assert (changed.status, changed.reason, changed.message) == (status, "LowCoverage", "2 of 4 replicas")
    assert changed.observed_generation == 5
    assert [each for each in after if each.type is not ConditionType.SCALING_ACTIVE] == [
        each for each in before if each.type is not ConditionType.SCALING_ACTIVE
    ]


def test_times_are_written_in_whole_seconds_as_kubernetes_does() -> None:
    assert rfc3339(0.9) == "1970-01-01T00:00:00Z"
