"""How does a test get a real control plane, and what can it do to it?

etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok (fake nodes and pods), each its own process on
loopback with free ports and a temporary folder, so that several run side by side. Karpenter joins when asked for.
"""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2
import yaml

from tests.cluster.harness import component_commands
from tests.cluster.harness.audit_log import AuditEvent, AuditLog
from tests.cluster.harness.binaries import module_directory
from tests.cluster.harness.certificates import write_certificates
from tests.cluster.harness.component_commands import Ports
from tests.cluster.harness.kubeconfig import write_kubeconfig
from tests.cluster.harness.kubernetes_api import ApiError, KubernetesApi
from tests.servers.process import Program, wait_until

CRDS_DIRECTORY = Path(__file__).parent / "crds"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok", "karpenter")


class ControlPlane:
    """A running control plane; a context manager. `api` speaks to it as an administrator."""

    def __init__(self, *, karpenter_instance_types: Path | None = None):
        self.directory = Path(tempfile.mkdtemp(prefix="tokenscaler-cluster-"))
        self.ports = Ports.draw()
        self.url = f"https://127.0.0.1:{self.ports.api_server}"
        self.certificates = write_certificates(self.directory / "certificates")
        self.audit_log_path = self.directory / "audit.log"
        self._audit_log = AuditLog(self.audit_log_path)
        self.kubeconfig = self._client_kubeconfig("admin")
        self.api = KubernetesApi(self.url, self.certificates.authority, self.certificates.clients["admin"])
        self._instance_types = karpenter_instance_types
        self._programs: dict[str, Program] = {}

    # --- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> ControlPlane:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _start(self) -> None:
        directory, ports, certificates = self.directory, self.ports, self.certificates
        self._run("etcd", component_commands.etcd(directory, ports))
        self._run("kube-apiserver", component_commands.api_server(directory, ports, certificates, self.audit_log_path))
        self._programs["kube-apiserver"].wait_ready(self._api_server_ready)
        manager = self._client_kubeconfig("system:kube-controller-manager")
        self._run("kube-controller-manager", component_commands.controller_manager(manager, ports, certificates))
        scheduler = self._client_kubeconfig("system:kube-scheduler")
        self._run("kube-scheduler", component_commands.scheduler(scheduler, ports))
        self._run("kwok", component_commands.kwok(self._client_kubeconfig("kwok"), ports))
        if self._instance_types is not None:
            self._start_karpenter(self._instance_types)
        wait_until(self._service_accounts_come, "the controller manager makes service accounts", 120)

    def _start_karpenter(self, instance_types: Path, capacity_buffers: bool = True) -> None:
        self.install_karpenter_crds()
        command, environment = component_commands.karpenter(
            self.kubeconfig, self.ports, instance_types, capacity_buffers=capacity_buffers
        )
        self._run("karpenter", command, environment)

    def _run(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        self._programs[name] = Program(name, command, self.directory, environment)
        self._programs[name].start()

    def _api_server_ready(self) -> bool:
        try:
            return bool(self.api.get("/readyz") == "ok")
        except (httpx2.TransportError, ApiError):
            return False

    def _service_accounts_come(self) -> bool:
        return self.api.find("/api/v1/namespaces/default/serviceaccounts/default") is not None

    def stop(self) -> None:
        """Ends every part in reverse order, waits for each, and removes the folder."""
        for name in reversed(list(self._programs)):
            # The API server would wait for its etcd while draining; nothing in here is to be kept.
            self._programs[name].stop(timeout_seconds=10)
        self.api.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- failures -------------------------------------------------------------------------------------------------

    def component(self, name: str) -> Program:
        """The process of one part (see COMPONENTS), to kill, suspend, resume or start it."""
        return self._programs[name]

    def restart_karpenter(self, *, capacity_buffers: bool) -> None:
        """Ends Karpenter where it runs, and starts it with its gate CapacityBuffer on or off."""
        if self._instance_types is None:
            raise RuntimeError("this control plane was made without a Karpenter")
        self.component("karpenter").kill()
        self._start_karpenter(self._instance_types, capacity_buffers)

    def stop_api_server(self) -> None:
        """Ends the API server at once; etcd and the others stay."""
        self.component("kube-apiserver").kill()

    def start_api_server(self) -> float:
        """Starts the API server again on the same port; returns the seconds until it is ready."""
        self.component("kube-apiserver").start()
        return self.component("kube-apiserver").wait_ready(self._api_server_ready)

    def compact_etcd(self) -> int:
        """Throws away etcd's history before now; returns the revision. Works while the API server is down.

        A running API server still answers old watches from its own cache: the 410 comes after its restart.
        """
        base = f"http://127.0.0.1:{self.ports.etcd}/v3/kv"
        key = base64.b64encode(b"/").decode()
        answer = httpx2.post(f"{base}/range", json={"key": key, "limit": "1"}, timeout=10).raise_for_status()
        revision = int(answer.json()["header"]["revision"])
        httpx2.post(f"{base}/compaction", json={"revision": revision, "physical": True}, timeout=30).raise_for_status()
        return revision

    # --- users ----------------------------------------------------------------------------------------------------

    def _client_kubeconfig(self, common_name: str) -> Path:
        path = self.directory / "kubeconfigs" / f"{common_name.replace(':', '-')}.yaml"
        return write_kubeconfig(path, self.url, self.certificates.authority, self.certificates.clients[common_name])

    def admin_kubeconfig(self, *, server: str | None = None) -> Path:
        """A kubeconfig of the administrator; `server` goes through another address (see TcpLink)."""
        if server is None:
            return self.kubeconfig
        path = self.directory / "kubeconfigs" / f"admin-{server.rsplit(':', 1)[1]}.yaml"
        return write_kubeconfig(path, server, self.certificates.authority, self.certificates.clients["admin"])

    def service_account_token(self, namespace: str, name: str) -> str:
        """A bearer token of an existing ServiceAccount, valid for the whole test."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 36_000}}
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api.create(path, body)["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, name: str, *, server: str | None = None) -> Path:
        """A kubeconfig that acts as an existing ServiceAccount."""
        link = "" if server is None else f"-{server.rsplit(':', 1)[1]}"
        path = self.directory / "kubeconfigs" / f"{namespace}-{name}{link}.yaml"
        token = self.service_account_token(namespace, name)
        return write_kubeconfig(path, server or self.url, self.certificates.authority, token)

    def create_service_account(
        self, namespace: str, name: str, cluster_rules: Iterable[Mapping[str, Any]], *, server: str | None = None
    ) -> Path:
        """Makes a ServiceAccount with a ClusterRole of exactly these rules bound to it; returns its kubeconfig."""
        role = f"{namespace}-{name}"
        group = "rbac.authorization.k8s.io"
        self.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": role},
                "rules": [dict(rule) for rule in cluster_rules],
            },
            {
                "apiVersion": f"{group}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": role},
                "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
            },
        )
        return self.service_account_kubeconfig(namespace, name, server=server)

    # --- objects --------------------------------------------------------------------------------------------------

    def kubectl(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Output of kubectl as administrator. Raises RuntimeError with what it said when it fails."""
        command = [component_commands.program("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        answer = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=120, env={"HOME": str(self.directory)}
        )
        if answer.returncode != 0:
            raise RuntimeError(f"kubectl {' '.join(map(str, arguments))}: {answer.stderr.strip()}")
        return answer.stdout

    def apply(self, *documents: Path | Mapping[str, Any] | str) -> None:
        """kubectl apply of files and folders, then of YAML texts and documents; waits for CRDs to be served."""
        folders = [document for document in documents if isinstance(document, Path)]
        texts = [
            document if isinstance(document, str) else yaml.safe_dump(dict(document))
            for document in documents
            if not isinstance(document, Path)
        ]
        # One kubectl for all of them: each start of it costs more than what it applies.
        files = [argument for folder in folders for argument in ("-f", folder)] + (["-f", "-"] if texts else [])
        self.kubectl("apply", "--server-side", "--force-conflicts", *files, stdin="\n---\n".join(texts) or None)
        for definition in self.api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"):
            self._wait_served(definition["metadata"]["name"])

    def _wait_served(self, crd_name: str) -> None:
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd_name}"

        def established() -> bool:
            found = self.api.get(path)
            conditions = found.get("status", {}).get("conditions") or []
            if not any(item["type"] == "Established" and item["status"] == "True" for item in conditions):
                return False
            group, version = found["spec"]["group"], found["spec"]["versions"][0]["name"]
            try:
                return self.api.find(f"/apis/{group}/{version}/{found['spec']['names']['plural']}") is not None
            except ApiError:  # 429 "storage is (re)initializing" just after it was established
                return False

        wait_until(established, f"{crd_name} is served", 60)

    def install_crd(self, name: str) -> None:
        """Installs one of the test's own definitions: "leaderworkerset" or "scaledobject"."""
        self.apply(CRDS_DIRECTORY / f"{name}.yaml")

    def install_karpenter_crds(self) -> None:
        """Installs the definitions of Karpenter and of its kwok provider, as its module has them."""
        source = module_directory("karpenter", "sigs.k8s.io/karpenter")
        self.apply(*sorted([*source.glob("pkg/apis/crds/*.yaml"), *source.glob("kwok/apis/crds/*.yaml")]))

    def create_namespace(self, name: str) -> None:
        """Makes a namespace and waits for its default ServiceAccount, without which no pod is admitted."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda: self.api.find(path) is not None, f"{name}/default service account", 60)

    def add_nodes(self, count: int, *, accelerators: int = 8, name: str = "gpu") -> None:
        """Adds fake nodes `<name>-0 ...` with so many nvidia.com/gpu each; they become Ready within a second or two."""
        capacity = {"cpu": "192", "memory": "2Ti", "pods": "200", "nvidia.com/gpu": str(accelerators)}
        names = [f"{name}-{index}" for index in range(count)]
        for node_name in names:
            node = {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": node_name,
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": {"kubernetes.io/hostname": node_name, "kubernetes.io/os": "linux"},
                },
                "status": {"capacity": capacity, "allocatable": capacity},
            }
            if self.api.find(f"/api/v1/nodes/{node_name}") is None:
                self.api.create("/api/v1/nodes", node)
        wait_until(lambda: all(self._node_ready(node_name) for node_name in names), "the nodes are Ready", 60)

    def _node_ready(self, name: str) -> bool:
        node = self.api.get(f"/api/v1/nodes/{name}")
        conditions = node.get("status", {}).get("conditions", [])
        ready = any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
        return ready and not node["spec"].get("taints")

    # --- evidence -------------------------------------------------------------------------------------------------

    def audit_events(self) -> tuple[AuditEvent, ...]:
        """Every finished request so far."""
        return self._audit_log.events()

    def writes(self, *, resource: str | None = None, namespace: str | None = None) -> tuple[AuditEvent, ...]:
        """The requests that asked for a change, narrowed to a resource ("deployments/scale") and a namespace."""
        return tuple(
            event
            for event in self.audit_events()
            if event.is_write
            and (resource is None or event.resource == resource)
            and (namespace is None or event.namespace == namespace)
        )


def main() -> None:
    """Starts a control plane with CRDs and nodes, prints its kubeconfig, and stays until Ctrl-C or SIGTERM."""
    stopping = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
    crds = Path(__file__).parents[3] / "deploy" / "crd"
    with ControlPlane() as control_plane:
        for definition in ("leaderworkerset", "scaledobject"):
            control_plane.install_crd(definition)
        if crds.is_dir():
            control_plane.apply(crds)
        control_plane.add_nodes(4)
        print("A control plane with 4 fake nodes of 8 GPUs is up until Ctrl-C. Use it with:")
        print(f"  export KUBECONFIG={control_plane.kubeconfig}")
        print(f"  export PATH={component_commands.program('kubectl').parent}{os.pathsep}$PATH")
        print(f"logs: {control_plane.directory}", flush=True)
        signal.sigwait(stopping)
        print("stopping", flush=True)


if __name__ == "__main__":
    main()
