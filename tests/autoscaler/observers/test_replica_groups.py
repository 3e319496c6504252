"""Which replica and which target a pod belongs to."""

from __future__ import annotations

import pytest

from autoscaler.kubernetes_gateway.watched_objects import WatchedPod
from autoscaler.observers.pod_claims import CLAIM_SECONDS, PodClaims
from autoscaler.observers.replica_groups import belongs_to, number_of, replica_of

LWS = {"leaderworkerset.sigs.k8s.io/name": "llama", "leaderworkerset.sigs.k8s.io/group-index": "3"}
HASH = {"pod-template-hash": "6d5b9c7f4b"}


def a_pod(labels: dict[str, str] | None = None, owner: tuple[str, str] | None = None) -> WatchedPod:
    return WatchedPod("inference", "pod-7", labels or {}, 0.0, True, 0.0, None, False, owner=owner)


@pytest.mark.parametrize(
    ("labels", "kind", "replica"),
    [
        pytest.param({}, "Deployment", "pod-7", id="a pod is a replica"),
        pytest.param(LWS, "LeaderWorkerSet", "llama-3", id="a group of a LeaderWorkerSet is one"),
        pytest.param({"ray.io/cluster": "llama-x"}, "RayClusterFleet", "llama-x", id="a Ray cluster of a fleet is one"),
        pytest.param({"ray.io/cluster": "llama"}, "RayCluster", "pod-7", id="a worker of a Ray cluster is one"),
        pytest.param(
            {"ray.io/cluster": "llama", "ray.io/worker-group-replica-name": "gpu-abcde"},
            "RayCluster",
            "gpu-abcde",
            id="a worker on several hosts is one",
        ),
    ],
)
def test_the_replica_of_a_pod(labels: dict[str, str], kind: str, replica: str) -> None:
    assert replica_of(a_pod(labels), kind) == replica


@pytest.mark.parametrize(
    ("labels", "owner", "kind", "expected"),
    [
        pytest.param(HASH, ("ReplicaSet", "llama-6d5b9c7f4b"), "Deployment", True, id="a pod of the Deployment"),
        pytest.param(HASH, ("ReplicaSet", "llama-canary-6d5b9c7f4b"), "Deployment", False, id="of another Deployment"),
        pytest.param({}, ("ReplicaSet", "adopted"), "Deployment", None, id="of a ReplicaSet that may be adopted"),
        pytest.param({}, ("Job", "warm-up"), "Deployment", False, id="of a Job"),
        pytest.param({}, None, "Deployment", None, id="without an owner nobody knows"),
        pytest.param({}, ("StatefulSet", "llama"), "StatefulSet", True, id="of the StatefulSet"),
        pytest.param({}, ("StatefulSet", "other"), "StatefulSet", False, id="of another StatefulSet"),
        pytest.param({}, ("ReplicaSet", "llama"), "ReplicaSet", True, id="of the ReplicaSet"),
        pytest.param(LWS, ("StatefulSet", "llama-3"), "LeaderWorkerSet", True, id="of the LeaderWorkerSet"),
        pytest.param({}, ("Rollout", "llama"), "Rollout", None, id="of a kind whose ways are not known"),
    ],
)
def test_the_target_of_a_pod(
    labels: dict[str, str], owner: tuple[str, str] | None, kind: str, expected: bool | None
) -> None:
    assert belongs_to(a_pod(labels, owner), kind, "llama") is expected


@pytest.mark.parametrize(
    ("replica", "number"),
    [
        pytest.param("llama-0", 0, id="the first"),
        pytest.param("llama-12", 12, id="two digits"),
        pytest.param("llama-6d5b9c7f4b-x2x9z", None, id="no number"),
    ],
)
def test_the_number_of_a_replica(replica: str, number: int | None) -> None:
    assert number_of(replica) == number


ONE, OTHER = ("inference", "apps", "Rollout", "one"), ("inference", "apps", "Rollout", "other")


def test_a_pod_that_two_targets_claim_is_noticed_by_both_and_forgotten_with_the_claim() -> None:
    claims = PodClaims()
    assert claims.rival(ONE, ["a", "b"], 0.0) is None
    assert claims.rival(OTHER, ["b", "c"], 0.0) == (ONE, "b")
    assert claims.rival(ONE, ["a", "b"], 15.0) == (OTHER, "b")
    assert claims.rival(ONE, ["a", "b"], CLAIM_SECONDS + 1.0) is None
    claims.forget_old(2 * CLAIM_SECONDS + 2.0)
    assert claims.rival(OTHER, ["b"], 0.0) is None
