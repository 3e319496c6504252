"""May one target's replicas go from nodes of one kind to the other, and how many more does it take meanwhile?

A pod that runs is never moved. What went on demand while spot could not be had, and what found room on spot when its
node on demand was lost, is moved a node at a time: as many replicas more as find their place on the other kind, and
then as many fewer on this one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.capacity_split import CapacityType, is_split_kept, spot_beside
from policies.victims import NodesOfSplit, PlacedReplica
from policies.wording import counted


@dataclass(frozen=True, slots=True)
class NodeMove:
    """What the nodes say of moving replicas to the other kind of them, as of the last look.

    `nodes_beyond_floor` are on the other kind though they should not be: on demand, where the floor would be kept with
    as many on spot; on spot, where those on demand do not allow them. 0: nothing is to be moved. `surge_replicas` is
    how many more must be asked for so that those of one such node serve where they should; 0: they cannot be moved now,
    and `because` says why; `waits`, where that passes by itself.
    """

    to: CapacityType
    can_buy: bool  # nodes of that kind
    replicas_there: int  # that serve there
    nodes_beyond_floor: int = 0
    surge_replicas: int = 0
    because: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class MoveGround:
    """What is known of the nodes behind one target. They are left for the kind that `to` names.

    `replicas_per_node` is how many replicas a node has room for, and `room` how many more the nodes have that are to be
    left, empty ones too. Of these there are `empty`, of which `held_ready` are to stay. `has_room_there` False: limits
    or ceilings leave none for one more node of the other kind.
    """

    to: CapacityType
    split: NodesOfSplit
    can_buy: bool
    replicas_per_node: int
    room: int = 0
    has_room_there: bool = True
    empty: int = 0
    held_ready: int = 0


def plan_move(replicas: Iterable[PlacedReplica], ground: MoveGround) -> NodeMove:
    """What it takes to move the replicas of one node: 1 of 1 a node, with one hole beside them 2.

    A replica more goes to any node with room. So what is asked for also fills the room on nodes of this kind, and what
    then goes leaves a node fewer of it however they were placed. Nodes with pods of others are not emptied; for a floor
    that is broken it is enough where one more comes on demand.
    """
    placed = tuple(replicas)
    to_spot = ground.to is CapacityType.SPOT
    there = sum(each.is_ready and each.is_on_spot == to_spot and not each.node_leaves for each in placed)
    nothing = NodeMove(ground.to, ground.can_buy, there)
    beyond = nodes_beyond_floor(ground.split) if to_spot else spot_nodes_beyond_floor(ground.split)
    nodes = _nodes_to_leave(placed, ground.to)
    if beyond == 0 or not ground.can_buy or not nodes:
        return nothing
    leaving = ground.empty - ground.held_ready
    if leaving > 0:
        because = f"{counted(leaving, f'empty {ground.to.other} node')} must go first"
        return NodeMove(ground.to, ground.can_buy, there, beyond, 0, because, waits=True)
    surge, because = _surge(nodes, ground)
    return NodeMove(ground.to, ground.can_buy, there, beyond, surge, because)


def nodes_beyond_floor(split: NodesOfSplit) -> int:
    """How many of the on-demand nodes could be on spot: 2 of 4 beside 6 at a floor of 20 %."""
    beyond = 0
    while beyond < split.on_demand and is_split_kept(
        split.on_demand - beyond - 1, split.spot + beyond + 1, split.on_demand_floor_percent
    ):
        beyond += 1
    return beyond


def spot_nodes_beyond_floor(split: NodesOfSplit) -> int:
    """How many of the spot nodes the on-demand ones do not allow: 4 of 8 beside 1 at a floor of 20 %."""
    most = spot_beside(split.on_demand, split.on_demand_floor_percent)
    return 0 if most is None else max(0, split.spot - most)


def _nodes_to_leave(placed: Sequence[PlacedReplica], to: CapacityType) -> list[list[PlacedReplica]]:
    nodes: dict[str, list[PlacedReplica]] = defaultdict(list)
    for replica in placed:
        is_there = replica.is_on_spot == (to is CapacityType.SPOT)
        if replica.node is not None and not is_there and not replica.node_leaves:
            nodes[replica.node].append(replica)
    return list(nodes.values())


def _surge(nodes: Sequence[Sequence[PlacedReplica]], ground: MoveGround) -> tuple[int, str]:
    """The replicas more, or 0 and why."""
    to_spot = ground.to is CapacityType.SPOT
    movable = [members for members in nodes if members[0].others_on_node == 0]
    if not movable and to_spot:
        return 0, "on each on-demand node there are pods of others too"
    if not ground.has_room_there:
        return 0, f"limits and ceilings leave no room for one more {ground.to} node"
    surge = min(map(len, movable or nodes)) + ground.room
    most = ground.replicas_per_node * (2 + ground.held_ready)
    if to_spot and surge > most:
        # What this saves is not worth it. A floor that is broken is mended whatever it takes for a while.
        room = counted(ground.room, "replica")
        return 0, f"on-demand nodes have room for {room} more, which would go there and not to spot"
    return surge, ""
