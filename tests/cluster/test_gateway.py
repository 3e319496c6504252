"""The ports to the API server do on the real one what their tables say of the fake one."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.scale_subresource import ScaleSubresourceActuator
from autoscaler.actuators.written_counts import WrittenCounts
from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler
from autoscaler.clock import SystemClock
from autoscaler.kubernetes_gateway.backoff import Backoff
from autoscaler.kubernetes_gateway.connection import ApiConnection, connect
from autoscaler.kubernetes_gateway.object_store import ObjectStore
from autoscaler.kubernetes_gateway.reflector import ListGate, Reflector
from autoscaler.kubernetes_gateway.watched_cluster import WatchedCluster
from autoscaler.observers.kubernetes_workload import KubernetesWorkloadObserver
from autoscaler.observers.workload import Workload, WorkloadUnavailable
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from tests.cluster.harness import workloads
from tests.cluster.harness.control_plane import ControlPlane
from tests.servers.process import Program, wait_until
from tests.servers.tcp_link import TcpLink

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CLOCK = SystemClock()
ROOT = Path(__file__).parents[2]
PATHS = {
    "Deployment": "/apis/apps/v1/namespaces/{namespace}/deployments",
    "StatefulSet": "/apis/apps/v1/namespaces/{namespace}/statefulsets",
    "LeaderWorkerSet": "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{namespace}/leaderworkersets",
}
# A custom resource whose own operator makes the pods; its count is not under spec.replicas.
MODEL_POOLS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: modelpools.example.com}
spec:
  group: example.com
  names: {kind: ModelPool, listKind: ModelPoolList, plural: modelpools, singular: modelpool}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size, labelSelectorPath: .status.selector}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def namespace(control_plane: ControlPlane) -> str:
    return _new_namespace(control_plane)


def _new_namespace(control_plane: ControlPlane) -> str:
    name = f"gateway-{time.monotonic_ns()}"
    control_plane.create_namespace(name)
    return name


@pytest.fixture
def connection(control_plane: ControlPlane) -> Iterator[ApiConnection]:
    made = connect(str(control_plane.kubeconfig))
    yield made
    made.close()


def _document(kind: str, namespace: str, replicas: int) -> dict[str, Any]:
    if kind == "Deployment":
        return workloads.deployment(namespace, "llama", replicas)
    if kind == "StatefulSet":
        return workloads.stateful_set(namespace, "llama", replicas)
    return workloads.leader_worker_set(namespace, "llama", replicas, 2)


def _scaler(namespace: str, kind: str = "Deployment", api_version: str | None = None) -> InferenceScaler:
    document = workloads.inference_scaler(namespace, "llama", {"mode": "Scale", "maxReplicas": 9}, kind=kind)
    if api_version is not None:
        document["spec"]["scaleTargetRef"]["apiVersion"] = api_version
    parsed = parse_inference_scaler(document)
    assert isinstance(parsed, InferenceScaler), parsed
    return parsed


class Sight:
    """What an observer sees through the watches of one namespace."""

    def __init__(self, connection: ApiConnection, namespace: str) -> None:
        self.cluster = WatchedCluster(
            connection, CLOCK, random.random, namespaces=(namespace,), watches_own_objects=False
        )
        self.scalers: dict[tuple[str, str], InferenceScaler] = {}
        self.written = WrittenCounts()
        self.observer = KubernetesWorkloadObserver(
            self.cluster, lambda: tuple(self.scalers.values()), written_count=self.written.last
        )
        self.cluster.start()

    def see(self, scaler: InferenceScaler) -> Workload | WorkloadUnavailable:
        self.scalers[scaler.key] = scaler
        return self.observer.observe_workload(scaler, CLOCK.now_seconds())

    def wait(
        self, scaler: InferenceScaler, condition: Callable[[Workload], bool], what: str, timeout_seconds: float = 30
    ) -> Workload:
        seen: list[Workload | WorkloadUnavailable] = []

        def holds() -> bool:
            seen[:] = [self.see(scaler)]
            return isinstance(seen[0], Workload) and condition(seen[0])

        try:
            wait_until(holds, what, timeout_seconds, poll_seconds=0.05)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; last seen: {seen}") from error
        assert isinstance(seen[0], Workload)
        return seen[0]


@pytest.fixture
def look(connection: ApiConnection) -> Iterator[Callable[[str], Sight]]:
    with ExitStack() as cleanup:

        def begin(namespace: str) -> Sight:
            sight = Sight(connection, namespace)
            cleanup.callback(sight.cluster.stop)
            return sight

        yield begin


Look = Callable[[str], Sight]


@pytest.mark.parametrize("kind", sorted(PATHS))
def test_a_count_is_written_only_on_the_version_it_was_decided_on(
    control_plane: ControlPlane, connection: ApiConnection, namespace: str, look: Look, kind: str
) -> None:
    control_plane.install_crd("leaderworkerset")
    path = PATHS[kind].format(namespace=namespace)
    control_plane.api.create(path, _document(kind, namespace, 0))
    sight, scaler = look(namespace), _scaler(namespace, kind)
    before = sight.wait(scaler, lambda seen: seen.replicas.spec == 0, "the target")
    actuator = ScaleSubresourceActuator(connection, lambda: True, CLOCK)

    # Its controller may be writing its status yet: what is asked for is a stale version, so one is made.
    control_plane.api.merge(f"{path}/llama", {"metadata": {"annotations": {"touched": "yes"}}})
    refused = actuator.scale(before.target, 0, 2)
    assert isinstance(refused, ActuationFailed)
    assert refused.reason is Reason.CONFLICT
    assert control_plane.api.get(f"{path}/llama")["spec"]["replicas"] == 0

    def is_written() -> bool:
        seen = sight.see(scaler)
        return isinstance(seen, Workload) and isinstance(actuator.scale(seen.target, 0, 2), Actuated)

    wait_until(is_written, "the count is written", 10)
    stored = control_plane.api.get(f"{path}/llama")
    assert stored["spec"]["replicas"] == 2
    owners = [
        entry["manager"]
        for entry in stored["metadata"]["managedFields"]
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
    ]
    assert owners == ["tokenscaler"]
    assert sight.wait(scaler, lambda seen: seen.replicas.spec == 2, "our write").competing_writers == ()


@pytest.mark.parametrize("kind", sorted(PATHS))
def test_our_own_writes_are_known_also_after_a_zero(
    control_plane: ControlPlane, connection: ApiConnection, namespace: str, look: Look, kind: str
) -> None:
    """A Scale object leaves a zero out, so from then on the server notes no owner for what goes through /scale."""
    control_plane.install_crd("leaderworkerset")
    path = PATHS[kind].format(namespace=namespace)
    control_plane.api.create(path, _document(kind, namespace, 1))
    sight, scaler = look(namespace), _scaler(namespace, kind)
    actuator = ScaleSubresourceActuator(connection, lambda: True, CLOCK, sight.written)

    def write(count: int) -> Workload:
        def is_written() -> bool:
            seen = sight.see(scaler)
            return isinstance(seen, Workload) and isinstance(actuator.scale(seen.target, -1, count), Actuated)

        wait_until(is_written, f"{count} is written", 10)
        return sight.wait(scaler, lambda seen: seen.replicas.spec == count, f"our write of {count}")

    for count in (0, 2, 4, 0, 1):
        seen = write(count)
        assert (seen.competing_writers, seen.is_count_ours) == ((), True), count
    control_plane.api.merge(f"{path}/llama/scale", {"spec": {"replicas": 3}}, fieldManager="somebody")
    seen = sight.wait(scaler, lambda seen: seen.replicas.spec == 3, "the other's write")
    assert [writer.reason for writer in seen.competing_writers] == [Reason.COMPETING_WRITER]
    assert seen.is_count_ours is not True


def test_a_custom_resource_is_read_and_scaled_through_its_scale(
    control_plane: ControlPlane, connection: ApiConnection, namespace: str, look: Look
) -> None:
    control_plane.apply(MODEL_POOLS)
    path = f"/apis/example.com/v1/namespaces/{namespace}/modelpools"
    pool = {"apiVersion": "example.com/v1", "kind": "ModelPool", "metadata": {"name": "llama"}, "spec": {"size": 1}}
    control_plane.api.create(path, pool)
    control_plane.api.merge(f"{path}/llama/status", {"status": {"size": 1, "selector": "app=llama"}})
    template = workloads.pod_template("llama", loads_in="0s", stops_in="0s")
    template["metadata"] |= {"name": "llama-0"}
    control_plane.api.create(f"/api/v1/namespaces/{namespace}/pods", {"apiVersion": "v1", "kind": "Pod"} | template)
    sight, scaler = look(namespace), _scaler(namespace, "ModelPool", "example.com/v1")
    seen = sight.wait(scaler, lambda seen: seen.replicas.ready == 1, "a ready pod")
    assert seen.replicas == ReplicaCounts(spec=1, status=1, ready=1)

    result = ScaleSubresourceActuator(connection, lambda: True, CLOCK).scale(seen.target, 1, 3)
    assert isinstance(result, Actuated), result
    assert control_plane.api.get(f"{path}/llama")["spec"]["size"] == 3
    seen = sight.wait(scaler, lambda seen: seen.replicas.spec == 3, "our write")
    assert (seen.competing_writers, seen.replicas.starting) == ((), 2)
    # Somebody else's write through /scale is seen although the count has another name.
    control_plane.api.merge(f"{path}/llama/scale", {"spec": {"replicas": 5}}, fieldManager="somebody")
    seen = sight.wait(scaler, lambda seen: seen.replicas.spec == 5, "the other's write")
    assert [writer.reason for writer in seen.competing_writers] == [Reason.COMPETING_WRITER]


def test_starting_ready_and_terminating_pods_are_told_apart(
    control_plane: ControlPlane, namespace: str, look: Look
) -> None:
    path = PATHS["Deployment"].format(namespace=namespace)
    control_plane.api.create(path, workloads.deployment(namespace, "llama", 2, loads_in="3s", stops_in="3s"))
    sight, scaler = look(namespace), _scaler(namespace)
    sight.wait(scaler, lambda seen: seen.replicas == ReplicaCounts(2, 2, ready=0, starting=2), "two that start")
    sight.wait(scaler, lambda seen: seen.replicas == ReplicaCounts(2, 2, ready=2), "two that are ready")
    control_plane.api.merge(f"{path}/llama/scale", {"spec": {"replicas": 1}})
    seen = sight.wait(scaler, lambda seen: seen.replicas.terminating == 1, "one on its way out")
    assert (seen.replicas.ready, len(seen.pods)) == (1, 1)
    sight.wait(scaler, lambda seen: seen.replicas == ReplicaCounts(1, 1, ready=1), "one left")


def test_who_set_the_count_by_the_managed_fields_of_the_real_server(
    control_plane: ControlPlane, connection: ApiConnection, namespace: str, look: Look, tmp_path: Path
) -> None:
    sight, scaler = look(namespace), _scaler(namespace)
    manifest = tmp_path / "deployment.json"

    def apply(replicas: int | None, image: str) -> None:
        document = workloads.deployment(namespace, "llama", replicas or 0)
        if replicas is None:
            del document["spec"]["replicas"]
        document["spec"]["template"]["spec"]["containers"][0]["image"] = image
        manifest.write_text(json.dumps(document))
        control_plane.kubectl("apply", "-f", manifest)

    def competitors(condition: Callable[[Workload], bool], what: str) -> list[str]:
        return [writer.who for writer in sight.wait(scaler, condition, what).competing_writers]

    def generation() -> int:
        return int(
            control_plane.api.get(f"{PATHS['Deployment'].format(namespace=namespace)}/llama")["metadata"]["generation"]
        )

    def seen_newest(seen: Workload) -> bool:
        stored = control_plane.api.get(f"{PATHS['Deployment'].format(namespace=namespace)}/llama")
        return seen.target.resource_version == stored["metadata"]["resourceVersion"]

    apply(1, "vllm:1")
    assert competitors(seen_newest, "the new target") == []
    apply(1, "vllm:2")
    assert competitors(seen_newest, "a new image before we ever wrote") == []

    actuator = ScaleSubresourceActuator(connection, lambda: True, CLOCK)

    def write(replicas: int) -> bool:
        seen = sight.see(scaler)
        return isinstance(seen, Workload) and isinstance(
            actuator.scale(seen.target, seen.replicas.spec, replicas), Actuated
        )

    wait_until(lambda: write(3), "our write", 10)
    assert competitors(lambda seen: seen.replicas.spec == 3 and seen_newest(seen), "our write") == []
    before = generation()
    apply(None, "vllm:3")
    assert generation() > before
    # With the count left out of the file kubectl removes it, because it stood in the file before: it becomes 1.
    reset = competitors(lambda seen: seen.replicas.spec == 1, "kubectl apply resets the count")
    assert len(reset) == 1
    assert "kubectl-client-side-apply" in reset[0]
    wait_until(lambda: write(3), "our write again", 10)
    apply(None, "vllm:4")
    assert competitors(lambda seen: seen.replicas.spec == 3 and seen_newest(seen), "a new image while we own it") == []

    control_plane.kubectl("scale", "-n", namespace, "deployment/llama", "--replicas=2")
    by_hand = competitors(lambda seen: seen.replicas.spec == 2, "kubectl scale")
    assert len(by_hand) == 1
    assert '"kubectl" (set 2 replicas' in by_hand[0]
    wait_until(lambda: write(4), "our write once more", 10)

    document = workloads.deployment(namespace, "llama", 1)
    manifest.write_text(json.dumps(document))
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", manifest)
    gitops = competitors(lambda seen: seen.replicas.spec == 1, "a repository resets the count")
    assert len(gitops) == 1
    assert '"gitops" (set 1 replicas' in gitops[0]


class WatchedConfigMaps:
    """A reflector on the ConfigMaps of a namespace."""

    def __init__(self, connection: ApiConnection, namespace: str, watch_seconds: int = 30) -> None:
        self.store: ObjectStore[str] = ObjectStore()
        self.expiries = 0
        self.reflector = Reflector(
            connection,
            f"/api/v1/namespaces/{namespace}/configmaps",
            lambda document: document["metadata"]["resourceVersion"],
            self.store,
            CLOCK,
            Backoff(random.random),
            ListGate(),
            watch_seconds=lambda: watch_seconds,
        )
        self.reflector.start()

    def has(self, namespace: str, name: str) -> bool:
        return self.store.get((namespace, name)) is not None


@pytest.fixture
def watch_config_maps() -> Iterator[Callable[..., WatchedConfigMaps]]:
    with ExitStack() as cleanup:

        def begin(*arguments: Any, **settings: Any) -> WatchedConfigMaps:
            watched = WatchedConfigMaps(*arguments, **settings)
            cleanup.callback(watched.reflector.stop)
            return watched

        yield begin


def _make_config_map(control_plane: ControlPlane, namespace: str, name: str) -> None:
    control_plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}})


def test_a_quiet_watch_is_resumed_for_ever_without_a_list(
    control_plane: ControlPlane, connection: ApiConnection, namespace: str, watch_config_maps: Any
) -> None:
    watched = watch_config_maps(connection, namespace, watch_seconds=4)
    wait_until(lambda: watched.reflector.has_synced, "synced", 10)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    begun = len(_watches(control_plane, path))
    wait_until(lambda: len(_watches(control_plane, path)) >= begun + 4, "four watches have ended", 30)
    _make_config_map(control_plane, namespace, "late")
    wait_until(lambda: watched.has(namespace, "late"), "the late one", 10)
    assert watched.reflector.lists == 1
    assert watched.reflector.age_seconds() < 10


def _watches(control_plane: ControlPlane, path: str) -> list[str]:
    return [event.uri for event in control_plane.audit_events() if event.verb == "watch" and f"{path}?" in event.uri]


def test_an_api_server_that_was_away_is_resumed(own_control_plane: ControlPlane, watch_config_maps: Any) -> None:
    namespace = _new_namespace(own_control_plane)
    connection = connect(str(own_control_plane.kubeconfig))
    watched = watch_config_maps(connection, namespace)
    wait_until(lambda: watched.reflector.has_synced, "synced", 10)
    own_control_plane.stop_api_server()
    wait_until(lambda: watched.reflector.problem is not None, "the loss is noticed", 5)
    time.sleep(5)
    assert watched.reflector.age_seconds() >= 5
    assert watched.has(namespace, "kube-root-ca.crt")
    own_control_plane.start_api_server()
    _make_config_map(own_control_plane, namespace, "late")
    wait_until(lambda: watched.has(namespace, "late"), "what came after the restart", 30)
    # The restarted server has forgotten what was before: at most one list, and no storm of them.
    assert watched.reflector.lists <= 2
    connection.close()


def test_after_a_compaction_the_whole_is_read_once(own_control_plane: ControlPlane, watch_config_maps: Any) -> None:
    namespace = _new_namespace(own_control_plane)
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    _make_config_map(own_control_plane, namespace, "goes")
    with TcpLink(own_control_plane.ports.api_server) as link:
        kubeconfig = own_control_plane.admin_kubeconfig(server=f"https://127.0.0.1:{link.port}")
        connection = connect(str(kubeconfig))
        watched = watch_config_maps(connection, namespace)
        wait_until(lambda: watched.has(namespace, "goes"), "synced", 10)
        link.cut()
        own_control_plane.api.delete(f"{path}/goes")
        own_control_plane.stop_api_server()
        own_control_plane.compact_etcd()
        own_control_plane.start_api_server()
        link.mend()
        wait_until(lambda: not watched.has(namespace, "goes"), "what went unseen is gone", 60)
        # Twice in all; once where the deletion had still come through before the link was cut.
        assert watched.reflector.lists <= 2
        connection.close()


def test_a_network_that_drops_packets_is_noticed_in_time(
    control_plane: ControlPlane, namespace: str, watch_config_maps: Any
) -> None:
    with TcpLink(control_plane.ports.api_server) as link:
        kubeconfig = control_plane.admin_kubeconfig(server=f"https://127.0.0.1:{link.port}")
        connection = connect(str(kubeconfig))
        watched = watch_config_maps(connection, namespace, watch_seconds=4)
        wait_until(lambda: watched.reflector.has_synced, "synced", 10)
        link.cut()
        # Our side's kernel still gets acknowledgements from the link: only the silence tells.
        noticed = wait_until(lambda: watched.reflector.problem is not None, "the silence is noticed", 20)
        assert noticed < 4 + 5 + 2
        link.mend()
        _make_config_map(control_plane, namespace, "late")
        wait_until(lambda: watched.has(namespace, "late"), "what came meanwhile", 30)
        assert watched.reflector.lists == 1
        connection.close()


def test_a_missing_permission_is_named_by_the_port_that_needs_it(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.api.create(PATHS["Deployment"].format(namespace=namespace), _document("Deployment", namespace, 0))
    read = ["get", "list", "watch"]
    kubeconfig = control_plane.create_service_account(
        namespace,
        "reader",
        [
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": read},
            {"apiGroups": [""], "resources": ["pods"], "verbs": read},
            {"apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"], "verbs": read},
        ],
    )
    connection = connect(str(kubeconfig))
    sight = Sight(connection, namespace)
    try:
        wait_until(
            lambda: (
                isinstance(seen := sight.see(_scaler(namespace)), WorkloadUnavailable)
                and seen.reason is Reason.FORBIDDEN
            ),
            "forbidden",
            20,
        )
        seen = sight.see(_scaler(namespace))
        assert isinstance(seen, WorkloadUnavailable)
        assert 'grant verb "list" on "scaledobjects" in API group "keda.sh"' in seen.message
        target = sight.cluster.target_kind("apps/v1", "Deployment").objects
        assert target is not None
        assert target.get((namespace, "llama")) is not None
    finally:
        sight.cluster.stop()
        connection.close()


class Contenders:
    """Two processes that want the same lease and write whenever their fence is open."""

    def __init__(self, control_plane: ControlPlane, namespace: str, folder: Path, links: ExitStack) -> None:
        self.control_plane = control_plane
        self.namespace = namespace
        self.links = {name: links.enter_context(TcpLink(control_plane.ports.api_server)) for name in ("one", "two")}
        control_plane.api.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "contended"}})
        program = Path(__file__).parents[1] / "servers" / "lease_holder.py"
        self.programs = {
            name: Program(
                name,
                [
                    sys.executable,
                    program,
                    control_plane.admin_kubeconfig(server=f"https://127.0.0.1:{link.port}"),
                    namespace,
                    name,
                ],
                folder,
                {"PYTHONPATH": str(ROOT)},
            )
            for name, link in self.links.items()
        }

    def holder(self) -> str | None:
        lease = self.control_plane.api.find(
            f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/contended"
        )
        return (lease or {}).get("spec", {}).get("holderIdentity") or None

    def writer(self) -> tuple[str | None, str | None]:
        found = self.control_plane.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/contended").get("data", {})
        return found.get("writer"), found.get("count")

    def begin(self) -> tuple[str, str]:
        """Starts both; gives the one that leads and the other."""
        for program in self.programs.values():
            program.start()
        wait_until(lambda: self.writer()[0] is not None, "one of them writes", 30)
        leader = self.writer()[0]
        assert leader is not None
        # The other has to have seen the lease.
        time.sleep(3)
        return leader, "two" if leader == "one" else "one"

    def wait_takeover(self, follower: str) -> float:
        return wait_until(lambda: self.writer()[0] == follower, f"{follower} writes", 30, poll_seconds=0.05)

    def writers_during(self, seconds: float) -> set[str]:
        """Who changed the ConfigMap within some seconds from now."""
        seen: set[str] = set()
        last = self.writer()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            now = self.writer()
            if now != last and now[0] is not None:
                seen.add(now[0])
            last = now
            time.sleep(0.02)
        return seen


@pytest.fixture
def contenders(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Contenders]:
    with ExitStack() as links:
        made = Contenders(control_plane, namespace, tmp_path, links)
        yield made
        for program in made.programs.values():
            program.kill()
            print(program.log_tail())


def test_a_leader_that_is_killed_is_followed_within_fifteen_seconds(contenders: Contenders) -> None:
    leader, follower = contenders.begin()
    contenders.programs[leader].kill()
    assert 5 < contenders.wait_takeover(follower) < 15


def test_a_leader_that_ends_in_order_is_followed_at_once(contenders: Contenders) -> None:
    leader, follower = contenders.begin()
    contenders.programs[leader].stop()
    assert contenders.wait_takeover(follower) < 4


def test_a_leader_that_was_suspended_does_not_write_again(contenders: Contenders) -> None:
    leader, follower = contenders.begin()
    contenders.programs[leader].suspend()
    assert contenders.wait_takeover(follower) < 15
    contenders.programs[leader].resume()
    assert contenders.writers_during(5) == {follower}
    assert contenders.holder() == follower


def test_a_leader_whose_network_is_cut_stops_before_another_begins(contenders: Contenders) -> None:
    leader, follower = contenders.begin()
    contenders.links[leader].cut()
    assert contenders.wait_takeover(follower) < 15
    contenders.links[leader].mend()
    assert contenders.writers_during(6) == {follower}
