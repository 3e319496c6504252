"""What does a FLEET.yaml say about nodes, and what of it cannot be?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from autoscaler.api.accelerator_pool import NodeShapeSpec
from autoscaler.api.node_shape import QUANTITY_PATTERN, NodeShape, amount_of
from autoscaler.replay.cold_start import ColdStartPhase
from autoscaler.replay.node_setup import ListedLoss, NodeLosses, NodePoolSetup, NodesSetup, OutOfCapacity
from policies.capacity_split import CapacityType
from policies.parameter_model import ParameterModel

Quantity = Annotated[str, Field(pattern=QUANTITY_PATTERN, max_length=32)]


class ListedLossDescription(ParameterModel):
    """Nodes that are lost at one moment."""

    at_seconds: float = Field(ge=0, description="Second of the trace.")
    nodes: int = Field(default=1, ge=1, le=10_000, description="How many; those that are there the longest. Default 1.")


class LossesDescription(ParameterModel):
    """How often nodes are lost."""

    per_node_hour: float = Field(default=0.0, ge=0, le=60, description="Losses per node and hour, drawn by the seed.")
    listed: tuple[ListedLossDescription, ...] = Field(default=(), max_length=1000, description="And at these moments.")

    @property
    def losses(self) -> NodeLosses:
        """The same for a simulation."""
        return NodeLosses(self.per_node_hour, tuple(ListedLoss(each.at_seconds, each.nodes) for each in self.listed))


class OutOfCapacityDescription(ParameterModel):
    """A time in which the provider has no node of this kind."""

    at_seconds: float = Field(ge=0, description="Second of the trace at which it begins.")
    lasts_seconds: float = Field(gt=0, description="How long it lasts, in seconds.")


class NodePoolDescription(ParameterModel):
    """One Karpenter NodePool."""

    name: str = Field(min_length=1, max_length=63, description="As in the cluster, so that AcceleratorPools find it.")
    capacity_type: CapacityType = Field(description="on-demand or spot.")
    weight: int = Field(default=0, ge=0, le=100, description="The NodePool with the larger one makes nodes first.")
    limits: Mapping[str, Quantity] = Field(
        default_factory=dict,
        max_length=16,
        description="As they stand at the start, such as nvidia.com/gpu: '64'. Default: none.",
    )
    initial_nodes: int = Field(default=0, ge=0, le=10_000, description="Nodes that are there from the start.")
    consolidate_after_seconds: float = Field(
        default=0.0, ge=0, le=604_800, description="An empty node is given back after it. Default 0, as Karpenter's."
    )
    reclaims: LossesDescription = Field(default=LossesDescription(), description="Of spot, 120 s after their notice.")
    deaths: LossesDescription = Field(default=LossesDescription(), description="Nodes that die without any notice.")
    out_of_capacity: tuple[OutOfCapacityDescription, ...] = Field(
        default=(), max_length=1000, description="When there is no node to be had."
    )

    @property
    def setup(self) -> NodePoolSetup:
        """The same for a simulation."""
        return NodePoolSetup(
            name=self.name,
            capacity_type=self.capacity_type,
            weight=self.weight,
            limits=dict(self.limits),
            initial_nodes=self.initial_nodes,
            consolidate_after_seconds=self.consolidate_after_seconds,
            reclaims=self.reclaims.losses,
            deaths=self.deaths.losses,
            out_of_capacity=tuple(OutOfCapacity(each.at_seconds, each.lasts_seconds) for each in self.out_of_capacity),
        )


class PricesDescription(ParameterModel):
    """What an accelerator costs an hour, by the capacity type of its node."""

    on_demand: float | None = Field(default=None, ge=0, description="Needed where a NodePool is on-demand.")
    spot: float | None = Field(default=None, ge=0, description="Needed where a NodePool is spot.")

    def price(self, capacity_type: CapacityType) -> float | None:
        """The price; None where it is not stated."""
        return self.spot if capacity_type is CapacityType.SPOT else self.on_demand


class NodesDescription(ParameterModel):
    """The nodes under the replicas: whole ones are launched, given back, lost and paid for."""

    node_shape: NodeShapeSpec = Field(description="Whole capacity of a node; limits are compared with it.")
    dollars_per_accelerator_hour: PricesDescription = Field(description="By capacity type.")
    node_pools: tuple[NodePoolDescription, ...] = Field(min_length=1, max_length=16, description="At least one.")

    def setup(self, launch: ColdStartPhase) -> NodesSetup:
        """The same for a simulation. There must be no problems."""
        prices = self.dollars_per_accelerator_hour
        return NodesSetup(
            shape=self.node_shape.shape,
            launch=launch,
            node_pools=tuple(pool.setup for pool in self.node_pools),
            dollars_per_accelerator_hour={kind: prices.price(kind) or 0.0 for kind in CapacityType},
        )

    def problems(self) -> Iterator[str]:
        """What contradicts itself, a sentence each, which begins with the field and says what to do."""
        before: set[str] = set()
        shape = self.node_shape.shape
        for number, pool in enumerate(self.node_pools):
            place = f"nodes.nodePools[{number}]"
            kind = pool.capacity_type
            if pool.name in before:
                yield f"{place}.name: a NodePool before it is called {pool.name} too; give each a name of its own"
            before.add(pool.name)
            if self.dollars_per_accelerator_hour.price(kind) is None:
                field = "spot" if kind is CapacityType.SPOT else "onDemand"
                yield (
                    f"nodes.dollarsPerAcceleratorHour.{field} is missing, and NodePool {pool.name} is {kind.value}; "
                    "say what an accelerator costs there an hour"
                )
            if kind is CapacityType.ON_DEMAND and pool.reclaims != LossesDescription():
                yield f"{place}.reclaims: on-demand nodes are not reclaimed; use deaths, or capacityType: spot"
            yield from _problems_of_limits(f"{place}.limits", pool, shape)


def _problems_of_limits(place: str, pool: NodePoolDescription, shape: NodeShape) -> Iterator[str]:
    unknown = shape.unknown_keys(pool.limits)
    if unknown:
        yield (
            f"{place}: nodeShape does not say what a node has of {', '.join(unknown)}; add it there, or leave the "
            "limit out"
        )
        return
    nodes = shape.whole_nodes(pool.limits)
    if nodes == 0 and all(amount_of(limit) for limit in pool.limits.values()):
        yield (
            f"{place}: not even one node of {shape.accelerators} accelerators fits; limits work in whole nodes, and "
            "with every resource together"
        )
    elif nodes is not None and pool.initial_nodes > nodes:
        room = f"room for {nodes} nodes, and initialNodes is {pool.initial_nodes}"
        yield f"{place}: there is {room}; raise the limits or lower initialNodes"
