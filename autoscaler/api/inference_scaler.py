"""The InferenceScaler: one model pool and how it is to be scaled."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import Field

from policies.parameter_model import ParameterModel
from policies.parameters import ScalingParameters


class EngineName(StrEnum):
    """Which inference server runs in the pool's pods; the key of `autoscaler.engines.ENGINES`."""

    VLLM = "vllm"
    TENSORRT_LLM = "tensorrt-llm"
    TRITON_TENSORRT_LLM = "triton-tensorrt-llm"
    SGLANG = "sglang"
    CUSTOM = "custom"


class ScaleTargetRef(ParameterModel):
    """An object with a scale subresource, in the InferenceScaler's own namespace."""

    api_version: str = Field(min_length=1)
    kind: str = Field(min_length=1)
    name: str = Field(min_length=1)


class InferenceScalerSpec(ScalingParameters):
    """What a user wishes for one pool: which pods, which engine, and the scaling parameters."""

    scale_target_ref: ScaleTargetRef
    engine: EngineName


@dataclass(frozen=True, slots=True)
class InferenceScaler:
    """An accepted InferenceScaler. `status` is the document's own status as last read (may be empty)."""

    namespace: str
    name: str
    uid: str
    generation: int
    created_at_seconds: float
    spec: InferenceScalerSpec
    status: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class InvalidInferenceScaler:
    """A document that is no valid InferenceScaler: what is wrong, one sentence a problem, each with its field."""

    namespace: str
    name: str
    generation: int
    problems: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return (self.namespace, self.name)
