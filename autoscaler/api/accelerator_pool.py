"""The AcceleratorPool: nodes that share hardware, behind one or more InferenceScalers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from autoscaler.api.conditions import CONDITION_LIST, Condition
from autoscaler.api.document import RefusedObject, parse_object
from policies.parameter_model import CelRule, ParameterModel

KIND = "AcceleratorPool"

# A NodePool's name is the value of a node label, and label values have at most 63 characters.
_NODE_POOL_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class AcceleratorPoolMode(StrEnum):
    """What is done to the node pools: nothing; they are counted."""

    OBSERVE = "Observe"


class NodePools(ParameterModel):
    """Karpenter NodePools by capacity type; a node belongs to one by its label karpenter.sh/nodepool."""

    on_demand: str = Field(
        min_length=1,
        max_length=63,
        pattern=_NODE_POOL_NAME,
        description="Name of the NodePool with on-demand nodes: lower case letters, digits, dashes and dots.",
    )
    spot: str | None = Field(
        default=None,
        min_length=1,
        max_length=63,
        pattern=_NODE_POOL_NAME,
        description="Name of the NodePool with spot nodes: lower case letters, digits, dashes and dots. Default none.",
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("!has(self.spot) || self.spot != self.onDemand", "spot must not be the same as onDemand", ".spot"),
    )

    @model_validator(mode="after")
    def _check_different(self) -> Self:
        if self.spot == self.on_demand:
            raise ValueError(
                f"spot and onDemand are the same NodePool {self.spot!r}; leave spot out where there is one"
            )
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The one or two NodePools."""
        return (self.on_demand,) if self.spot is None else (self.on_demand, self.spot)


class AcceleratorPoolSpec(ParameterModel):
    """Which nodes make up the pool."""

    mode: AcceleratorPoolMode = Field(
        default=AcceleratorPoolMode.OBSERVE, description="Observe (default): nodes are counted, nothing is written."
    )
    node_pools: NodePools


class AcceleratorPoolStatus(ParameterModel):
    """What is there and what the InferenceScalers that refer to the pool want."""

    observed_generation: int = Field(default=0, ge=0, description="Generation of the spec that was judged.")
    nodes: int | None = Field(default=None, ge=0, description="Nodes of the pool that are Ready.")
    accelerators_present: int | None = Field(
        default=None, ge=0, description="Allocatable nvidia.com/gpu on nodes that are Ready."
    )
    accelerators_wanted: int | None = Field(
        default=None, ge=0, description="Desired replicas times accelerators of a replica, over all scalers counted."
    )
    scalers: int | None = Field(default=None, ge=0, description="InferenceScalers that refer to the pool.")
    conditions: tuple[Condition, ...] = Field(default=(), max_length=16, json_schema_extra=CONDITION_LIST)


@dataclass(frozen=True, slots=True)
class AcceleratorPool:
    """An accepted AcceleratorPool. `status` is the document's own status as last read (may be empty)."""

    name: str
    uid: str
    generation: int
    spec: AcceleratorPoolSpec
    status: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InvalidAcceleratorPool:
    """A document that is no valid AcceleratorPool: what is wrong, one sentence a problem, each with its field."""

    name: str
    uid: str
    generation: int
    problems: tuple[str, ...]
    status: dict[str, Any] = field(default_factory=dict)


def parse_accelerator_pool(document: Mapping[str, Any]) -> AcceleratorPool | InvalidAcceleratorPool:
    """A document from the API server or from a file; never raises."""
    parsed = parse_object(document, KIND, AcceleratorPoolSpec, is_namespaced=False)
    meta = parsed.meta
    if isinstance(parsed, RefusedObject):
        return InvalidAcceleratorPool(meta.name, meta.uid, meta.generation, parsed.problems, parsed.status)
    return AcceleratorPool(meta.name, meta.uid, meta.generation, parsed.spec, parsed.status)
