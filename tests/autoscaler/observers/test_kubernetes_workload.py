from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.clock import Clock, ManualClock, SystemClock
from autoscaler.kubernetes_gateway.connection import connect
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.observers.kubernetes_workload import KubernetesWorkloadObserver
from autoscaler.observers.workload import CompetingWriter, LivePod, Workload, WorkloadUnavailable
from policies.capacity_split import TargetCounts
from policies.cold_start import ObservedStart
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from tests.fakes.api_server import Answer, FakeApiServer, Request, Resource

NOW = 1_796_000_000.0  # 2026-11-30T00:53:20Z
LONG_AGO = "2026-11-30T00:00:00Z"
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io/v1", "leaderworkersets", "LeaderWorkerSet", has_scale=True)
RAY_CLUSTERS = Resource("ray.example/v1", "rayclusters", "RayCluster", has_scale=True)
SCALED_OBJECTS = Resource("keda.sh/v1alpha1", "scaledobjects", "ScaledObject")


def _deployment(replicas: int = 2, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "llama", "creationTimestamp": LONG_AGO},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "llama"}}, **more.pop("spec", {})},
        "status": {"replicas": replicas, "updatedReplicas": replicas, **more.pop("status", {})},
    }


def _pod(name: str, *, ready: bool = True, since: str = LONG_AGO, **more: Any) -> dict[str, Any]:
    conditions = [
        {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since},
        *more.get("conditions", []),
    ]
    return {
        "metadata": {
            "name": name,
            "labels": {"app": "llama", **more.get("labels", {})},
            "creationTimestamp": since,
            **more.get("metadata", {}),
        },
        "status": {"phase": more.get("phase", "Running"), "conditions": conditions},
    }


def _scaler(
    name: str = "llama", mode: str = "Scale", created: str = LONG_AGO, target: str = "llama", **reference: str
) -> InferenceScaler:
    target_reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target} | reference
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {
                "name": name,
                "namespace": "inference",
                "uid": f"uid-{name}",
                "generation": 1,
                "creationTimestamp": created,
            },
            "spec": {"mode": mode, "engine": "vllm", "maxReplicas": 9, "scaleTargetRef": target_reference},
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


