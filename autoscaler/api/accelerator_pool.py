"""The AcceleratorPool: nodes that share hardware, behind one or more InferenceScalers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from autoscaler.api.accelerators import RESOURCE_NAME
from autoscaler.api.conditions import CONDITION_LIST, Condition
from autoscaler.api.document import RefusedObject, parse_object
from autoscaler.api.node_shape import QUANTITY_PATTERN, NodeShape
from autoscaler.api.pool_bounds import AcceleratorCeilings, CapacitySplit, NodePrices, micro_dollars
from autoscaler.api.prewarm import Prewarm
from policies.latency_class import LatencyClass
from policies.node_capacity import NodeCapacityParameters
from policies.parameter_model import CelRule, ParameterModel

KIND = "AcceleratorPool"

# A NodePool's name is the value of a node label, and label values have at most 63 characters.
_NODE_POOL_NAME = "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"


class AcceleratorPoolMode(StrEnum):
    """What is done to the node pools: they are counted, or their limits are kept in step with the replicas too."""

    OBSERVE = "Observe"
    MANAGE = "Manage"


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


class NodeShapeSpec(ParameterModel):
    """The whole capacity of one node, as the cloud provider states it; limits are compared with that."""

    accelerators: int = Field(ge=1, le=1024, description="nvidia.com/gpu of a node, such as 8 of a p5.48xlarge.")
    cpu: int | None = Field(
        default=None, ge=1, le=100_000, description="CPUs of a node, such as 192. Needed where the NodePool limits cpu."
    )
    memory: str | None = Field(
        default=None,
        max_length=32,
        pattern=QUANTITY_PATTERN,
        description="Memory of a node, such as 2048Gi. Needed where the NodePool limits memory.",
    )
    ephemeral_storage: str | None = Field(
        default=None,
        max_length=32,
        pattern=QUANTITY_PATTERN,
        description="Disk of a node, such as 1Ti. Needed where the NodePool limits ephemeral-storage.",
    )

    @property
    def shape(self) -> NodeShape:
        """The same under the names that limits have."""
        stated = {
            RESOURCE_NAME: str(self.accelerators),
            "cpu": None if self.cpu is None else str(self.cpu),
            "memory": self.memory,
            "ephemeral-storage": self.ephemeral_storage,
        }
        return NodeShape({key: quantity for key, quantity in stated.items() if quantity is not None})


class AcceleratorPoolSpec(ParameterModel):
    """Which nodes make up the pool, and how their limits follow the replicas."""

    mode: AcceleratorPoolMode = Field(
        default=AcceleratorPoolMode.OBSERVE,
        description="Observe (default): nodes are counted, nothing is written. Manage: limits follow the replicas.",
    )
    latency_class: LatencyClass | None = Field(
        default=None,
        description=(
            "What the replicas serve, and so how long an empty node may stay: Interactive 30 minutes, Batch one. "
            "NodePools that say otherwise are told of in the condition ConsolidationFits. Default: not judged."
        ),
    )
    manage_disruption: bool = Field(
        default=False,
        description=(
            "False (default): only limits are written. True: the NodePools' disruption budgets are closed while the "
            "pool grows (kept in an annotation, and opened again), and consolidation is set as latencyClass wants it."
        ),
    )
    node_pools: NodePools
    node_shape: NodeShapeSpec | None = Field(default=None, description="Needed in mode Manage.")
    slack_nodes: int = Field(
        default=1,
        ge=0,
        le=1000,
        description=(
            "Nodes that the on-demand limit leaves to spare, so that a node that drifts or is lost can be replaced "
            "before it has gone. Default 1."
        ),
    )
    prewarm: Prewarm | None = Field(
        default=None, description="Nodes that stand ready before replicas are asked for (mode Manage)."
    )
    split: CapacitySplit | None = Field(
        default=None, description="Shares of on demand and spot. Left out: spot is not used for replicas."
    )
    ceilings: AcceleratorCeilings | None = Field(default=None, description="Default: no ceiling.")
    node_dollars_per_hour: NodePrices | None = Field(
        default=None, description="Needed with ceilings.dollarsPerHour; without it money is not counted."
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "!has(self.manageDisruption) || !self.manageDisruption || self.mode == 'Manage'",
            "manageDisruption needs mode Manage",
            ".manageDisruption",
        ),
        CelRule("self.mode != 'Manage' || has(self.nodeShape)", "mode Manage needs nodeShape", ".nodeShape"),
        CelRule(
            "!has(self.split) || has(self.nodePools.spot)",
            "split needs nodePools.spot",
            ".split",
        ),
        CelRule(
            "!has(self.ceilings) || !has(self.ceilings.accelerators) || !has(self.nodeShape) || "
            "self.ceilings.accelerators >= self.nodeShape.accelerators",
            "ceilings.accelerators must hold one node at least",
            ".ceilings",
        ),
        CelRule(
            "!has(self.split) || !has(self.ceilings) || !has(self.ceilings.accelerators) || !has(self.nodeShape) || "
            "(self.ceilings.accelerators / self.nodeShape.accelerators) * (has(self.split.spotCapPercent) ? "
            "self.split.spotCapPercent : 100 - self.split.onDemandFloorPercent) >= 100",
            "split leaves spot not one whole node below ceilings.accelerators: nodes times percent on spot / 100 "
            "must be 1 at least",
            ".split",
        ),
        CelRule(
            "!has(self.ceilings) || !has(self.ceilings.dollarsPerHour) || has(self.nodeDollarsPerHour)",
            "ceilings.dollarsPerHour needs nodeDollarsPerHour",
            ".ceilings",
        ),
        CelRule(
            "!has(self.nodeDollarsPerHour) || has(self.nodeDollarsPerHour.spot) == has(self.nodePools.spot)",
            "nodeDollarsPerHour.spot and nodePools.spot go together",
            ".nodeDollarsPerHour",
        ),
        CelRule(
            "!has(self.ceilings) || !has(self.ceilings.dollarsPerHour) || !has(self.nodeDollarsPerHour) || "
            "double(self.ceilings.dollarsPerHour) >= double(self.nodeDollarsPerHour.onDemand)",
            "ceilings.dollarsPerHour must pay for one node on demand",
            ".ceilings",
        ),
    )

    @model_validator(mode="after")
    def _check_management(self) -> Self:
        if self.manage_disruption and self.mode is not AcceleratorPoolMode.MANAGE:
            raise ValueError("manageDisruption needs mode Manage")
        if self.mode is AcceleratorPoolMode.MANAGE and self.node_shape is None:
            raise ValueError("mode Manage needs nodeShape")
        if self.split is not None and self.node_pools.spot is None:
            raise ValueError("split needs nodePools.spot")
        return self

    @model_validator(mode="after")
    def _check_ceilings(self) -> Self:
        ceiling = None if self.ceilings is None else self.ceilings.accelerators
        if ceiling is None or self.node_shape is None:
            return self
        each = self.node_shape.accelerators
        if ceiling < each:
            raise ValueError(
                f"ceilings.accelerators {ceiling} does not hold one node of {each}; limits work in whole nodes"
            )
        infeasible = None if self.split is None else self.split.infeasible_within(ceiling // each)
        if infeasible is not None:
            raise ValueError(f"split and ceilings.accelerators {ceiling} with {each} a node: {infeasible}")
        return self

    @model_validator(mode="after")
    def _check_dollars(self) -> Self:
        dollars = None if self.ceilings is None else self.ceilings.dollars_per_hour
        prices = self.node_dollars_per_hour
        if prices is not None and (prices.spot is None) != (self.node_pools.spot is None):
            raise ValueError("nodeDollarsPerHour.spot and nodePools.spot go together")
        if dollars is None:
            return self
        if prices is None:
            raise ValueError("ceilings.dollarsPerHour needs nodeDollarsPerHour")
        if micro_dollars(dollars) < micro_dollars(prices.on_demand):
            raise ValueError(
                f"ceilings.dollarsPerHour {dollars} does not pay for one node on demand at {prices.on_demand} an hour"
            )
        return self

    def capacity_parameters(self) -> NodeCapacityParameters | None:
        """What the plan goes by; None where nothing is managed."""
        if self.mode is not AcceleratorPoolMode.MANAGE or self.node_shape is None:
            return None
        each = self.node_shape.accelerators
        accelerators = None if self.ceilings is None else self.ceilings.accelerators
        return NodeCapacityParameters(
            accelerators_per_node=each,
            slack_nodes=self.slack_nodes,
            ceiling_nodes=None if accelerators is None else accelerators // each,
            on_demand_floor_percent=self.on_demand_floor_percent,
            dollar_ceiling=None if self.ceilings is None else self.ceilings.dollar_ceiling(self.node_dollars_per_hour),
        )

    @property
    def held_ready(self) -> Prewarm | None:
        """How nodes are held ready, with the spare ones filled in; None where none are, or nothing is managed."""
        if self.prewarm is None or not self.prewarm.holds_nodes or self.mode is not AcceleratorPoolMode.MANAGE:
            return None
        if self.prewarm.spare_nodes is not None:
            return self.prewarm
        spare_nodes = 1 if self.latency_class is LatencyClass.INTERACTIVE else 0
        return self.prewarm.model_copy(update={"spare_nodes": spare_nodes})

    @property
    def on_demand_floor_percent(self) -> int:
        """The least share of nodes on demand; 100 where spot is not used for replicas."""
        return 100 if self.split is None else self.split.floor_percent


class AcceleratorPoolStatus(ParameterModel):
    """What is there and what the InferenceScalers that refer to the pool want."""

    observed_generation: int = Field(default=0, ge=0, description="Generation of the spec that was judged.")
    nodes: int | None = Field(default=None, ge=0, description="Nodes of the pool that are Ready.")
    on_demand_nodes: int | None = Field(
        default=None, ge=0, description="Nodes on demand that are there and not being deleted, Ready or not."
    )
    spot_nodes: int | None = Field(
        default=None, ge=0, description="Spot nodes that are there and not being deleted, Ready or not."
    )
    accelerators_present: int | None = Field(
        default=None, ge=0, description="Allocatable nvidia.com/gpu on nodes that are Ready."
    )
    accelerators_wanted: int | None = Field(
        default=None, ge=0, description="Desired replicas times accelerators of a replica, over all scalers counted."
    )
    scalers: int | None = Field(default=None, ge=0, description="InferenceScalers that refer to the pool.")
    nodes_needed: int | None = Field(default=None, ge=0, description="Nodes that all replicas take (mode Manage).")
    limit_nodes: int | None = Field(
        default=None, ge=0, description="Nodes that the limits of the NodePools are to allow (mode Manage)."
    )
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
