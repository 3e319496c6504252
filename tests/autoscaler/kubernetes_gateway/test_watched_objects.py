from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest

from autoscaler.kubernetes_gateway.object_store import ObjectStore
from autoscaler.kubernetes_gateway.watched_objects import (
    WatchedPod,
    pod_index_keys,
    reduce_own_object,
    reduce_pod,
)
from autoscaler.kubernetes_gateway.watched_target import TargetScale, target_reduction

PODS = 10_000


def _whole_pod(number: int) -> str:
    """A pod as the API server sends it, with the fields that take most of its room."""
    pool = number % 200
    managed = {"f:metadata": {"f:labels": {f"f:label-{index}": {} for index in range(20)}}}
    return json.dumps(
        {
            "metadata": {
                "name": f"vllm-pool-{pool}-6d5b9c7f4b-{number:05x}",
                "namespace": "inference",
                "uid": f"00000000-0000-0000-0000-{number:012}",
                "resourceVersion": str(number),
                "creationTimestamp": "2026-11-30T00:00:00Z",
                "labels": {
                    "app": f"vllm-pool-{pool}",
                    "app.kubernetes.io/part-of": "inference",
                    "model": f"model-{pool}",
                    "pod-template-hash": f"6d5b9c7f4b{pool}",
                    "team": "ml",
                },
                "annotations": {"a": "x" * 500},
                "managedFields": [{"manager": "kubelet", "fieldsV1": managed}] * 2,
            },
            "spec": {"containers": [{"name": "vllm", "image": "v" * 80, "args": ["--x"] * 40}], "nodeName": "n"},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T00:05:00Z"},
                    {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-30T00:00:01Z"},
                ],
            },
        }
    )


def test_ten_thousand_pods_fit_into_thirty_megabytes() -> None:
    store: ObjectStore[WatchedPod] = ObjectStore(pod_index_keys)
    texts = [_whole_pod(number) for number in range(PODS)]
    gc.collect()
    tracemalloc.start()
    reduced: dict[tuple[str, str], WatchedPod] = {}
    for text in texts:
        pod = reduce_pod(json.loads(text))
        assert pod is not None
        reduced[(pod.namespace, pod.name)] = pod
    store.replace(reduced)
    del reduced, pod
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(store.find(("inference", "app", "vllm-pool-7"))) == PODS // 200
    assert kept < 30e6, f"{kept / 1e6:.1f} MB"


def _running(started_at: str, restarts: int = 0) -> dict[str, Any]:
    return {"restartCount": restarts, "state": {"running": {"startedAt": started_at}}}


@pytest.mark.parametrize(
    ("containers", "started_at", "has_restarted"),
    [
        pytest.param([], None, False, id="no container yet"),
        pytest.param(
            [_running("2026-11-30T00:01:00Z"), _running("2026-11-30T00:02:00Z")],
            1_795_996_920.0,
            False,
            id="the last of two counts",
        ),
        pytest.param(
            [_running("2026-11-30T00:01:00Z"), {"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
            None,
            False,
            id="one has no image yet",
        ),
        pytest.param([_running("2026-11-30T00:01:00Z", 1)], 1_795_996_860.0, True, id="one runs for the second time"),
    ],
)
def test_when_the_containers_of_a_pod_were_started(
    containers: list[dict[str, Any]], started_at: float | None, has_restarted: bool
) -> None:
    document = json.loads(_whole_pod(1))
    document["status"]["containerStatuses"] = containers
    pod = reduce_pod(document)
    assert pod is not None
    assert (pod.started_at_seconds, pod.has_restarted) == (started_at, has_restarted)
    assert pod.scheduled_at_seconds == 1_795_996_801.0


@pytest.mark.parametrize(
    ("spec", "gives_way"),
    [
        pytest.param({"priority": -10}, True, id="of a negative priority: a placeholder"),
        pytest.param({"priority": 0}, False, id="of an ordinary one"),
        pytest.param({}, False, id="of none"),
    ],
)
def test_who_gives_way_to_any_replica(spec: dict[str, Any], gives_way: bool) -> None:
    pod = reduce_pod({"metadata": {"name": "a"}, "spec": spec, "status": {"phase": "Running"}})
    assert pod is not None
    assert pod.gives_way is gives_way


def test_our_own_objects_are_kept_without_what_others_note_in_them() -> None:
    document = {
        "metadata": {
            "name": "a",
            "managedFields": [{}],
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "team": "ml"},
        },
        "spec": {"mode": "Scale"},
    }
    assert reduce_own_object(document) == {
        "metadata": {"name": "a", "annotations": {"team": "ml"}},
        "spec": {"mode": "Scale"},
    }


def _scale(api_version: str, kind: str, spec: dict[str, Any], status: dict[str, Any]) -> TargetScale:
    metadata = {"name": "llama", "resourceVersion": "1"}
    target = target_reduction(api_version, kind)({"metadata": metadata, "spec": spec, "status": status})
    assert target is not None
    assert target.scale is not None
    return target.scale


@pytest.mark.parametrize(
    ("spec", "status", "is_rolling_out"),
    [
        pytest.param({}, {"replicas": 3, "updatedReplicas": 3}, False, id="at rest"),
        pytest.param(
            {},
            {"replicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
            True,
            id="some pods are old",
        ),
        pytest.param(
            {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
            {"replicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
            False,
            id="the old ones are meant to stay",
        ),
        pytest.param(
            {"updateStrategy": {"type": "OnDelete"}},
            {"replicas": 3, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
            False,
            id="nobody replaces them",
        ),
    ],
)
def test_the_rollout_of_a_stateful_set(spec: dict[str, Any], status: dict[str, Any], is_rolling_out: bool) -> None:
    assert _scale("apps/v1", "StatefulSet", spec, status).is_rolling_out is is_rolling_out


def test_a_count_that_is_left_out_is_one() -> None:
    assert _scale("apps/v1", "Deployment", {}, {}).spec_replicas == 1
    assert _scale("apps/v1", "ReplicaSet", {}, {}).spec_replicas == 1


def test_a_rollout_of_a_leader_worker_set_is_told_by_its_condition() -> None:
    conditions = [{"type": "UpdateInProgress", "status": "True"}]
    scale = _scale("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2}, {"conditions": conditions})
    assert (scale.is_rolling_out, scale.pods_per_replica) == (True, 1)
