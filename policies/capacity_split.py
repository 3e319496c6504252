"""How much is on demand and how much on spot, in whole nodes and whole replicas, and in which order does it change?

A floor of 20 % on demand is a cap of 80 % on spot, and a cap of 30 % on spot a floor of 70 %. It holds for what is
there, at every moment: on demand grows first and shrinks last. All of it in integers: `floor((1 - 0.8) * 5)` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from policies.reasons import Reason
from policies.wording import counted

_HUNDRED = 100


class CapacityType(StrEnum):
    """What kind of capacity a NodePool buys, in Karpenter's words."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"

    @property
    def other(self) -> CapacityType:
        """The other of the two kinds."""
        return CapacityType.ON_DEMAND if self is CapacityType.SPOT else CapacityType.SPOT


@dataclass(frozen=True, slots=True)
class TargetCounts:
    """One of two targets: the replicas asked for, those that serve, and those that exist and have their node."""

    spec: int
    ready: int
    placed: int


@dataclass(frozen=True, slots=True)
class SplitRule:
    """What binds a split: the floor, the replicas that share a node, and what the nodes allow at this moment.

    `on_demand_nodes_held` are the on-demand nodes that these replicas must go on to fill, so that the spot nodes which
    still stand (empty ones too) do not break the floor.
    """

    on_demand_floor_percent: int
    replicas_per_node: int = 1
    can_buy_spot: bool = True
    on_demand_nodes_held: int = 0


@dataclass(frozen=True, slots=True)
class ReplicaSplit:
    """The counts of the two targets, and why they are not just the shares of the whole."""

    on_demand: int
    spot: int
    reason: Reason
    message: str

    @property
    def replicas(self) -> int:
        """Both together."""
        return self.on_demand + self.spot


def split_nodes(nodes: int, on_demand_floor_percent: int) -> tuple[int, int]:
    """Whole nodes on demand and on spot: at least so many percent on demand. 20 % of 6 is 2 and 4. Integers only."""
    on_demand = -(-nodes * on_demand_floor_percent // _HUNDRED)
    return on_demand, nodes - on_demand


def spot_beside(on_demand: int, on_demand_floor_percent: int) -> int | None:
    """The most spot nodes that so many on-demand nodes allow: 4 beside 1 at 20 %. None: any number (no floor)."""
    if on_demand_floor_percent == 0:
        return None
    return on_demand * (_HUNDRED - on_demand_floor_percent) // on_demand_floor_percent


def on_demand_beside(spot: int, on_demand_floor_percent: int) -> int:
    """The fewest on-demand nodes that so many spot nodes need: 2 beside 8 at 20 %. At 100 % there may be no spot."""
    if on_demand_floor_percent == _HUNDRED:
        return 0  # what is on spot nevertheless needs no company: it has to go
    return -(-spot * on_demand_floor_percent // (_HUNDRED - on_demand_floor_percent))


def is_split_kept(on_demand: int, spot: int, on_demand_floor_percent: int) -> bool:
    """Whether so many nodes keep the floor; without any node it is kept."""
    return on_demand * _HUNDRED >= (on_demand + spot) * on_demand_floor_percent


def fewest_nodes_with_spot(on_demand_floor_percent: int) -> int | None:
    """The fewest nodes of which one may be spot: 4 at a cap of 30 %. None: there is no such number."""
    spot = _HUNDRED - on_demand_floor_percent
    return -(-_HUNDRED // spot) if spot else None


def split_replicas(replicas: int, on_demand: TargetCounts, spot: TargetCounts, rule: SplitRule) -> ReplicaSplit:
    """The counts of two targets that together are to have so many replicas.

    The shares hold in replicas and in the nodes that these take. Where spot cannot be bought, only what has its node
    stays there and the rest is on demand. Back from that, spot grows by a node, then by as many replicas as serve
    there, and on demand shrinks as far as spot serves. Spot too shrinks only as far as on demand serves, as where the
    floor was raised. On demand shrinks no further than the spot nodes that still stand allow: so for a while both
    together may be more than was asked for, and never fewer.
    """
    share = _spot_share(replicas, rule)
    reason, message = Reason.SPLIT_KEPT, ""
    on_spot = share
    if not rule.can_buy_spot:
        on_spot = min(share, spot.placed)
        if on_spot < share:
            reason = Reason.SPOT_UNAVAILABLE
            message = f"spot cannot be had: {share - on_spot} of its {share} are on demand"
    elif on_demand.spec > replicas - share and spot.ready < share:
        on_spot = min(share, spot.ready + max(rule.replicas_per_node, spot.ready))
        reason = Reason.RETURNING_TO_SPOT
        message = (
            f"{spot.ready} of {counted(share, 'replica')} serve on spot, {on_spot - spot.ready} more are asked for"
        )
    kept = max(replicas - on_spot, min(on_demand.spec, replicas - spot.ready), 0)
    serving_on_spot = min(spot.ready, replicas - on_demand.ready)
    if serving_on_spot > on_spot:
        reason = Reason.ON_DEMAND_FLOOR
        message = f"{serving_on_spot} on spot instead of {on_spot}, until {kept} serve on demand"
        on_spot = serving_on_spot
    # So many replicas fill that many nodes however they are placed: one more than the nodes before the last can hold.
    filling = max(0, (rule.on_demand_nodes_held - 1) * rule.replicas_per_node + 1) if rule.on_demand_nodes_held else 0
    held = max(kept, min(on_demand.spec, filling))
    if held > kept:
        reason = Reason.ON_DEMAND_FLOOR
        message = (
            f"{held} on demand instead of {kept}: the spot nodes that still stand need them for "
            f"{rule.on_demand_floor_percent} % on demand"
        )
    return ReplicaSplit(held, on_spot, reason, message)


def _spot_share(replicas: int, rule: SplitRule) -> int:
    """The most replicas on spot by which the floor holds in replicas and in the nodes that they take."""
    spot = split_nodes(replicas, rule.on_demand_floor_percent)[1]
    each = rule.replicas_per_node
    while spot and not is_split_kept(-(-(replicas - spot) // each), -(-spot // each), rule.on_demand_floor_percent):
        spot -= 1
    return spot
