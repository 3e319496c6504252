"""What do we answer to KEDA's calls?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from math import ceil
from typing import NoReturn

import grpc
from grpc import aio

from autoscaler.clock import Clock
from autoscaler.external_metrics.selector import Condition, Selector
from autoscaler.external_metrics.values import (
    SCALER_LABEL,
    MetricSource,
    MetricUnavailable,
    MetricValue,
    ProblemKind,
    read_metric,
)
from autoscaler.keda_external_scaler import external_scaler_pb2 as wire
from autoscaler.keda_external_scaler.trigger import InvalidTrigger, Trigger, read_trigger

SERVICE = "externalscaler.ExternalScaler"
STREAM_LOOK_SECONDS = 1.0
MILLI = 1000


# (namespace, InferenceScaler, metric) -> its value now. Must not wait: it is called from the event loop.
ValueLookup = Callable[[str, str, str], MetricValue | MetricUnavailable]
_Context = aio.ServicerContext[object, object]


def look_up_in(source: MetricSource, clock: Clock) -> ValueLookup:
    """The lookup on the metrics of all pools."""

    def look_up(namespace: str, scaler: str, metric: str) -> MetricValue | MetricUnavailable:
        selector = Selector((Condition(SCALER_LABEL, "in", (scaler,)),))
        found = read_metric(source, namespace, metric, selector, clock.now_seconds())
        return found if isinstance(found, MetricUnavailable) else found[0]

    return look_up


class ExternalScalerService:
    """The four calls. An unknown value is an error, to which KEDA answers with its fallback; it is never zero."""

    def __init__(
        self, look_up: ValueLookup, stopping: asyncio.Event, look_seconds: float = STREAM_LOOK_SECONDS
    ) -> None:
        """`stopping` ends the streams; they look at the value every `look_seconds`."""
        self._look_up = look_up
        self._stopping = stopping
        self._look_seconds = look_seconds

    def handler(self) -> grpc.GenericRpcHandler:
        """The service for a grpc.aio server."""
        reference, spec_response = wire.ScaledObjectRef.FromString, wire.GetMetricSpecResponse.SerializeToString
        active_response = wire.IsActiveResponse.SerializeToString
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "IsActive": grpc.unary_unary_rpc_method_handler(self.is_active, reference, active_response),
                "StreamIsActive": grpc.unary_stream_rpc_method_handler(
                    self.stream_is_active, reference, active_response
                ),
                "GetMetricSpec": grpc.unary_unary_rpc_method_handler(self.get_metric_spec, reference, spec_response),
                "GetMetrics": grpc.unary_unary_rpc_method_handler(
                    self.get_metrics,
                    wire.GetMetricsRequest.FromString,
                    wire.GetMetricsResponse.SerializeToString,
                ),
            },
        )

    async def is_active(self, request: wire.ScaledObjectRef, context: _Context) -> wire.IsActiveResponse:
        """Whether the metric is above the activation threshold; an error where the value is not known."""
        trigger = await _trigger(request, context)
        value = self._value(trigger)
        if isinstance(value, MetricUnavailable):
            await _refuse(value, context)
        return wire.IsActiveResponse(result=_is_active(value, trigger))

    async def stream_is_active(
        self, request: wire.ScaledObjectRef, context: _Context
    ) -> AsyncIterator[wire.IsActiveResponse]:
        """The same at once and at each change. While the value is not known nothing is said: what was said holds.

        The stream ends, without an error, when the server stops: KEDA then comes back after two seconds and not after
        up to a minute.
        """
        trigger = await _trigger(request, context)
        said: bool | None = None
        while not self._stopping.is_set():
            value = self._value(trigger)
            if isinstance(value, MetricUnavailable):
                if value.kind is ProblemKind.NOT_FOUND:
                    await _refuse(value, context)
            elif _is_active(value, trigger) is not said:
                said = _is_active(value, trigger)
                yield wire.IsActiveResponse(result=said)
            await self._wait()

    async def get_metric_spec(self, request: wire.ScaledObjectRef, context: _Context) -> wire.GetMetricSpecResponse:
        """Metric and share per replica. They do not hang on a value: KEDA would make an HPA without a metric."""
        trigger = await _trigger(request, context)
        spec = wire.MetricSpec(
            metricName=trigger.metric,
            targetSize=ceil(trigger.threshold),
            targetSizeFloat=trigger.threshold,
        )
        return wire.GetMetricSpecResponse(metricSpecs=[spec])

    async def get_metrics(self, request: wire.GetMetricsRequest, context: _Context) -> wire.GetMetricsResponse:
        """The value; an error where it is not known."""
        trigger = await _trigger(request.scaledObjectRef, context)
        if request.metricName and request.metricName != trigger.metric:
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f"metric {request.metricName}: the trigger is about {trigger.metric}"
            )
        value = self._value(trigger)
        if isinstance(value, MetricUnavailable):
            await _refuse(value, context)
        metric = wire.MetricValue(
            metricName=trigger.metric,
            metricValue=-(-value.milli_value // MILLI),
            metricValueFloat=value.milli_value / MILLI,
        )
        return wire.GetMetricsResponse(metricValues=[metric])

    def _value(self, trigger: Trigger) -> MetricValue | MetricUnavailable:
        return self._look_up(trigger.namespace, trigger.inference_scaler, trigger.metric)

    async def _wait(self) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), self._look_seconds)
        except TimeoutError:
            return


async def _trigger(reference: wire.ScaledObjectRef, context: _Context) -> Trigger:
    trigger = read_trigger(reference.namespace, reference.name, reference.scalerMetadata)
    if isinstance(trigger, InvalidTrigger):
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, trigger.message)
    return trigger


def _is_active(value: MetricValue, trigger: Trigger) -> bool:
    return value.milli_value > trigger.activation_threshold * MILLI


async def _refuse(missing: MetricUnavailable, context: _Context) -> NoReturn:
    code = grpc.StatusCode.NOT_FOUND if missing.kind is ProblemKind.NOT_FOUND else grpc.StatusCode.UNAVAILABLE
    await context.abort(code, missing.message)
