"""Policies for the tests of tuning, as documents and as they are read."""

from __future__ import annotations

from typing import Any

from autoscaler.api.inference_scaler import InferenceScaler, parse_inference_scaler


def a_policy_document(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "tokenscaler.io/v1alpha1",
        "kind": "InferenceScaler",
        "metadata": {"name": "chat"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm-chat"},
            "engine": "vllm",
            "maxReplicas": 8,
            **spec,
        },
    }


def a_scaler(**spec: Any) -> InferenceScaler:
    scaler = parse_inference_scaler(a_policy_document(**spec))
    assert isinstance(scaler, InferenceScaler)
    return scaler
