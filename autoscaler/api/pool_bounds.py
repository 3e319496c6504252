"""What bounds the nodes of an AcceleratorPool: shares of on demand and spot, ceilings, and what a node costs."""

from __future__ import annotations

from decimal import Decimal
from typing import ClassVar, Self

from pydantic import Field, model_validator

from policies.capacity_split import fewest_nodes_with_spot
from policies.dollar_sharing import NodeCost
from policies.node_capacity import MICRO_DOLLARS, DollarCeiling
from policies.parameter_model import CelRule, ParameterModel

DOLLARS_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"


def micro_dollars(amount: str) -> int:
    """Millionths of a dollar: "55.04" is 55 040 000. Exact, as such amounts have six decimals at most."""
    return int(Decimal(amount) * MICRO_DOLLARS)


class CapacitySplit(ParameterModel):
    """How much of the nodes that replicas need must be on demand. One of the two; exact in whole nodes."""

    on_demand_floor_percent: int | None = Field(
        default=None,
        ge=0,
        le=99,
        description="At least so many percent of the nodes on demand, rounded up. Without spot: leave split out.",
    )
    spot_cap_percent: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="At most so many percent of the nodes on spot, rounded down: 30 % of three nodes is none.",
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.onDemandFloorPercent) != has(self.spotCapPercent)",
            "split needs one of onDemandFloorPercent and spotCapPercent",
        ),
    )

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        if (self.on_demand_floor_percent is None) == (self.spot_cap_percent is None):
            raise ValueError("split needs one of onDemandFloorPercent and spotCapPercent")
        return self

    @property
    def floor_percent(self) -> int:
        """The least share on demand, whichever way it was said."""
        if self.on_demand_floor_percent is not None:
            return self.on_demand_floor_percent
        return 100 - (self.spot_cap_percent or 0)

    def infeasible_within(self, nodes: int) -> str | None:
        """Why not one whole spot node is possible among so many nodes, with the arithmetic; None where one is."""
        floor, fewest = self.floor_percent, fewest_nodes_with_spot(self.floor_percent)
        if fewest is None or nodes >= fewest:
            return None
        return (
            f"{100 - floor} % on spot of {nodes} nodes is {nodes * (100 - floor) / 100:g}, and nodes are whole: "
            f"spot is possible from {fewest} nodes on ({100 - floor} % of {fewest} is "
            f"{fewest * (100 - floor) / 100:g}). Raise the ceiling, change the share, or leave spot and split out"
        )


class NodePrices(ParameterModel):
    """What a node costs an hour; prices come from you, none are built in."""

    on_demand: str = Field(
        max_length=16, pattern=DOLLARS_PATTERN, description='Dollars an hour of a node on demand, such as "55.04".'
    )
    spot: str | None = Field(
        default=None,
        max_length=16,
        pattern=DOLLARS_PATTERN,
        description="Dollars an hour of a spot node; needed where there is a spot NodePool. State the most you pay.",
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("double(self.onDemand) > 0.0", "onDemand must be above 0", ".onDemand"),
        CelRule("!has(self.spot) || double(self.spot) > 0.0", "spot must be above 0", ".spot"),
    )

    @property
    def node_cost(self) -> NodeCost:
        """In millionths of a dollar. Spot without a price costs the same."""
        on_demand = micro_dollars(self.on_demand)
        return NodeCost(on_demand, on_demand if self.spot is None else micro_dollars(self.spot))

    @model_validator(mode="after")
    def _check_positive(self) -> Self:
        if micro_dollars(self.on_demand) == 0 or (self.spot is not None and micro_dollars(self.spot) == 0):
            raise ValueError("a node costs more than 0 dollars an hour")
        return self


class AcceleratorCeilings(ParameterModel):
    """The most that the pool may have, whatever asks for more. Nodes that are being deleted count: they cost, too."""

    accelerators: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Most accelerators of all its nodes; whole nodes are counted, the rest is lost.",
    )
    dollars_per_hour: str | None = Field(
        default=None,
        max_length=16,
        pattern=DOLLARS_PATTERN,
        description='Most dollars an hour of all its nodes, such as "3000", by nodeDollarsPerHour.',
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule(
            "has(self.accelerators) || has(self.dollarsPerHour)",
            "ceilings needs accelerators, dollarsPerHour or both",
        ),
    )

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if self.accelerators is None and self.dollars_per_hour is None:
            raise ValueError("ceilings needs accelerators, dollarsPerHour or both")
        return self

    def dollar_ceiling(self, prices: NodePrices | None) -> DollarCeiling | None:
        """The ceiling in money as a plan takes it; None where there is none."""
        if self.dollars_per_hour is None or prices is None:
            return None
        return DollarCeiling(micro_dollars(self.dollars_per_hour), prices.node_cost)
