"""Which HorizontalPodAutoscaler writes exactly the count that we decide, and adds no delay of its own?

An External metric with an AverageValue target of 1 asks for ceil(count / 1), and so does an Object metric of the
InferenceScaler. What else an HPA does to a number is switched off: its tolerance (10 % by default, so that 21 would
stay 20), its stabilization windows (300 s down by default) and its rate limits, of which the widest allowed are stated.
All of these are in our own decision already.
"""

from __future__ import annotations

import re
from enum import StrEnum

import yaml

from autoscaler.api.document import API_VERSION
from autoscaler.api.inference_scaler import KIND, InferenceScaler
from autoscaler.controller.published_metrics import DESIRED_REPLICAS
from autoscaler.external_metrics.values import SCALER_LABEL

_LABEL_VALUE = re.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")

_HEADER = """\
# The HPA that writes the count which Tokenscaler decides for {namespace}/{name} (mode: ExternalMetric).
# It adds no delay of its own but its sync period (15 s, a flag of kube-controller-manager): no stabilization, no rate
# limit that binds, and no tolerance; all three are in the InferenceScaler's behavior already. `tolerance` needs
# Kubernetes 1.35 or later: where it is dropped, counts that differ by less than 10 % are not followed.
"""
_ZERO = "# minReplicas 0 needs Kubernetes 1.37 or later, or the feature gate HPAScaleToZero.\n"


class MetricSourceType(StrEnum):
    """Where the HPA reads the count: external.metrics.k8s.io or custom.metrics.k8s.io."""

    EXTERNAL = "External"
    OBJECT = "Object"


def hpa_manifest(scaler: InferenceScaler, source_type: MetricSourceType = MetricSourceType.EXTERNAL) -> str | None:
    """The manifest as YAML, with what to know of it on top; None where the name is too long to be selected by."""
    if source_type is MetricSourceType.EXTERNAL and not _LABEL_VALUE.fullmatch(scaler.name):
        return None
    header = _HEADER.format(namespace=scaler.namespace, name=scaler.name)
    if scaler.spec.min_replicas == 0:
        header += _ZERO
    return header + yaml.safe_dump(hpa_document(scaler, source_type), sort_keys=False, width=120)


def hpa_document(
    scaler: InferenceScaler, source_type: MetricSourceType = MetricSourceType.EXTERNAL
) -> dict[str, object]:
    """The HorizontalPodAutoscaler; named like the InferenceScaler."""
    spec, target = scaler.spec, scaler.spec.first_target_ref
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": scaler.name, "namespace": scaler.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": target.name},
            "minReplicas": spec.min_replicas,
            "maxReplicas": spec.max_replicas,
            "metrics": [_metric(scaler, source_type)],
            "behavior": {
                "scaleUp": {
                    "stabilizationWindowSeconds": 0,
                    "tolerance": "0",
                    # From zero a percentage would lead nowhere, so pods: all of them at once.
                    "policies": [{"type": "Pods", "value": spec.max_replicas, "periodSeconds": 1}],
                },
                "scaleDown": {
                    "stabilizationWindowSeconds": 0,
                    "tolerance": "0",
                    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
                },
            },
        },
    }


def _metric(scaler: InferenceScaler, source_type: MetricSourceType) -> dict[str, object]:
    target = {"type": "AverageValue", "averageValue": "1"}
    if source_type is MetricSourceType.EXTERNAL:
        metric: dict[str, object] = {"name": DESIRED_REPLICAS, "selector": {"matchLabels": {SCALER_LABEL: scaler.name}}}
        return {"type": "External", "external": {"metric": metric, "target": target}}
    described = {"apiVersion": API_VERSION, "kind": KIND, "name": scaler.name}
    return {
        "type": "Object",
        "object": {"describedObject": described, "metric": {"name": DESIRED_REPLICAS}, "target": target},
    }
