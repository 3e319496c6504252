"""KEDA's side of its external scaler interface: a channel over TLS and the four calls."""

from __future__ import annotations

from typing import Any

import grpc

from autoscaler.keda_external_scaler import external_scaler_pb2 as wire
from autoscaler.keda_external_scaler.service import SERVICE

WAIT_SECONDS = 30.0


class KedaClient:
    """Close its `channel` at the end. `client` is key and certificate; None: without one."""

    def __init__(self, port: int, authority: str, client: tuple[bytes, bytes] | None) -> None:
        key, certificate = client or (None, None)
        credentials = grpc.ssl_channel_credentials(authority.encode(), key, certificate)
        # A pool of its own: two channels of one test must not share a connection.
        self.channel = grpc.secure_channel(f"127.0.0.1:{port}", credentials, [("grpc.use_local_subchannel_pool", 1)])

    def call(self, method: str, request: Any, answer: Any) -> Any:
        stub = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        return stub(request, timeout=WAIT_SECONDS)

    def is_active(self, **metadata: str) -> bool:
        return bool(self.call("IsActive", a_reference(**metadata), wire.IsActiveResponse).result)

    def specs(self, **metadata: str) -> list[tuple[str, int, float]]:
        answer = self.call("GetMetricSpec", a_reference(**metadata), wire.GetMetricSpecResponse)
        return [(each.metricName, each.targetSize, each.targetSizeFloat) for each in answer.metricSpecs]

    def values(self, asked: str = "", /, **metadata: str) -> list[tuple[str, int, float]]:
        request = wire.GetMetricsRequest(scaledObjectRef=a_reference(**metadata), metricName=asked)
        answer = self.call("GetMetrics", request, wire.GetMetricsResponse)
        return [(each.metricName, each.metricValue, each.metricValueFloat) for each in answer.metricValues]

    def stream(self, **metadata: str) -> Any:
        stub = self.channel.unary_stream(
            f"/{SERVICE}/StreamIsActive",
            request_serializer=wire.ScaledObjectRef.SerializeToString,
            response_deserializer=wire.IsActiveResponse.FromString,
        )
        return stub(a_reference(**metadata), timeout=2 * WAIT_SECONDS)


def a_reference(namespace: str = "inference", name: str = "llama", **metadata: str) -> wire.ScaledObjectRef:
    return wire.ScaledObjectRef(name=name, namespace=namespace, scalerMetadata=metadata)
