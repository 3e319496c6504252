"""How do the API server and its HPA controller come to ask a controller that runs on this host for metrics?

What deploy/overlays/external-metrics ships is applied as it is, but for the Deployment, which is a process of the test,
and the Service, which becomes an ExternalName: the aggregator then dials this host, and verifies the Service's name.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from tests.cluster.harness.control_plane import ControlPlane
from tests.servers.process import wait_until

OVERLAY = Path(__file__).parents[3] / "deploy" / "overlays" / "external-metrics"
NAMESPACE, SERVICE = "tokenscaler-system", "tokenscaler-metrics"
API_SERVICES_PATH = "/apis/apiregistration.k8s.io/v1/apiservices"
API_SERVICE_PATH = f"{API_SERVICES_PATH}/v1beta1.external.metrics.k8s.io"
SECRET_PATH = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SERVICE}-certificate"
PREFIX = "/apis/external.metrics.k8s.io/v1beta1"
HPA_ACCOUNT = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"

_PLAYED_BY_THE_TEST = frozenset({"Deployment", "PodDisruptionBudget", "ConfigMap", "Service"})


class InstalledMetricsApi:
    """The overlay on a control plane, with its Service leading to a port of this host; a context manager."""

    def __init__(self, control_plane: ControlPlane, port: int, *further_overlays: Path, is_kept: bool = False) -> None:
        """Further overlays may hold the same objects as the first: what differs is there too.

        `is_kept`: the control plane ends with the test, so that nothing need be taken away.
        """
        self._control_plane = control_plane
        self._is_kept = is_kept
        shipped: dict[tuple[str, str, str], dict[str, Any]] = {}
        for overlay in (*further_overlays, OVERLAY):
            for document in filter(None, yaml.safe_load_all(control_plane.kubectl("kustomize", overlay))):
                metadata = document["metadata"]
                shipped[document["kind"], metadata.get("namespace", ""), metadata["name"]] = document
        self._documents = [self._here(document, port) for document in shipped.values()]
        self._documents = [document for document in self._documents if document is not None]
        self._port = port

    def _here(self, document: dict[str, Any], port: int) -> dict[str, Any] | None:
        if document["kind"] == "APIService":
            document["spec"]["service"]["port"] = port
        return None if document["kind"] in _PLAYED_BY_THE_TEST else document

    def __enter__(self) -> InstalledMetricsApi:
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": self._port}]},
        }
        first = [document for document in self._documents if document["kind"] == "Namespace"]
        others = [document for document in self._documents if document["kind"] != "Namespace"]
        self._control_plane.apply(yaml.safe_dump_all([*first, *others, service]))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_kept:
            return
        api = self._control_plane.api
        # First what everybody's discovery asks; the namespace takes the rest with it.
        self.remove_api_services()
        api.delete(f"/api/v1/namespaces/{NAMESPACE}")
        wait_until(lambda: api.find(f"/api/v1/namespaces/{NAMESPACE}") is None, "the namespace has gone", 120)

    def remove_api_services(self) -> None:
        """What a user has to do first who takes the controller away."""
        for document in self._documents:
            if document["kind"] == "APIService":
                self._control_plane.api.delete(f"{API_SERVICES_PATH}/{document['metadata']['name']}")

    @property
    def kubeconfig(self) -> Path:
        """Of the account that the overlay runs under, with exactly the shipped permissions."""
        return self._control_plane.service_account_kubeconfig(NAMESPACE, "tokenscaler")

    def condition(self) -> dict[str, Any]:
        """The APIService's condition Available; empty while it has none."""
        found = self._control_plane.api.get(API_SERVICE_PATH)
        conditions = found.get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == "Available"), {})

    def wait_available(self, timeout_seconds: float = 90) -> None:
        """Waits until the aggregator has found the API, and verifies the certificate that it serves with."""
        wait_until(lambda: self.condition().get("status") == "True", "the APIService is Available", timeout_seconds)
        wait_until(self._is_verified, "the aggregator verifies the certificate", timeout_seconds)

    def _is_verified(self) -> bool:
        try:
            self._control_plane.kubectl("get", "--raw", PREFIX)
        except RuntimeError:
            return False
        return True
