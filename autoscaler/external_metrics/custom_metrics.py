"""The same values as Object metrics of an InferenceScaler, in custom.metrics.k8s.io, where that group is free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import FastAPI, Response

from autoscaler.api.conditions import rfc3339
from autoscaler.api.document import API_VERSION, GROUP
from autoscaler.api.inference_scaler import KIND
from autoscaler.api.quantity import quantity
from autoscaler.clock import Clock
from autoscaler.external_metrics.app import answer, refusal, refusal_of
from autoscaler.external_metrics.selector import BadSelector, Condition, Selector, parse_selector
from autoscaler.external_metrics.values import (
    METRIC_NAMES,
    SCALER_LABEL,
    MetricSource,
    MetricUnavailable,
    MetricValue,
    NotKnownYet,
    PoolMetrics,
    read_metric,
)
from autoscaler.external_metrics.wire import ApiGroup, ApiResource, Document

RESOURCE = f"inferencescalers.{GROUP}"
ALL_OBJECTS = "*"
V1BETA1, V1BETA2 = "v1beta1", "v1beta2"
CUSTOM_METRICS = ApiGroup(
    "custom.metrics.k8s.io",
    (V1BETA2, V1BETA1),
    tuple(ApiResource(f"{RESOURCE}/{name}", "MetricValueList") for name in METRIC_NAMES),
)


def add_custom_metrics(app: FastAPI, source: MetricSource, clock: Clock) -> None:
    """Adds the metric routes of both versions; the group's discovery is the app's own, by CUSTOM_METRICS."""
    for version in CUSTOM_METRICS.versions:
        path = f"/apis/{CUSTOM_METRICS.name}/{version}/namespaces/{{namespace}}/{RESOURCE}/{{name}}/{{metric}}"
        app.get(path, name=f"custom metric {version}")(_metric_of(version, source, clock))


def _metric_of(version: str, source: MetricSource, clock: Clock):  # type: ignore[no-untyped-def]
    async def metric(
        namespace: str,
        name: str,
        metric: str,
        labelSelector: str = "",  # noqa: N803
        metricLabelSelector: str = "",  # noqa: N803
    ) -> Response:
        objects, metrics = parse_selector(labelSelector), parse_selector(metricLabelSelector)
        if isinstance(objects, BadSelector):
            return refusal(400, "BadRequest", f"unable to parse labelSelector {labelSelector!r}: {objects.problem}")
        if isinstance(metrics, BadSelector):
            return refusal(
                400, "BadRequest", f"unable to parse metricLabelSelector {metricLabelSelector!r}: {metrics.problem}"
            )
        asked = _Asked(source, None if name == ALL_OBJECTS else name, objects)
        found = read_metric(asked, namespace, metric, asked.metrics(metrics), clock.now_seconds())
        if isinstance(found, MetricUnavailable):
            return refusal_of(found)
        return answer(value_list(version, namespace, found))

    return metric


@dataclass(frozen=True, slots=True)
class _Asked:
    """The objects that are asked for, as a MetricSource: one by name, or all whose own labels are selected."""

    source: MetricSource
    name: str | None
    objects: Selector

    def pools_in(self, namespace: str) -> Sequence[PoolMetrics] | NotKnownYet:
        pools = self.source.pools_in(namespace)
        # By name everything is kept, so that the answer can say what is there instead.
        if isinstance(pools, NotKnownYet) or self.name is not None:
            return pools
        return tuple(pool for pool in pools if self.objects.matches(pool.object_labels))

    def metrics(self, selector: Selector) -> Selector:
        """What the metric's own labels must be."""
        by_name = () if self.name is None else (Condition(SCALER_LABEL, "in", (self.name,)),)
        return Selector((*by_name, *selector.conditions))


def value_list(version: str, namespace: str, values: Sequence[MetricValue]) -> Document:
    """A MetricValueList of that version."""
    return {
        "kind": "MetricValueList",
        "apiVersion": f"{CUSTOM_METRICS.name}/{version}",
        "metadata": {},
        "items": [_item(version, namespace, value) for value in values],
    }


def _item(version: str, namespace: str, value: MetricValue) -> Document:
    described = {
        "kind": KIND,
        "namespace": namespace,
        "name": value.labels[SCALER_LABEL],
        "apiVersion": API_VERSION,
    }
    metric = (
        {"metric": {"name": value.name, "selector": None}}
        if version == V1BETA2
        else {"metricName": value.name, "selector": None}
    )
    return {
        "describedObject": described,
        **metric,
        "timestamp": rfc3339(value.timestamp_seconds),
        "value": quantity(value.milli_value),
    }
