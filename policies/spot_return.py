"""May replicas of one target go back from on demand to spot, and how many more does it take meanwhile?

A pod that runs is never moved. So what went on demand while spot could not be had is moved a node at a time: as many
replicas more as find their place on spot, and then as many fewer on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.capacity_split import is_split_kept
from policies.victims import NodesOfSplit, PlacedReplica
from policies.wording import counted


@dataclass(frozen=True, slots=True)
class SpotReturn:
    """What the nodes say of a way back to spot, as of the last look.

    `nodes_beyond_floor` stand on demand though the floor would be kept with as many on spot; 0: nothing is to be
    moved. `surge_replicas` is how many more must be asked for so that those of one such node serve on spot; 0: they
    cannot be moved now, and `because` says why; `waits`, where that passes by itself.
    """

    can_buy_spot: bool
    replicas_on_spot: int  # that serve there
    nodes_beyond_floor: int = 0
    surge_replicas: int = 0
    because: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True)
class ReturnGround:
    """What is known of the nodes behind one target.

    `split` has the nodes on which something runs, `empty_on_demand` those on demand besides, of which `held_ready` are
    to stay. `replicas_per_node` is how many replicas a node has room for. `has_room_on_spot` False: limits or ceilings
    leave none for one more node there.
    """

    split: NodesOfSplit
    can_buy_spot: bool
    replicas_per_node: int
    has_room_on_spot: bool = True
    empty_on_demand: int = 0
    held_ready: int = 0


def plan_return(replicas: Iterable[PlacedReplica], ground: ReturnGround) -> SpotReturn:
    """What it takes to move the replicas of one on-demand node to spot: 1 of 1 a node, with one hole beside them 2.

    A replica more goes to any node with room. So what is asked for also fills the room on demand, and what then goes
    leaves a node fewer there however they were placed. Nodes with pods of others are not emptied.
    """
    placed = tuple(replicas)
    serving = sum(replica.is_ready and replica.is_on_spot and not replica.node_leaves for replica in placed)
    beyond = nodes_beyond_floor(ground.split)
    on_demand_nodes = _on_demand_nodes(placed)
    if beyond == 0 or not ground.can_buy_spot or not on_demand_nodes:
        return SpotReturn(ground.can_buy_spot, serving)
    leaving = ground.empty_on_demand - ground.held_ready
    if leaving > 0:
        because = f"{counted(leaving, 'empty on-demand node')} must go first"
        return SpotReturn(ground.can_buy_spot, serving, beyond, 0, because, waits=True)
    surge, because = _surge(on_demand_nodes, ground)
    return SpotReturn(ground.can_buy_spot, serving, beyond, surge, because)


def nodes_beyond_floor(split: NodesOfSplit) -> int:
    """How many of the on-demand nodes could be on spot: 2 of 4 beside 6 at a floor of 20 %."""
    beyond = 0
    while beyond < split.on_demand and is_split_kept(
        split.on_demand - beyond - 1, split.spot + beyond + 1, split.on_demand_floor_percent
    ):
        beyond += 1
    return beyond


def _on_demand_nodes(placed: Sequence[PlacedReplica]) -> list[list[PlacedReplica]]:
    nodes: dict[str, list[PlacedReplica]] = defaultdict(list)
    for replica in placed:
        if replica.node is not None and not replica.is_on_spot and not replica.node_leaves:
            nodes[replica.node].append(replica)
    return list(nodes.values())


def _surge(nodes: Sequence[Sequence[PlacedReplica]], ground: ReturnGround) -> tuple[int, str]:
    """The replicas more, or 0 and why."""
    movable = [members for members in nodes if members[0].others_on_node == 0]
    if not movable:
        return 0, "on each on-demand node there are pods of others too"
    if not ground.has_room_on_spot:
        return 0, "limits and ceilings leave no room for one more node on spot"
    each = ground.replicas_per_node
    room = sum(max(0, each - len(members)) for members in nodes) + each * ground.empty_on_demand
    surge = min(map(len, movable)) + room
    most = each * (2 + ground.held_ready)
    if surge > most:
        return 0, f"on-demand nodes have room for {counted(room, 'replica')} more, which would go there and not to spot"
    return surge, ""
