"""What is sent to the API server when budgets are closed, opened again, and consolidation is set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_pool_disruption import KarpenterNodePoolDisruption
from autoscaler.api.held_budgets import ANNOTATION, HeldBudgets, closed_over, write_held
from autoscaler.kubernetes_gateway.api_failure import ApiFailure, Conflict, Forbidden, NotFound, Rejected, Timeout
from autoscaler.kubernetes_gateway.connection import ApiConnection
from autoscaler.observers.node_pools import DisruptionSeen
from policies.latency_class import ConsolidationSettings
from policies.reasons import Reason

OWN: tuple[dict[str, Any], ...] = ({"nodes": "10%"},)
SEEN = DisruptionSeen(ConsolidationSettings("WhenEmpty", 300.0, None), "5m", OWN)
PATH = "/apis/karpenter.sh/v1/nodepools/od"
HELD = "/metadata/annotations/tokenscaler.io~1held-budgets"


@dataclass
class FakeConnection:
    answer: dict[str, Any] | ApiFailure = field(default_factory=dict)
    sent: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)

    def patch_by_operations(self, path: str, operations: list[dict[str, Any]]) -> dict[str, Any] | ApiFailure:
        self.sent.append((path, operations))
        return self.answer


def writer(connection: FakeConnection, *, leads: bool = True) -> KarpenterNodePoolDisruption:
    return KarpenterNodePoolDisruption(cast("ApiConnection", connection), lambda: leads)


def test_closing_keeps_what_was_there() -> None:
    connection = FakeConnection()
    assert isinstance(writer(connection).close("od", SEEN, 1000.0), Actuated)
    assert connection.sent == [
        (
            PATH,
            [
                {"op": "test", "path": "/spec/disruption/budgets", "value": [{"nodes": "10%"}]},
                {"op": "add", "path": "/spec/disruption/budgets", "value": [{"nodes": "0"}, {"nodes": "10%"}]},
                {"op": "add", "path": HELD, "value": '{"budgets":[{"nodes":"10%"}],"sinceSeconds":1000}'},
            ],
        )
    ]


def test_a_node_pool_without_annotations_gets_its_first() -> None:
    connection = FakeConnection()
    writer(connection).close("od", replace(SEEN, has_annotations=False), 1000.0)
    assert connection.sent[0][1][-1] == {
        "op": "add",
        "path": "/metadata/annotations",
        "value": {ANNOTATION: '{"budgets":[{"nodes":"10%"}],"sinceSeconds":1000}'},
    }


def test_opening_takes_the_annotation_away() -> None:
    connection = FakeConnection()
    closed = replace(SEEN, budgets=tuple(closed_over(OWN)), held=write_held(OWN, 1000.0))
    assert isinstance(writer(connection).reopen("od", closed, HeldBudgets(OWN, 1000.0)), Actuated)
    assert connection.sent[0][1] == [
        {"op": "test", "path": "/spec/disruption/budgets", "value": [{"nodes": "0"}, {"nodes": "10%"}]},
        {"op": "add", "path": "/spec/disruption/budgets", "value": [{"nodes": "10%"}]},
        {"op": "remove", "path": HELD},
    ]


def test_consolidation_is_set_where_it_is_as_it_was_seen() -> None:
    connection = FakeConnection()
    assert isinstance(writer(connection).set_consolidation("od", SEEN, "WhenEmpty", "30m"), Actuated)
    assert connection.sent[0][1] == [
        {"op": "test", "path": "/spec/disruption/consolidateAfter", "value": "5m"},
        {"op": "add", "path": "/spec/disruption/consolidateAfter", "value": "30m"},
        {"op": "add", "path": "/spec/disruption/consolidationPolicy", "value": "WhenEmpty"},
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(Rejected("patch", PATH, "the test failed"), Reason.CONFLICT, id="it has changed since"),
        pytest.param(Conflict("patch", PATH, "again"), Reason.CONFLICT, id="at the same moment"),
        pytest.param(Forbidden("patch", PATH, "no"), Reason.FORBIDDEN, id="no right"),
        pytest.param(NotFound("patch", PATH, "none"), Reason.NODE_POOL_NOT_FOUND, id="it is gone"),
        pytest.param(Timeout("patch", PATH, "slow"), Reason.DISRUPTION_NOT_SET, id="nobody knows"),
    ],
)
def test_a_write_that_fails_says_why(answer: ApiFailure, reason: Reason) -> None:
    result = writer(FakeConnection(answer)).close("od", SEEN, 1000.0)
    assert isinstance(result, ActuationFailed)
    assert result.reason is reason
    assert "NodePool od: disruption budgets closed" in result.message


def test_who_does_not_lead_sends_nothing() -> None:
    connection = FakeConnection()
    result = writer(connection, leads=False).close("od", SEEN, 1000.0)
    assert isinstance(result, ActuationFailed)
    assert (result.reason, connection.sent) == (Reason.NOT_LEADER, [])
