"""How an AcceleratorPool holds nodes ready for replicas that will come."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from policies.parameter_model import CelRule, ParameterModel


class PrewarmMethod(StrEnum):
    """By replicas that come early (forecast and readyBy do that), or by what holds nodes and does nothing."""

    REPLICAS = "Replicas"
    PLACEHOLDER_PODS = "PlaceholderPods"
    CAPACITY_BUFFER = "CapacityBuffer"


class PlaceholderRef(ParameterModel):
    """A Deployment of pods that do nothing. It is yours: its count is set, and nothing else of it is changed."""

    namespace: str = Field(
        min_length=1,
        max_length=63,
        pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Namespace of the Deployment: lower case letters, digits and dashes.",
    )
    name: str = Field(
        min_length=1,
        max_length=253,
        pattern="^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        description="Name of the Deployment: lower case letters, digits, dashes and dots.",
    )


class Prewarm(ParameterModel):
    """Nodes that stand ready before replicas are asked for."""

    method: PrewarmMethod = Field(
        default=PrewarmMethod.REPLICAS,
        description=(
            "Replicas (default): nodes come with the replicas, which forecasts and schedules ask for early. "
            "PlaceholderPods: pods of low priority hold the nodes that are expected, and hand them over. "
            "CapacityBuffer: Karpenter keeps them ready by itself (1.14 and later, feature gate CapacityBuffer); the "
            "buffer is made in the controller's namespace."
        ),
    )
    placeholder_ref: PlaceholderRef | None = Field(
        default=None,
        description="Deployment of the placeholders, with a negative priority; needed with method PlaceholderPods.",
    )
    spare_nodes: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description=(
            "Nodes held ready at all times, for what nobody foresees. Default 1 with latencyClass Interactive, else 0; "
            "none with method Replicas."
        ),
    )
    lead_seconds: int = Field(
        default=300,
        ge=0,
        le=3600,
        description=(
            "How long a node takes until pods can run on it. So much earlier than replicas nodes are held ready. "
            "Default 300: GPU nodes boot in 2 to 5 minutes."
        ),
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "(self.method == 'PlaceholderPods') == has(self.placeholderRef)",
            "placeholderRef goes with method PlaceholderPods",
            ".placeholderRef",
        ),
        CelRule(
            "self.method != 'Replicas' || !has(self.spareNodes) || self.spareNodes == 0",
            "spareNodes needs method PlaceholderPods or CapacityBuffer",
            ".spareNodes",
        ),
    )

    @model_validator(mode="after")
    def _check_method(self) -> Self:
        if (self.method is PrewarmMethod.PLACEHOLDER_PODS) != (self.placeholder_ref is not None):
            raise ValueError("placeholderRef goes with method PlaceholderPods")
        if self.spare_nodes and not self.holds_nodes:
            raise ValueError("spareNodes needs method PlaceholderPods or CapacityBuffer")
        return self

    @property
    def holds_nodes(self) -> bool:
        """Whether nodes are held ready by something else than replicas."""
        return self.method is not PrewarmMethod.REPLICAS
