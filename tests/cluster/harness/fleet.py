"""One model pool on the test's control plane: its target, its pods' metrics pages, and what becomes of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import httpx2

from tests.cluster.harness.audit_log import AuditEvent
from tests.cluster.harness.control_plane import ControlPlane
from tests.cluster.harness.kubernetes_api import ApiError, KubernetesApi
from tests.cluster.harness.workloads import (
    deployment,
    inference_scaler,
    leader_worker_pods,
    leader_worker_set,
    stateful_set,
)
from tests.servers.process import wait_until
from tests.servers.prometheus_server import PrometheusServer
from tests.servers.vllm_exporters import ExportedPod, Fault, PoolLoad, VllmExporters

Document = dict[str, Any]

_PLURALS = {
    "Deployment": ("/apis/apps/v1", "deployments"),
    "StatefulSet": ("/apis/apps/v1", "statefulsets"),
    "LeaderWorkerSet": ("/apis/leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
}
_numbers = itertools.count(1)


class Fleet:
    """A pool in a namespace of its own. While it is open its exporters follow the pod list; a context manager."""

    def __init__(
        self,
        control_plane: ControlPlane,
        exporters: VllmExporters,
        *,
        replicas: int = 2,
        kind: str = "Deployment",
        name: str = "vllm",
        loads_in: str = "0s",
        stops_in: str = "0s",
        strategy: Document | None = None,
        group_size: int = 2,
        accelerators: int = 1,
        capacity_type: str | None = None,
        node_pool: str | None = None,
        labels: Document | None = None,
    ):
        self.control_plane = control_plane
        self.exporters = exporters
        self.namespace = f"pool-{next(_numbers)}"
        self.name = name
        self.kind = kind
        self._first_replicas = replicas
        self._make_target: Callable[[int], Document] = {
            "Deployment": lambda count: deployment(
                self.namespace,
                name,
                count,
                loads_in=loads_in,
                stops_in=stops_in,
                strategy=strategy,
                accelerators=accelerators,
                capacity_type=capacity_type,
                node_pool=node_pool,
                labels=labels,
            ),
            "StatefulSet": lambda count: stateful_set(self.namespace, name, count, loads_in=loads_in),
            "LeaderWorkerSet": lambda count: leader_worker_set(self.namespace, name, count, group_size),
        }[kind]
        # The follower reads beside the test: connections are not shared between threads.
        self._reader = KubernetesApi(
            control_plane.url, control_plane.certificates.authority, control_plane.certificates.clients["admin"]
        )
        self._closing = threading.Event()
        self._dead_nodes: set[str] = set()
        self._follower = threading.Thread(target=self._follow, name=f"exporters-{self.namespace}", daemon=True)

    # --- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Fleet:
        self.control_plane.create_namespace(self.namespace)
        if self.kind == "LeaderWorkerSet":
            self.control_plane.install_crd("leaderworkerset")
        self.create_target(self._first_replicas)
        self._follower.start()
        self.wait_ready(self._first_replicas)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._follower.join(30)
        self._reader.close()
        self.exporters.set_pods(self.namespace, [])
        self.control_plane.api.delete(f"/api/v1/namespaces/{self.namespace}")

    def _follow(self) -> None:
        while not self._closing.wait(0.25):
            try:
                pods = self._reader.items(f"/api/v1/namespaces/{self.namespace}/pods")
                if self.kind == "LeaderWorkerSet":
                    self._play_operator(pods)
            except (httpx2.TransportError, ApiError):
                continue  # the API server is down: the pods run on as they were
            alive = [pod for pod in pods if _is_running(pod) and pod["spec"].get("nodeName") not in self._dead_nodes]
            self.exporters.set_pods(self.namespace, [self._exported(pod) for pod in alive])

    def _exported(self, pod: Document) -> ExportedPod:
        metadata = pod["metadata"]
        pool = metadata.get("labels", {}).get("app", "")
        stopping = "deletionTimestamp" in metadata
        return ExportedPod(self.namespace, pool, metadata["name"], serving=_is_ready(pod), stopping=stopping)

    def _play_operator(self, pods: list[Document]) -> None:
        # The LeaderWorkerSet operator is not part of this control plane: its work on pods and status is done here.
        target = self._reader.find(self.target_path)
        if target is None:
            return
        wanted = {pod["metadata"]["name"]: pod for pod in leader_worker_pods(target)}
        existing = {pod["metadata"]["name"]: pod for pod in pods}
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        for pod_name in wanted.keys() - existing.keys():
            self._reader.create(path, wanted[pod_name])
        for pod_name in existing.keys() - wanted.keys():
            self._reader.delete(f"{path}/{pod_name}")
        leaders = [pod for pod in pods if pod["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"]
        selector = f"leaderworkerset.sigs.k8s.io/name={self.name},leaderworkerset.sigs.k8s.io/worker-index=0"
        status = {
            "replicas": len(leaders),
            "readyReplicas": sum(_is_ready(pod) for pod in leaders),
            "hpaPodSelector": selector,
        }
        if target.get("status") != status:
            self._reader.merge(f"{self.target_path}/status", {"status": status})

    # --- the target -----------------------------------------------------------------------------------------------

    @property
    def target_path(self) -> str:
        """URL path of the target."""
        prefix, plural = _PLURALS[self.kind]
        return f"{prefix}/namespaces/{self.namespace}/{plural}/{self.name}"

    @property
    def scale_resource(self) -> str:
        """The target's scale subresource as the audit log names it, for example "deployments/scale"."""
        return f"{_PLURALS[self.kind][1]}/scale"

    def create_target(self, replicas: int) -> None:
        """Creates the target (again)."""
        self.control_plane.api.create(self.target_path.rsplit("/", 1)[0], self._make_target(replicas))

    def delete_target(self) -> None:
        """Deletes the target and waits until its pods have gone."""
        self.control_plane.api.delete(self.target_path, propagationPolicy="Background")
        wait_until(lambda: not self.pods(), f"the pods of {self.name} have gone", 60)

    def target(self) -> Document:
        """The target as stored. Raises ApiError when there is none."""
        found: Document = self.control_plane.api.get(self.target_path)
        return found

    def replicas(self) -> int:
        """The target's spec.replicas now."""
        return int(self.target()["spec"]["replicas"])

    def ready_replicas(self) -> int:
        """The target's status.readyReplicas now."""
        return int(self.target().get("status", {}).get("readyReplicas", 0))

    def pods(self) -> list[Document]:
        """All pods of the namespace, terminating ones too."""
        return self.control_plane.api.items(f"/api/v1/namespaces/{self.namespace}/pods")

    def pod_names(self) -> list[str]:
        """Names of the pods that are not terminating, in order."""
        return sorted(pod["metadata"]["name"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"])

    def scale(self, replicas: int) -> None:
        """What a person does with `kubectl scale`."""
        self.control_plane.api.merge(f"{self.target_path}/scale", {"spec": {"replicas": replicas}})

    def wait_replicas(self, replicas: int, timeout_seconds: float = 60) -> float:
        """Seconds until spec.replicas is exactly this. Raises TimeoutError with what it is instead."""
        try:
            return wait_until(lambda: self.replicas() == replicas, f"{replicas} replicas", timeout_seconds, 0.05)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; there are {self.replicas()}, status {self.scaler_status_text()}") from error

    def wait_ready(self, replicas: int, timeout_seconds: float = 90) -> float:
        """Seconds until exactly so many replicas are Ready and as many exporters serve."""

        def ready() -> bool:
            exported = self.exporters.pods(self.namespace)
            pods = replicas * self.pods_per_replica()
            return self.ready_replicas() == replicas and len(exported) == pods and all(pod.serving for pod in exported)

        return wait_until(ready, f"{replicas} ready replicas", timeout_seconds)

    def pods_per_replica(self) -> int:
        """How many pods make up one replica."""
        if self.kind != "LeaderWorkerSet":
            return 1
        return int(self.target()["spec"]["leaderWorkerTemplate"]["size"])

    # --- load and faults ------------------------------------------------------------------------------------------

    def set_load(self, load: PoolLoad) -> None:
        """The pool has this to do from now on."""
        self.exporters.set_load(self.namespace, self.name, load)

    def set_fault(self, fault: Fault | None, share: float = 1.0) -> None:
        """This share of the pods' exporters (the first by name) misbehaves; the others are healed."""
        names = self.pod_names()
        faulty = names[: round(len(names) * share)]
        self.exporters.set_fault(self.namespace, [name for name in names if name not in faulty], None)
        self.exporters.set_fault(self.namespace, faulty, fault)

    def lose_node(self, node: str) -> None:
        """A node is gone from one moment to the next: nobody drains it, and its pods answer no more."""
        self._dead_nodes.add(node)
        self.control_plane.api.merge(f"/api/v1/nodes/{node}", {"metadata": {"finalizers": None}})
        self.control_plane.api.delete(f"/api/v1/nodes/{node}")

    # --- the InferenceScaler --------------------------------------------------------------------------------------

    @property
    def scalers_path(self) -> str:
        """URL path of the namespace's InferenceScalers."""
        return f"/apis/tokenscaler.io/v1alpha1/namespaces/{self.namespace}/inferencescalers"

    def create_scaler(self, spec: Document, name: str | None = None) -> None:
        """An InferenceScaler that steers this pool; named like it unless told otherwise."""
        document = inference_scaler(self.namespace, name or self.name, spec, kind=self.kind, target=self.name)
        self.control_plane.api.create(self.scalers_path, document)

    def patch_scaler(self, spec: Document, name: str | None = None) -> None:
        """Changes fields of the InferenceScaler's spec."""
        self.control_plane.api.merge(f"{self.scalers_path}/{name or self.name}", {"spec": spec})

    def scaler_status(self, name: str | None = None) -> Document:
        """The InferenceScaler's status; empty while it has none."""
        found: Document = self.control_plane.api.get(f"{self.scalers_path}/{name or self.name}").get("status", {})
        return found

    def scaler_status_text(self) -> str:
        """The status for a failure's message."""
        found = self.control_plane.api.find(f"{self.scalers_path}/{self.name}")
        return str((found or {}).get("status"))

    def condition(self, kind: str, name: str | None = None) -> Document:
        """One condition of the InferenceScaler; empty when there is none of this type."""
        conditions = self.scaler_status(name).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def wait_condition(
        self, kind: str, status: str, reason: str | None = None, *, name: str | None = None, timeout_seconds: float = 60
    ) -> Document:
        """The condition once it has this status (and reason). Raises TimeoutError with what it is instead."""

        def holds() -> bool:
            found = self.condition(kind, name)
            return found.get("status") == status and (reason is None or found.get("reason") == reason)

        try:
            wait_until(holds, f"condition {kind}={status} {reason or ''}", timeout_seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; status is {self.scaler_status_text()}") from error
        return self.condition(kind, name)

    def events(self) -> list[Document]:
        """The Events about InferenceScalers of this namespace, oldest first."""
        found = self.control_plane.api.items(f"/api/v1/namespaces/{self.namespace}/events")
        about = [event for event in found if event["involvedObject"].get("kind") == "InferenceScaler"]
        return sorted(about, key=lambda event: event["metadata"]["creationTimestamp"])

    def wait_event(self, reason: str, timeout_seconds: float = 30) -> Document:
        """The first Event with this reason. Raises TimeoutError with those that came instead."""

        def found() -> list[Document]:
            return [event for event in self.events() if event["reason"] == reason]

        try:
            wait_until(lambda: bool(found()), f"an Event {reason}", timeout_seconds)
        except TimeoutError as error:
            told = [f"{event['reason']}: {event['message']}" for event in self.events()]
            raise TimeoutError(f"{error}; there are {told}") from error
        return found()[0]

    # --- evidence -------------------------------------------------------------------------------------------------

    def scale_attempts(self) -> tuple[AuditEvent, ...]:
        """Every attempt to write this target's scale, in order, by whomever: refused ones (409, 5xx) as well."""
        events = self.control_plane.writes(resource=self.scale_resource, namespace=self.namespace)
        return tuple(event for event in events if event.name == self.name)

    def scale_writes(self) -> tuple[AuditEvent, ...]:
        """The attempts that wrote: each holds the scale that came of it. A 409 is asked again and is none of them."""
        return tuple(event for event in self.scale_attempts() if event.code == 200)

    def written_counts(self, user: str | None = None) -> list[int]:
        """The counts that were successfully written through /scale, in order; by one user when named."""
        return [written_count(event) for event in self.scale_writes() if user is None or event.user == user]


def written_count(write: AuditEvent) -> int:
    """The replicas that a successful write of a scale left; the API server leaves out a zero."""
    return int((write.response or {})["spec"].get("replicas", 0))


def assert_only_rises_to(written: list[int], last: int) -> None:
    """The counts rise and end at `last`. A tick may see the load when only some pages show its step."""
    assert written == sorted(written), written
    assert written[-1:] == [last], written


def wait_scraped(prometheus: PrometheusServer, *fleets: Fleet) -> None:
    """Waits until Prometheus has the page of every pod that these fleets have now."""
    for fleet in fleets:
        pods = len(fleet.exporters.pods(fleet.namespace))
        prometheus.wait_for(f'vllm:num_requests_running{{namespace="{fleet.namespace}"}}', pods)


def _is_ready(pod: Document) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _is_running(pod: Document) -> bool:
    return bool(pod.get("status", {}).get("phase") == "Running")
