from __future__ import annotations

from typing import Any

import pytest
import yaml

from autoscaler.replay.autoscaler_manifests import Manifest, read_hpa, read_scaled_object
from autoscaler.replay.keda import CronTrigger, Fallback, FallbackBehavior, PrometheusTrigger, ScaledObject
from autoscaler.replay.stock_hpa import StockHPA
from policies.hpa.metric_proposal import Tolerance
from policies.hpa.metrics import TargetType

SCALED_OBJECT = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: agents, namespace: inference}
spec:
  scaleTargetRef: {name: vllm-agents}
  pollingInterval: 15
  minReplicaCount: 4
  maxReplicaCount: 96
  fallback: {failureThreshold: 3, replicas: 8, behavior: currentReplicasIfHigher}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        scaleUp:
          stabilizationWindowSeconds: 0
          tolerance: "0.05"
          policies: [{type: Percent, value: 100, periodSeconds: 30}]
        scaleDown: {stabilizationWindowSeconds: 600, policies: [{type: Pods, value: 4, periodSeconds: 60}]}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus:9090
        query: sum(rate(vllm:prompt_tokens_total[1m])) + sum(rate(vllm:generation_tokens_total[1m]))
        threshold: "180000"
    - type: cron
      metadata: {timezone: America/New_York, start: 30 7 * * 1-5, end: 0 19 * * 1-5, desiredReplicas: "24"}
"""
HPA = """
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat, namespace: inference}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-chat}
  minReplicas: 2
  maxReplicas: 12
  metrics:
    - type: External
      external: {metric: {name: "vllm:num_requests_waiting"}, target: {type: AverageValue, averageValue: 4500m}}
    - type: Pods
      pods: {metric: {name: vllm_generation_tokens_per_second}, target: {type: AverageValue, averageValue: 2k}}
"""


def content(text: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(text)
    return document


def test_a_scaled_object_is_read_with_everything_that_can_be_replayed() -> None:
    manifest = read_scaled_object(content(SCALED_OBJECT))
    assert isinstance(manifest, Manifest)
    policy = manifest.policy
    assert isinstance(policy, ScaledObject)
    assert (manifest.name, manifest.namespace, manifest.target_name) == ("agents", "inference", "vllm-agents")
    assert (policy.minimum, policy.maximum, policy.polling_seconds, policy.cooldown_seconds) == (4, 96, 15.0, 300.0)
    assert policy.fallback == Fallback(3, 8, FallbackBehavior.CURRENT_IF_HIGHER)
    assert policy.tolerance == Tolerance(0.05, 0.1)
    assert policy.behavior is not None
    assert policy.behavior.scale_down.stabilization_window_seconds == 600
    rate, cron = policy.triggers
    assert isinstance(rate, PrometheusTrigger)
    assert (rate.target, rate.target_type, rate.ignores_nulls) == (180_000.0, TargetType.AVERAGE_VALUE, True)
    assert isinstance(cron, CronTrigger)
    assert (cron.replicas, cron.target) == (24, 1.0)
    assert manifest.assumptions == ()


def test_an_hpa_is_read_with_quantities_and_without_behavior() -> None:
    manifest = read_hpa(content(HPA))
    assert isinstance(manifest, Manifest)
    policy = manifest.policy
    assert isinstance(policy, StockHPA)
    assert (policy.minimum, policy.maximum, policy.behavior, policy.tolerance) == (2, 12, None, Tolerance(0.1, 0.1))
    assert [metric.target for metric in policy.metrics] == [4.5, 2000.0]  # type: ignore[attr-defined]
    assert manifest.assumptions[0] == "chat: vllm:num_requests_waiting is read from the pool's own replicas"


def test_a_metric_that_no_replica_has_is_a_named_assumption() -> None:
    manifest = read_scaled_object(
        content(SCALED_OBJECT.replace("vllm:generation_tokens_total", "gateway_tokens_total"))
    )
    assert isinstance(manifest, Manifest)
    assert manifest.assumptions == (
        "agents: gateway_tokens_total is no metric of a simulated replica, so it has no series",
    )


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        pytest.param("type: cron", "type: kafka", "spec.triggers[1].type: kafka triggers are not replayed", id="kafka"),
        pytest.param(
            'threshold: "180000"', "x: y", "spec.triggers[0].metadata.threshold: is missing", id="no threshold"
        ),
        pytest.param(
            '"180000"', '"a lot"', "spec.triggers[0].metadata.threshold: 'a lot' is no number", id="no number"
        ),
        pytest.param(
            "sum(rate(vllm:prompt_tokens_total[1m]))",
            "predict_linear(x[1m], 5)",
            "spec.triggers[0].metadata.query: PromQL is not understood from 'predict_linear'",
            id="PromQL beyond the reader",
        ),
        pytest.param(
            "America/New_York", "New_York", "spec.triggers[1].metadata.timezone: 'New_York' is no IANA", id="no zone"
        ),
        pytest.param(
            "behavior: currentReplicasIfHigher", "behavior: x", "spec.fallback.behavior: x is not", id="fallback"
        ),
        pytest.param("minReplicaCount: 4", "minReplicaCount: 97", "97 is above maxReplicaCount 96", id="bounds"),
        pytest.param("{name: vllm-agents}", "{}", "spec.scaleTargetRef.name: is missing", id="no target"),
        pytest.param(
            "advanced:",
            "advanced:\n    scalingModifiers: {formula: a}",
            "spec.advanced.scalingModifiers: formulas are not replayed",
            id="a formula",
        ),
        pytest.param(
            "stabilizationWindowSeconds: 600",
            "stabilizationWindowSecond: 600",
            "behavior.scaleDown.stabilizationWindowSecond is not a known field; did you mean",
            id="a misspelt field of behavior",
        ),
    ],
)
def test_what_cannot_be_replayed_of_a_scaled_object_is_refused(before: str, after: str, problem: str) -> None:
    assert before in SCALED_OBJECT
    refused = read_scaled_object(content(SCALED_OBJECT.replace(before, after)))
    assert isinstance(refused, tuple)
    assert any(problem in each for each in refused), refused


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        pytest.param(
            "type: Pods", "type: Resource", "spec.metrics[1].type: Resource metrics are not replayed", id="cpu"
        ),
        pytest.param(
            '"vllm:num_requests_waiting"',
            "queue_length",
            "spec.metrics[0].external.metric.name: 'queue_length' is no metric of an engine",
            id="a metric of something else",
        ),
        pytest.param("maxReplicas: 12", "x: 1", "spec.maxReplicas: is missing", id="no maximum"),
        pytest.param("autoscaling/v2", "autoscaling/v1", "apiVersion: is autoscaling/v1", id="another version"),
        pytest.param(
            "averageValue: 2k", "averageValue: 0", "averageValue: more than 0 is wanted", id="a target of nothing"
        ),
    ],
)
def test_what_cannot_be_replayed_of_an_hpa_is_refused(before: str, after: str, problem: str) -> None:
    assert before in HPA
    refused = read_hpa(content(HPA.replace(before, after)))
    assert isinstance(refused, tuple)
    assert any(problem in each for each in refused), refused
