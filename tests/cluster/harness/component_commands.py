"""With which command line does each part of the control plane run?"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.harness.audit_log import AUDIT_POLICY
from tests.cluster.harness.binaries import PROGRAMS, build, module_directory
from tests.cluster.harness.certificates import Certificates
from tests.servers.ports import free_port

STAGES_DIRECTORY = Path(__file__).parent / "stages"
NODE_STAGES = (
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
)


@dataclass(frozen=True, slots=True)
class Ports:
    """One loopback port for each listener."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int
    kwok: int
    karpenter_metrics: int
    karpenter_health: int

    @classmethod
    def draw(cls) -> Ports:
        """Free ones."""
        drawn: set[int] = set()
        while len(drawn) < 8:
            drawn.add(free_port())
        return cls(*drawn)


@functools.cache
def program(name: str) -> Path:
    """Path of a built program; builds it when it is missing."""
    return build(next(program for program in PROGRAMS if program.name == name))


def etcd(directory: Path, ports: Ports) -> list[str | Path]:
    return [
        program("etcd"),
        f"--data-dir={directory / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{ports.etcd}",
        f"--advertise-client-urls=http://127.0.0.1:{ports.etcd}",
        f"--listen-peer-urls=http://127.0.0.1:{ports.etcd_peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(directory: Path, ports: Ports, certificates: Certificates, audit_log: Path) -> list[str | Path]:
    policy = directory / "audit-policy.yaml"
    policy.write_text(AUDIT_POLICY)
    return [
        program("kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{ports.etcd}",
        f"--secure-port={ports.api_server}",
        "--bind-address=127.0.0.1",
        "--advertise-address=10.0.0.254",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--tls-cert-file={certificates.api_server.certificate}",
        f"--tls-private-key-file={certificates.api_server.key}",
        f"--client-ca-file={certificates.authority}",
        "--authorization-mode=RBAC",
        "--endpoint-reconciler-type=none",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certificates.service_account_public_key}",
        f"--service-account-signing-key-file={certificates.service_account_key}",
        f"--requestheader-client-ca-file={certificates.front_proxy_authority}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={certificates.front_proxy_client.certificate}",
        f"--proxy-client-key-file={certificates.front_proxy_client.key}",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={audit_log}",
        "--audit-log-maxsize=2000",
    ]


def controller_manager(kubeconfig: Path, ports: Ports, certificates: Certificates) -> list[str | Path]:
    return [
        program("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={certificates.service_account_key}",
        f"--root-ca-file={certificates.authority}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.controller_manager}",
        "--horizontal-pod-autoscaler-sync-period=1s",
        "--horizontal-pod-autoscaler-downscale-stabilization=5s",
        # A metric that is answered late holds up its own HPA only.
        "--concurrent-horizontal-pod-autoscaler-syncs=50",
        # A stopped API server or a busy machine must not turn fake nodes NotReady: tests delete a Node to lose it.
        "--node-monitor-grace-period=600s",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]


def scheduler(kubeconfig: Path, ports: Ports) -> list[str | Path]:
    return [
        program("kube-scheduler"),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports.scheduler}",
        "--kube-api-qps=300",
        "--kube-api-burst=600",
    ]


def kwok(kubeconfig: Path, ports: Ports) -> list[str | Path]:
    source = module_directory("kwok", "sigs.k8s.io/kwok")
    stages = [source / stage for stage in NODE_STAGES] + sorted(STAGES_DIRECTORY.glob("*.yaml"))
    return [
        program("kwok"),
        f"--kubeconfig={kubeconfig}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=40",
        f"--server-address=127.0.0.1:{ports.kwok}",
        "--v=WARN",
        *(f"--config={stage}" for stage in stages),
    ]


def karpenter(
    kubeconfig: Path, ports: Ports, instance_types: Path, *, capacity_buffers: bool
) -> tuple[list[str | Path], dict[str, str]]:
    """Command and environment; the instance types are a JSON file in the kwok provider's format."""
    return [program("karpenter-kwok")], {
        "KUBECONFIG": str(kubeconfig),
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(ports.karpenter_metrics),
        "HEALTH_PROBE_PORT": str(ports.karpenter_health),
        "LOG_LEVEL": "info",
        "FEATURE_GATES": f"StaticCapacity=true,CapacityBuffer={str(capacity_buffers).lower()}",
        "INSTANCE_TYPES_FILE_PATH": str(instance_types),
        "BATCH_MAX_DURATION": "1s",
        "BATCH_IDLE_DURATION": "200ms",
    }
