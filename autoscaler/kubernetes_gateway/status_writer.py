"""How a status gets into its object: a merge patch of the status subresource, in the background."""

from __future__ import annotations

from autoscaler.api.status import InferenceScalerStatus
from autoscaler.kubernetes_gateway.api_failure import ApiFailure
from autoscaler.kubernetes_gateway.background_writer import BackgroundWriter
from autoscaler.kubernetes_gateway.connection import ApiConnection, Document

SCALERS_PATH = "/apis/tokenscaler.io/v1alpha1/namespaces/{namespace}/inferencescalers/{name}/status"


class StatusWriter:
    """A StatusSink on the API server."""

    def __init__(self, writer: BackgroundWriter) -> None:
        self._writer = writer

    def write(self, namespace: str, name: str, status: InferenceScalerStatus) -> None:
        """Queues the status; an older one of the same object that still waits is replaced."""
        path = SCALERS_PATH.format(namespace=namespace, name=name)
        # None is written as null: a merge patch removes the field then, so nothing stale is left behind.
        body: Document = {"status": status.model_dump(mode="json", by_alias=True)}

        def patch(connection: ApiConnection) -> Document | ApiFailure:
            return connection.patch(path, body)

        self._writer.submit(("status", namespace, name), patch)
