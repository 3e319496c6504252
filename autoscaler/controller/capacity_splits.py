"""Which counts do the two targets of a pool get, by the split of their AcceleratorPool?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.controller.replica_wish import ReplicaWish, demand_of
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.workload import TargetPart
from policies.capacity_split import CapacityType, ReplicaSplit, SplitRule, on_demand_beside, split_replicas
from policies.node_packing import NodeRoom


@dataclass(frozen=True, slots=True)
class SplitGround:
    """What an AcceleratorPool says of its split, and what is seen of its spot nodes (`spot_nodes` not being deleted).

    `room` is what replicas may have of a node; None: it is not said, and a replica is taken for a node.
    """

    on_demand_floor_percent: int
    room: NodeRoom | None
    can_buy_spot: bool
    spot_nodes: int


def splits_of(ground: SplitGround, wishes: Iterable[ReplicaWish]) -> Mapping[PoolKey, ReplicaSplit]:
    """The split of every pool with two targets. On-demand nodes that one goes on to fill another need not hold.

    A spot replica has its place also where a spot node stands (or boots) that nothing fills yet.
    """
    splits: dict[PoolKey, ReplicaSplit] = {}
    split_wishes = sorted((wish for wish in wishes if _can_be_split(wish)), key=lambda wish: wish.key)
    on_demand = {wish.key: _part(wish, CapacityType.ON_DEMAND).counts.spec for wish in split_wishes}
    needed = on_demand_beside(ground.spot_nodes, ground.on_demand_floor_percent)
    standing = _standing_on_spot(ground, split_wishes)
    for wish in split_wishes:
        by_others = _filled_at_least(ground, [other for other in split_wishes if other.key != wish.key], on_demand)
        split = _split(ground, wish, max(0, needed - by_others), standing[wish.key])
        splits[wish.key] = split
        if wish.will_be_written:
            on_demand[wish.key] = split.on_demand
    return splits


class SplitMemory:
    """For which count were the counts of two targets made? The last two answers, as a write is seen a tick later."""

    def __init__(self) -> None:
        self._made: dict[PoolKey, list[tuple[tuple[range, ...], int]]] = {}

    def note(self, wish: ReplicaWish, split: ReplicaSplit) -> None:
        """Remembers that what the wish asks for was made into these two counts.

        While shares change, a target that shrinks may stand anywhere on the way: its replicas end their requests first.
        Where fewer are asked for, those that do so are still the pool's: its count is what stands.
        """
        wanted = {CapacityType.ON_DEMAND: split.on_demand, CapacityType.SPOT: split.spot}
        is_shrinking = wish.desired < wish.current
        counts = tuple(_on_the_way(part.counts.spec, wanted[part.capacity_type], is_shrinking) for part in wish.parts)
        made = (counts, wish.desired)
        before = self._made.get(wish.key, [])
        if made not in before[:1]:
            self._made[wish.key] = [made, *before[:1]]

    def asked_for(self, key: PoolKey, parts: Sequence[TargetPart]) -> int | None:
        """The count that the parts as they stand were made for; None where they are not as we made them."""
        counts = [part.counts.spec for part in parts]
        for made, replicas in self._made.get(key, ()):
            if len(made) == len(counts) and all(count in each for count, each in zip(counts, made, strict=True)):
                return replicas
        return None

    def forget_all(self) -> None:
        """Somebody else has decided since."""
        self._made = {}


def _on_the_way(standing: int, wanted: int, is_shrinking: bool) -> range:
    """The counts at which a target may stand that is brought from one to the other."""
    most = wanted if is_shrinking else max(standing, wanted)
    return range(wanted, most + 1)


def _can_be_split(wish: ReplicaWish) -> bool:
    return bool(wish.parts) and wish.accelerators_per_replica is not None


def _part(wish: ReplicaWish, capacity_type: CapacityType) -> TargetPart:
    return next(part for part in wish.parts if part.capacity_type is capacity_type)


def _replicas_per_node(ground: SplitGround, wish: ReplicaWish) -> int:
    return 1 if ground.room is None else max(1, ground.room.replicas_of(demand_of(wish)))


def _standing_on_spot(ground: SplitGround, wishes: Sequence[ReplicaWish]) -> Mapping[PoolKey, int]:
    """The spot replicas of each pool that have a node, or will have one of those that are there."""
    spot = {wish.key: _part(wish, CapacityType.SPOT).counts for wish in wishes}
    filled = sum(-(-spot[wish.key].placed // _replicas_per_node(ground, wish)) for wish in wishes)
    free_nodes = max(0, ground.spot_nodes - filled)
    standing: dict[PoolKey, int] = {}
    for wish in wishes:
        counts, per_node = spot[wish.key], _replicas_per_node(ground, wish)
        waiting = max(0, counts.spec - counts.placed)
        nodes = min(free_nodes, -(-waiting // per_node))
        free_nodes -= nodes
        standing[wish.key] = counts.placed + min(waiting, nodes * per_node)
    return standing


def _split(ground: SplitGround, wish: ReplicaWish, nodes_held: int, standing_on_spot: int) -> ReplicaSplit:
    on_demand, spot = _part(wish, CapacityType.ON_DEMAND).counts, _part(wish, CapacityType.SPOT).counts
    spot = replace(spot, placed=standing_on_spot)
    rule = SplitRule(
        on_demand_floor_percent=ground.on_demand_floor_percent,
        replicas_per_node=_replicas_per_node(ground, wish),
        can_buy_spot=ground.can_buy_spot,
        on_demand_nodes_held=nodes_held,
    )
    split = split_replicas(wish.desired, on_demand, spot, rule)
    if wish.may_lower:
        return split
    return replace(split, on_demand=max(split.on_demand, on_demand.spec), spot=max(split.spot, spot.spec))


def _filled_at_least(ground: SplitGround, wishes: Sequence[ReplicaWish], on_demand: Mapping[PoolKey, int]) -> int:
    """The fewest nodes that the on-demand replicas of these pools fill, however they are placed."""
    if ground.room is None:
        return sum(on_demand[wish.key] for wish in wishes)
    each = max(1, ground.room.accelerators)
    whole_nodes, accelerators = 0, 0
    for wish in wishes:
        size = wish.accelerators_per_replica or 0
        if size >= each:
            whole_nodes += on_demand[wish.key] * -(-size // each)
        else:
            accelerators += on_demand[wish.key] * size
    return whole_nodes + accelerators // each
