"""What is made of NodeClaims, and of events about those that Karpenter gave up."""

from __future__ import annotations

from typing import Any

from autoscaler.kubernetes_gateway.watched_launches import LaunchNotes, reduce_given_up
from policies.launch_breaker import LaunchFailure, LaunchResult, Offering

Document = dict[str, Any]
NOW, NOW_TEXT = 1_900_000_000.0, "2030-03-17T17:46:40Z"
A, B = Offering("p5.48xlarge", "us-east-1a", "spot"), Offering("p5.48xlarge", "us-east-1b", "spot")
UNKNOWN = Offering("any", "any", "any")


def a_claim(name: str = "spot-abc12", status: str = "Unknown", reason: str = "", **more: Any) -> Document:
    requirements = {
        "node.kubernetes.io/instance-type": ["p5.48xlarge"],
        "topology.kubernetes.io/zone": ["us-east-1b", "us-east-1a"],
        "karpenter.sh/capacity-type": ["spot"],
    }
    launched = {
        "type": "Launched",
        "status": status,
        "reason": reason,
        "message": "said",
        "lastTransitionTime": NOW_TEXT,
    }
    return {
        "metadata": {"name": name, "labels": {"karpenter.sh/nodepool": "spot"}} | more,
        "spec": {
            "requirements": [{"key": key, "operator": "In", "values": each} for key, each in requirements.items()]
        },
        "status": {"conditions": [launched]},
    }


def an_event(claim: str = "spot-abc12", message: str = "all requested instance types were unavailable") -> Document:
    return {
        "metadata": {"name": "e", "creationTimestamp": "2030-03-17T17:00:00Z"},
        "involvedObject": {"kind": "NodeClaim", "name": claim},
        "reason": "InsufficientCapacityError",
        "message": message,
        "lastTimestamp": NOW_TEXT,
    }


def results_of(claims: list[Document], events: list[Document]) -> dict[str, tuple[LaunchResult, ...]]:
    notes = LaunchNotes()
    seen = [notes.reduce_node_claim(each) for each in claims]
    given_up = [reduce_given_up(each) for each in events]
    return dict(notes.results([each for each in seen if each], [each for each in given_up if each]))


def test_a_claim_that_was_given_up_failed_in_every_zone_that_it_left_open() -> None:
    (result,) = results_of([a_claim()], [an_event()])["spot"]

    assert result.offerings == (A, B)
    assert (result.at_seconds, result.failure, result.is_standing) == (NOW, LaunchFailure.CAPACITY, False)


def test_of_a_claim_that_was_never_seen_the_node_pool_is_known() -> None:
    (result,) = results_of([], [an_event("spot-of-us-abc12")])["spot-of-us"]

    assert result.offerings == (UNKNOWN,)


def test_a_launch_that_fails_again_and_again_stands() -> None:
    (result,) = results_of([a_claim(reason="UnauthorizedOperation")], [])["spot"]

    assert (result.failure, result.is_standing) == (LaunchFailure.CONFIGURATION, True)
    assert result.message == "UnauthorizedOperation: said"


def test_a_node_that_came_counts_where_another_failed() -> None:
    labels = {
        "karpenter.sh/nodepool": "spot",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/zone": "us-east-1b",
        "karpenter.sh/capacity-type": "spot",
    }
    came = a_claim("spot-def34", "True", labels=labels)

    assert results_of([came], []) == {}, "nothing failed: nobody needs to know"
    assert results_of([came, a_claim()], [an_event()])["spot"][1] == LaunchResult(NOW, (B,))


def test_a_claim_that_nobody_has_tried_yet_is_no_result() -> None:
    assert results_of([a_claim(reason="AwaitingReconciliation")], []) == {}


def test_a_claim_that_is_being_deleted_no_longer_fails() -> None:
    assert results_of([a_claim(reason="LaunchFailed", deletionTimestamp=NOW_TEXT)], []) == {}


def test_other_events_are_not_kept() -> None:
    assert reduce_given_up(an_event() | {"reason": "Unconsolidatable"}) is None
    assert reduce_given_up(an_event() | {"involvedObject": {"kind": "Node", "name": "n"}}) is None