class Fleet:
    """A fake API server, what is watched of it, and an observer of that."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster = cluster
        self.now_seconds = NOW
        self.scalers: tuple[InferenceScaler, ...] = ()
        self.observer = KubernetesWorkloadObserver(cluster, lambda: self.scalers)

    def observe(self, scaler: InferenceScaler) -> Workload | WorkloadUnavailable:
        if scaler not in self.scalers:
            self.scalers = (*self.scalers, scaler)
        return self.observer.observe_workload(scaler, self.now_seconds)

    def observe_until(
        self, scaler: InferenceScaler, condition: Callable[[Workload | WorkloadUnavailable], bool]
    ) -> Workload | WorkloadUnavailable:
        """Looks again and again, for the watches run in threads of their own; `now_seconds` stands still."""
        pause = threading.Event()
        for _ in range(250):
            seen = self.observe(scaler)
            if condition(seen):
                return seen
            pause.wait(0.02)
        pytest.fail(f"not seen in time; last: {seen}")

    def workload(self, scaler: InferenceScaler, condition: Callable[[Workload], bool] = lambda _: True) -> Workload:
        seen = self.observe_until(scaler, lambda seen: isinstance(seen, Workload) and condition(seen))
        assert isinstance(seen, Workload)
        return seen

    def unavailable(self, scaler: InferenceScaler, reason: Reason) -> str:
        seen = self.observe_until(scaler, lambda seen: isinstance(seen, WorkloadUnavailable) and seen.reason is reason)
        assert isinstance(seen, WorkloadUnavailable)
        return seen.message


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as fake:
        yield fake


StartFleet = Callable[..., Fleet]


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[StartFleet]:
    with ExitStack() as cleanup:

        def begin(clock: Clock | None = None, **settings: Any) -> Fleet:
            connection = connect(server.write_kubeconfig(tmp_path))
            cluster = WatchedCluster(
                connection, clock or SystemClock(), lambda: 0.5, watches_own_objects=False, **settings
            )
            cluster.start()
            cleanup.callback(cluster.stop)
            return Fleet(cluster)

        yield begin


def test_a_deployment_at_rest(server: FakeApiServer, start: StartFleet) -> None:
    stored = server.put("deployments", _deployment())
    server.put("pods", _pod("llama-b", since="2026-11-30T00:10:00Z"))
    server.put("pods", _pod("llama-a"))
    server.put("pods", _pod("other") | {"metadata": {"name": "other", "labels": {"app": "mistral"}}})
    seen = start().workload(_scaler())
    assert seen.replicas == ReplicaCounts(spec=2, status=2, ready=2)
    assert seen.pods == (
        LivePod("llama-a", "llama-a", True, NOW - 3200.0),
        LivePod("llama-b", "llama-b", True, NOW - 2600.0),
    )
    assert seen.target.path == "/apis/apps/v1/namespaces/inference/deployments/llama/scale"
    assert seen.target.resource_version == stored["metadata"]["resourceVersion"]
    assert (seen.competing_writers, seen.is_paused, seen.is_rolling_out) == ((), False, False)


@pytest.mark.parametrize(
    ("pods", "replicas", "expected"),
    [
        pytest.param([], 0, ReplicaCounts(0, 0, ready=0), id="zero replicas"),
        pytest.param(
            [_pod("a"), _pod("b", ready=False, since="2026-11-30T00:50:00Z")],
            2,
            ReplicaCounts(2, 2, ready=1, starting=1),
            id="one is loading its model",
        ),
        pytest.param(
            [_pod("a"), _pod("b", ready=False)], 2, ReplicaCounts(2, 2, ready=1, stuck=1), id="one never became ready"
        ),
        pytest.param(
            [_pod("a"), _pod("b", phase="Failed"), _pod("c", phase="Succeeded")],
            1,
            ReplicaCounts(1, 1, ready=1),
            id="finished pods are not seen",
        ),
        pytest.param(
            [_pod("a"), _pod("b", metadata={"deletionTimestamp": "2026-11-30T00:53:00Z"})],
            1,
            ReplicaCounts(1, 1, ready=1, terminating=1),
            id="one is terminating",
        ),
        pytest.param(
            [
                _pod("a"),
                _pod(
                    "b",
                    ready=False,
                    since="2026-11-30T00:50:00Z",
                    conditions=[
                        {
                            "type": "PodScheduled",
                            "status": "False",
                            "reason": "Unschedulable",
                            "lastTransitionTime": "2026-11-30T00:50:00Z",
                        }
                    ],
                ),
            ],
            2,
            ReplicaCounts(2, 2, ready=1, stuck=1),
            id="one finds no node",
        ),
    ],
)
def test_replicas_by_what_they_can_do(
    server: FakeApiServer, start: StartFleet, pods: list[dict[str, Any]], replicas: int, expected: ReplicaCounts
) -> None:
    server.put("deployments", _deployment(replicas))
    for pod in pods:
        server.put("pods", pod)
    assert start().workload(_scaler()).replicas == expected


def test_a_start_is_learned_from_and_a_slow_pool_gets_more_time(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment(replicas=2))
    server.put("pods", _pod("llama-a", ready=False, since="2026-11-29T23:30:00Z"))
    fleet, scaler = start(), _scaler()
    assert fleet.workload(scaler, lambda seen: len(seen.pods) == 1).cold_start is None
    # Ready after 20 minutes, so another that has been starting for 14 minutes is in time.
    server.put("pods", _pod("llama-a", metadata={"creationTimestamp": "2026-11-29T23:30:00Z"}, since=_AT_23_50))
    server.put("pods", _pod("llama-b", ready=False, since="2026-11-30T00:39:20Z"))
    seen = fleet.workload(scaler, lambda seen: seen.cold_start is not None and len(seen.pods) == 2)
    assert seen.starts == (ObservedStart(None, None, 1200.0),)
    assert seen.cold_start is not None
    assert seen.cold_start.l95_seconds == 1200.0
    assert seen.replicas == ReplicaCounts(2, 2, ready=1, starting=1)


def test_after_a_pause_the_starts_are_those_that_another_controller_has_saved(
    server: FakeApiServer, start: StartFleet
) -> None:
    server.put("deployments", _deployment(replicas=1))
    server.put("pods", _pod("llama-a"))
    fleet, saved = start(), {"learned": {"coldStart": {"starts": 1, "recent": "1+2+3"} | dict.fromkeys(_QUANTILES, 6)}}
    assert fleet.workload(_scaler()).starts == ()
    fleet.now_seconds += 15.0
    assert fleet.workload(replace(_scaler(), status=saved)).starts == ()
    fleet.now_seconds += 121.0
    assert fleet.workload(replace(_scaler(), status=saved)).starts == (ObservedStart(1.0, 2.0, 3.0),)


_QUANTILES = ("l50Seconds", "l90Seconds", "l95Seconds")
_AT_23_50 = "2026-11-29T23:50:00Z"


def test_terminating_pods_are_not_among_the_pods(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment(1))
    server.put("pods", _pod("a"))
    server.put("pods", _pod("b", metadata={"deletionTimestamp": LONG_AGO}))
    assert [pod.name for pod in start().workload(_scaler()).pods] == ["a"]


def test_pods_that_nobody_makes_become_stuck(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment(3))
    server.put("pods", _pod("a"))
    fleet = start()
    assert fleet.workload(_scaler()).replicas == ReplicaCounts(3, 3, ready=1, starting=2)
    fleet.now_seconds += 120.0
    assert fleet.workload(_scaler()).replicas == ReplicaCounts(3, 3, ready=1, stuck=2)


@pytest.mark.parametrize(
    ("document", "is_paused", "is_rolling_out"),
    [
        pytest.param(_deployment(), False, False, id="at rest"),
        pytest.param(_deployment(spec={"paused": True}), True, False, id="paused"),
        pytest.param(_deployment(status={"replicas": 3, "updatedReplicas": 1}), False, True, id="rolling out"),
    ],
)
def test_the_targets_own_rollout(
    server: FakeApiServer, start: StartFleet, document: dict[str, Any], is_paused: bool, is_rolling_out: bool
) -> None:
    server.put("deployments", document)
    seen = start().workload(_scaler())
    assert (seen.is_paused, seen.is_rolling_out) == (is_paused, is_rolling_out)


def test_a_recreated_target_has_another_uid(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    fleet = start()
    first = fleet.workload(_scaler()).target.uid
    server.delete("deployments", "llama")
    assert "does not exist" in fleet.unavailable(_scaler(), Reason.TARGET_NOT_FOUND)
    server.put("deployments", _deployment())
    assert fleet.workload(_scaler()).target.uid != first


def test_the_groups_of_a_leader_worker_set_are_its_replicas(server: FakeApiServer, start: StartFleet) -> None:
    server.add_resource(LEADER_WORKER_SETS)
    server.put(
        "leaderworkersets",
        {
            "metadata": {"name": "llama"},
            "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 2}},
            "status": {"replicas": 2},
        },
    )
    for group in ("0", "1"):
        for worker in ("0", "1"):
            labels = {
                "leaderworkerset.sigs.k8s.io/name": "llama",
                "leaderworkerset.sigs.k8s.io/group-index": group,
                "leaderworkerset.sigs.k8s.io/worker-index": worker,
            }
            ready = (group, worker) != ("1", "1")
            server.put("pods", _pod(f"llama-{group}-{worker}", ready=ready, labels=labels))
    seen = start().workload(_scaler(apiVersion="leaderworkerset.x-k8s.io/v1", kind="LeaderWorkerSet"))
    assert seen.replicas == ReplicaCounts(2, 2, ready=1, stuck=1)
    assert [(pod.name, pod.replica) for pod in seen.pods] == [
        ("llama-0-0", "llama-0"),
        ("llama-0-1", "llama-0"),
        ("llama-1-0", "llama-1"),
        ("llama-1-1", "llama-1"),
    ]


def test_the_ray_clusters_of_a_fleet_are_its_replicas(server: FakeApiServer, start: StartFleet) -> None:
    fleets = Resource("orchestration.example/v1", "rayclusterfleets", "RayClusterFleet", has_scale=True)
    server.add_resource(fleets)
    server.put("rayclusterfleets", _deployment(2))
    for cluster in ("llama-x", "llama-y"):
        for role in ("head", "worker"):
            ready = (cluster, role) != ("llama-y", "worker")
            server.put("pods", _pod(f"{cluster}-{role}", ready=ready, labels={"ray.io/cluster": cluster}))
    seen = start().workload(_scaler(apiVersion="orchestration.example/v1", kind="RayClusterFleet"))
    assert seen.replicas == ReplicaCounts(2, 2, ready=1, stuck=1)
    assert {pod.replica for pod in seen.pods} == {"llama-x", "llama-y"}


def _owned_by(kind: str, name: str, **labels: str) -> dict[str, Any]:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"metadata": {"ownerReferences": [owner]}, "labels": labels}


def test_pods_of_another_deployment_with_the_same_labels_are_not_counted(
    server: FakeApiServer, start: StartFleet
) -> None:
    server.put("deployments", _deployment(1))
    server.put("pods", _pod("llama-1-a", **_owned_by("ReplicaSet", "llama-1", **{"pod-template-hash": "1"})))
    server.put("pods", _pod("canary-2-a", **_owned_by("ReplicaSet", "canary-2", **{"pod-template-hash": "2"})))
    seen = start().workload(_scaler())
    assert ([pod.name for pod in seen.pods], seen.foreign_pods) == (["llama-1-a"], 1)


def test_pods_that_two_targets_may_own_are_counted_for_neither(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment(1))
    server.put("deployments", _deployment(1) | {"metadata": {"name": "canary", "creationTimestamp": LONG_AGO}})
    server.put("pods", _pod("a"))
    fleet = start()
    fleet.workload(_scaler())
    canary = _scaler("canary", target="canary")
    message = fleet.unavailable(canary, Reason.AMBIGUOUS_SELECTOR)
    assert message == (
        "the selectors of Deployment canary and Deployment llama both match pod a, and its owner does not tell whose "
        "it is"
    )
    assert "Deployment canary" in fleet.unavailable(_scaler(), Reason.AMBIGUOUS_SELECTOR)


def test_a_kind_that_is_not_known_is_asked_at_its_scale_only_when_it_has_changed(
    server: FakeApiServer, start: StartFleet
) -> None:
    server.add_resource(RAY_CLUSTERS)
    server.put("rayclusters", _deployment(1) | {"status": {"replicas": 1}})
    server.put("pods", _pod("a"))
    fleet = start()
    scaler = _scaler(apiVersion="ray.example/v1", kind="RayCluster")

    def reads() -> int:
        return len(server.requests_of(lambda request: request.path.endswith("/scale")))

    seen = fleet.workload(scaler)
    assert (seen.replicas, reads()) == (ReplicaCounts(1, 1, ready=1), 1)
    for _ in range(20):
        fleet.observe(scaler)
    assert reads() == 1
    stored = server.put("rayclusters", _deployment(4) | {"status": {"replicas": 1}})
    seen = fleet.workload(scaler, lambda seen: seen.replicas.spec == 4)
    assert seen.target.resource_version == stored["metadata"]["resourceVersion"]
    assert reads() == 2


def test_a_scale_that_cannot_be_read_is_said(server: FakeApiServer, start: StartFleet) -> None:
    server.add_resource(RAY_CLUSTERS)
    server.put("rayclusters", _deployment(1))
    server.fail(lambda request: request.path.endswith("/scale"), Answer(403), times=100)
    message = start().unavailable(_scaler(apiVersion="ray.example/v1", kind="RayCluster"), Reason.FORBIDDEN)
    assert 'verb "get" on "rayclusters/scale" in API group "ray.example"' in message


@pytest.mark.parametrize(
    ("reference", "reason", "text"),
    [
        pytest.param(
            {"target": "gone"}, Reason.TARGET_NOT_FOUND, "Deployment (apps/v1) inference/gone", id="no such name"
        ),
        pytest.param({"kind": "Deploiment"}, Reason.TARGET_NOT_FOUND, "no kind Deploiment", id="no such kind"),
        pytest.param({"apiVersion": "x.io/v1"}, Reason.TARGET_NOT_FOUND, "x.io/v1", id="no such API group"),
        pytest.param({"kind": "DaemonSet"}, Reason.TARGET_NOT_SCALABLE, "no scale subresource", id="no /scale"),
        pytest.param(
            {"apiVersion": "v1", "kind": "Node"},
            Reason.TARGET_NOT_SCALABLE,
            "nodes have no scale",
            id="not even namespaced",
        ),
    ],
)
def test_a_target_that_cannot_be_steered(
    server: FakeApiServer, start: StartFleet, reference: dict[str, str], reason: Reason, text: str
) -> None:
    server.put("deployments", _deployment())
    assert text in start().unavailable(_scaler(**reference), reason)


def test_a_kind_that_is_installed_later_is_found(server: FakeApiServer, start: StartFleet) -> None:
    fleet = start()
    scaler = _scaler(apiVersion="ray.example/v1", kind="RayCluster")
    fleet.unavailable(scaler, Reason.TARGET_NOT_FOUND)
    server.add_resource(RAY_CLUSTERS)
    server.put("rayclusters", _deployment(1))
    assert fleet.workload(scaler).replicas.spec == 1


@pytest.mark.parametrize(
    ("path", "permission"),
    [
        pytest.param("/apis/apps/v1/deployments", '"deployments" in API group "apps"', id="targets"),
        pytest.param("/api/v1/pods", '"pods" in API group ""', id="pods"),
        pytest.param(
            "/apis/autoscaling/v2/horizontalpodautoscalers",
            '"horizontalpodautoscalers" in API group "autoscaling"',
            id="other autoscalers",
        ),
    ],
)
def test_what_may_not_be_read_is_named(server: FakeApiServer, start: StartFleet, path: str, permission: str) -> None:
    server.put("deployments", _deployment())
    server.fail(lambda request: request.path == path, Answer(403), times=1000)
    assert f'verb "list" on {permission}' in start().unavailable(_scaler(), Reason.FORBIDDEN)


def test_nothing_is_seen_before_the_first_list(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    server.fail(lambda request: request.path == "/api/v1/pods", Answer(500), times=1000)
    seen = start().observe_until(
        _scaler(),
        lambda seen: isinstance(seen, Workload) or "pods not read yet: list /api/v1/pods: 500" in seen.message,
    )
    assert isinstance(seen, WorkloadUnavailable)
    assert seen.reason is Reason.STALE_CACHE


def test_a_watch_that_is_silent_for_a_minute_is_not_believed(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    clock = ManualClock(1000.0)
    fleet = start(clock)
    fleet.workload(_scaler())
    server.stop()
    clock.advance(60.0)
    assert isinstance(fleet.observe(_scaler()), Workload)
    clock.advance(1.0)
    assert "last heard of 61 s ago" in fleet.unavailable(_scaler(), Reason.STALE_CACHE)


def _hpa(**reference: str) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama"} | reference
    return {"metadata": {"name": "cpu"}, "spec": {"scaleTargetRef": target}}


def _scaled_object(annotations: dict[str, str] | None = None, **reference: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "keda", "annotations": annotations or {}},
        "spec": {"scaleTargetRef": {"name": "llama"} | reference},
    }


HPA = CompetingWriter(Reason.COMPETING_AUTOSCALER, "HorizontalPodAutoscaler inference/cpu")
KEDA = CompetingWriter(Reason.COMPETING_AUTOSCALER, "ScaledObject inference/keda")


@pytest.mark.parametrize(
    ("plural", "document", "expected"),
    [
        pytest.param("horizontalpodautoscalers", _hpa(), (HPA,), id="an HPA"),
        pytest.param("horizontalpodautoscalers", _hpa(apiVersion="apps/v1beta2"), (HPA,), id="by another version"),
        pytest.param("horizontalpodautoscalers", _hpa(name="mistral"), (), id="an HPA of another target"),
        pytest.param("horizontalpodautoscalers", _hpa(kind="StatefulSet"), (), id="an HPA of another kind"),
        pytest.param("horizontalpodautoscalers", _hpa(apiVersion="x.io/v1"), (), id="an HPA of another group"),
        pytest.param("scaledobjects", _scaled_object(), (KEDA,), id="a ScaledObject with KEDA's defaults"),
        pytest.param("scaledobjects", _scaled_object(kind="StatefulSet"), (), id="a ScaledObject of another kind"),
        pytest.param(
            "scaledobjects", _scaled_object({"autoscaling.keda.sh/paused": "true"}), (), id="a paused ScaledObject"
        ),
        pytest.param(
            "scaledobjects",
            _scaled_object({"autoscaling.keda.sh/paused-replicas": "3"}),
            (KEDA,),
            id="a ScaledObject that holds a count",
        ),
    ],
)
def test_other_autoscalers_of_the_target(
    server: FakeApiServer,
    start: StartFleet,
    plural: str,
    document: dict[str, Any],
    expected: tuple[CompetingWriter, ...],
) -> None:
    server.add_resource(SCALED_OBJECTS)
    server.put("deployments", _deployment())
    server.put(plural, document)
    fleet = start()
    assert fleet.workload(_scaler()).competing_writers == expected
    server.delete(plural, document["metadata"]["name"])
    fleet.workload(_scaler(), lambda seen: seen.competing_writers == ())


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        pytest.param(_scaler("a", created="2026-11-29T00:00:00Z"), "inference/a", id="an older one steers"),
        pytest.param(_scaler("a", created="2026-11-30T00:01:00Z"), None, id="a younger one does not"),
        pytest.param(_scaler("a"), "inference/a", id="of the same age: the first by name steers"),
        pytest.param(_scaler("z"), None, id="of the same age: the last by name does not"),
        pytest.param(_scaler("a", created="2026-11-29T00:00:00Z", target="mistral"), None, id="of another target"),
        pytest.param(
            _scaler("a", mode="DryRun", created="2026-11-29T00:00:00Z"), None, id="an older one that only tries"
        ),
    ],
)
def test_another_scaler_of_the_target(
    server: FakeApiServer, start: StartFleet, other: InferenceScaler, expected: str | None
) -> None:
    server.put("deployments", _deployment())
    fleet = start()
    fleet.scalers = (other,)
    seen = fleet.workload(_scaler())
    assert [writer.who for writer in seen.competing_writers] == ([f"InferenceScaler {expected}"] if expected else [])


def test_a_dry_run_is_told_who_steers(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    fleet = start()
    fleet.scalers = (_scaler("z"),)
    seen = fleet.workload(_scaler(mode="DryRun"))
    assert [writer.who for writer in seen.competing_writers] == ["InferenceScaler inference/z"]


def test_a_count_set_by_hand_is_respected_for_two_minutes(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    fleet = start()
    fleet.workload(_scaler())
    by_hand = _deployment(5)
    entry = {"manager": "kubectl", "operation": "Update", "subresource": "scale", "time": "2026-11-30T00:53:20Z"}
    by_hand["metadata"]["managedFields"] = [entry | {"fieldsV1": {"f:spec": {"f:replicas": {}}}}]
    server.put("deployments", by_hand)
    seen = fleet.workload(_scaler(), lambda seen: seen.replicas.spec == 5)
    assert seen.competing_writers == (
        CompetingWriter(Reason.COMPETING_WRITER, 'field manager "kubectl" (set 5 replicas 0 s ago)'),
    )
    fleet.now_seconds += 50.0
    assert "50 s ago" in fleet.workload(_scaler()).competing_writers[0].who
    fleet.now_seconds += 71.0
    assert fleet.workload(_scaler()).competing_writers == ()


@pytest.mark.parametrize(
    ("managers", "competitors"),
    [
        pytest.param(["kubectl"], 1, id="somebody has set it since our predecessor looked"),
        pytest.param(["tokenscaler"], 0, id="our predecessor has set it"),
        pytest.param([], 0, id="nobody owns it, as after a zero: it may have been our predecessor"),
    ],
)
def test_a_count_that_has_changed_before_our_first_look(
    server: FakeApiServer, start: StartFleet, managers: list[str], competitors: int
) -> None:
    deployment = _deployment(5)
    deployment["metadata"]["managedFields"] = [
        {"manager": "kubectl-create", "fieldsV1": {"f:spec": {"f:template": {}}}},
        *({"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}} for manager in managers),
    ]
    server.put("deployments", deployment)
    scaler = replace(_scaler(), status={"specReplicas": 2})
    assert len(start().workload(scaler).competing_writers) == competitors


@pytest.mark.parametrize(
    ("managers", "expected"),
    [
        pytest.param([], None, id="a server that notes no owners"),
        pytest.param(["tokenscaler"], True, id="ours"),
        pytest.param(["kubectl"], False, id="somebody else's"),
    ],
)
def test_whose_count_stands_in_the_target(
    server: FakeApiServer, start: StartFleet, managers: list[str], expected: bool | None
) -> None:
    deployment = _deployment(0)
    deployment["metadata"]["managedFields"] = [
        {"manager": manager, "fieldsV1": {"f:spec": {"f:replicas": {}}}} for manager in managers
    ]
    server.put("deployments", deployment)
    assert start().workload(_scaler()).is_count_ours is expected


def test_a_namespace_that_is_not_watched_is_said(start: StartFleet) -> None:
    message = start(namespaces=("batch",)).unavailable(_scaler(), Reason.TARGET_NOT_FOUND)
    assert "namespace inference is not among those that this controller watches" in message


def _put_two_targets(server: FakeApiServer) -> InferenceScaler:
    """Two on demand that serve; of three on spot one serves, one loads, and one does not exist yet."""
    for name, replicas in (("llama-od", 2), ("llama-spot", 3)):
        document = {
            "metadata": {"name": name, "creationTimestamp": LONG_AGO},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}},
            "status": {"replicas": replicas},
        }
        server.put("deployments", document)
    placed = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": LONG_AGO}]
    for name, target in (("a", "llama-od"), ("b", "llama-od"), ("c", "llama-spot")):
        server.put("pods", _pod(name, labels={"app": target}, conditions=placed))
    server.put("pods", _pod("d", ready=False, since="2026-11-30T00:50:00Z", labels={"app": "llama-spot"}))
    reference = {"apiVersion": "apps/v1", "kind": "Deployment"}
    parsed = parse_inference_scaler(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "InferenceScaler",
            "metadata": {"name": "llama", "namespace": "inference", "uid": "u", "creationTimestamp": LONG_AGO},
            "spec": {
                "mode": "Scale",
                "engine": "vllm",
                "maxReplicas": 9,
                "acceleratorPoolRef": {"name": "h100"},
                "capacityTypes": {
                    "onDemand": {"scaleTargetRef": reference | {"name": "llama-od"}},
                    "spot": {"scaleTargetRef": reference | {"name": "llama-spot"}},
                },
            },
        }
    )
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


def test_two_targets_are_seen_as_one_pool(server: FakeApiServer, start: StartFleet) -> None:
    scaler = _put_two_targets(server)
    server.put("horizontalpodautoscalers", _hpa(name="llama-spot"))
    seen = start().workload(scaler)
    assert (seen.replicas.spec, seen.replicas.ready, seen.replicas.starting) == (5, 3, 2)
    assert [(part.capacity_type.value, part.target.name, part.counts) for part in seen.parts] == [
        ("on-demand", "llama-od", TargetCounts(2, 2, 2)),
        ("spot", "llama-spot", TargetCounts(3, 1, 1)),
    ]
    assert len(seen.pods) == 4
    assert seen.competing_writers == (HPA,), "on either target"


def test_two_targets_stand_for_the_count_that_theirs_were_made_for(server: FakeApiServer, start: StartFleet) -> None:
    scaler, fleet = _put_two_targets(server), start()
    fleet.observer = KubernetesWorkloadObserver(fleet.cluster, lambda: fleet.scalers, asked_for=lambda *_: 4)
    assert fleet.workload(scaler).replicas.spec == 4


def test_only_the_namespaces_that_were_named_are_asked_for(server: FakeApiServer, start: StartFleet) -> None:
    server.put("deployments", _deployment())
    server.put("pods", _pod("a"))
    seen = start(namespaces=("inference", "batch")).workload(_scaler())
    assert seen.replicas.ready == 1

    def is_cluster_wide(request: Request) -> bool:
        return (request.is_watch or "limit" in request.query) and "/namespaces/" not in request.path

    assert server.requests_of(is_cluster_wide) == []
