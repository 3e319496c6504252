"""How a status gets into its object: a merge patch of the status subresource, in the background."""

from __future__ import annotations

from autoscaler.api.accelerator_pool import AcceleratorPoolStatus
from autoscaler.api.status import InferenceScalerStatus
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.connection import ApiConnection, Document

SCALERS_PATH = "/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}/status"
ACCELERATOR_POOLS_PATH = "/apis/tokenscaler.io/v1alpha1/acceleratorpools/{name}/status"


class StatusWriter:
    """A StatusSink and an AcceleratorPoolSink on the API server. A newer status replaces one that still waits."""

    def __init__(self, writer: BackgroundWriter) -> None:
        self._writer = writer

    def write(self, namespace: str, name: str, status: InferenceScalerStatus) -> None:
        """Queues the status of an InferenceScaler."""
        self._submit(SCALERS_PATH.format(namespace=namespace, name=name), status)

    def write_accelerator_pool(self, name: str, status: AcceleratorPoolStatus) -> None:
        """Queues the status of an AcceleratorPool."""
        self._submit(ACCELERATOR_POOLS_PATH.format(name=name), status)

    def _submit(self, path: str, status: InferenceScalerStatus | AcceleratorPoolStatus) -> None:
        # None is written as null: a merge patch removes the field then, so nothing stale is left behind.
        body: Document = {"status": status.model_dump(mode="json", by_alias=True)}

        def patch(connection: ApiConnection) -> Document | ApiFailure:
            return connection.patch(path, body)

        self._writer.submit(("status", path), patch)
