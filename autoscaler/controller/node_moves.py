"""Which scalers with one target on both kinds of nodes may move replicas to the other, by the nodes of this tick?

To spot, where more is on demand than the floor needs; to nodes on demand, where the floor is broken: its node was lost
and the replicas found room on spot, or another scaler has given up what was on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autoscaler.controller.managed_pool import ManagedPool, split_in_use, states
from autoscaler.controller.replica_wish import ReplicaWish, demand_of, node_demands
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.replica_places import Places, PlaceSource, PoolNodes
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType
from policies.node_capacity import NodePoolState, plan_node_capacity
from policies.node_move import MoveGround, NodeMove, nodes_beyond_floor, plan_move, spot_nodes_beyond_floor
from policies.victims import NodesOfSplit, choose_victims


def node_moves_of(
    pool: ManagedPool,
    wishes: Sequence[ReplicaWish],
    node_pools: Mapping[str, NodePoolSeen],
    places: PlaceSource,
    turn: int,
) -> Mapping[PoolKey, NodeMove]:
    """What the next decisions may do about nodes of the wrong kind; while one scaler moves, others wait.

    Who may begin and does not, for want of room or calm, keeps nobody from it: where there are fewer nodes to be moved
    than scalers that may begin, each has its turn (`turn` counts ticks). Empty where no split is managed, and where
    nothing is where it should not be.
    """
    seen = {state.capacity_type: state for state in states(pool.node_pools, node_pools)}
    split = split_in_use(pool.parameters.on_demand_floor_percent, seen.values())
    if not pool.has_split or split is None:
        return {}
    staying = _without_falling(split, wishes, places)
    look = _Look(pool, wishes, seen, places, split, staying)
    to = CapacityType.ON_DEMAND if spot_nodes_beyond_floor(staying) else CapacityType.SPOT
    beyond = spot_nodes_beyond_floor(staying) or nodes_beyond_floor(split)
    moves: dict[PoolKey, NodeMove] = {}
    moving = [wish.key for wish in wishes if wish.is_moving]
    for wish in wishes:
        if wish.workload is None or wish.parts or not wish.will_be_written or not wish.accelerators_per_replica:
            continue
        if wish.is_moving or (beyond and not moving):
            moves[wish.key] = look.plan(wish, wish.moves_to if wish.is_moving else to)
        elif beyond and seen[to].is_ready:
            because = f"{'/'.join(moving[0])} moves first"
            moves[wish.key] = NodeMove(to, True, 0, nodes_beyond_floor=beyond, because=because, waits=True)
    return moves if moving else _in_turn(moves, 1 if to is CapacityType.ON_DEMAND else None, turn)


def _in_turn(moves: Mapping[PoolKey, NodeMove], most: int | None, turn: int) -> Mapping[PoolKey, NodeMove]:
    """As many may begin as there are nodes to be moved: two at once with one to move would bring one too many."""
    ready = [key for key, each in moves.items() if each.surge_replicas]
    nodes = min((moves[key].nodes_beyond_floor for key in ready), default=0) if most is None else most
    if len(ready) <= nodes:
        return moves
    first = turn % len(ready)
    chosen = (ready[first:] + ready[:first])[:nodes]
    because = f"{'/'.join(chosen[0])} may move first"
    waiting = {
        key: replace(moves[key], surge_replicas=0, because=because, waits=True) for key in ready if key not in chosen
    }
    return {**moves, **waiting}


def _without_falling(split: NodesOfSplit, wishes: Sequence[ReplicaWish], places: PlaceSource) -> NodesOfSplit:
    """Without the on-demand nodes that falling counts are about to empty, or are kept from by the floor."""
    for wish in wishes:
        is_falling = wish.will_be_written and wish.desired < wish.current and wish.empties_nodes
        if not is_falling or wish.parts or wish.workload is None:
            continue
        looked = places.places_of(wish.workload.target, wish.workload.pods)
        busy = replace(split, on_demand=split.on_demand - looked.empty_on_demand)
        emptied = choose_victims(looked.replicas, wish.current - wish.desired, busy).emptied_nodes
        on_demand = sum(node in looked.filled_on_demand for node in emptied)
        split = replace(split, on_demand=split.on_demand - on_demand)
    return split


@dataclass(frozen=True, slots=True)
class _Look:
    """One AcceleratorPool in one tick; `staying` is the split without nodes that falling counts are to empty."""

    pool: ManagedPool
    wishes: Sequence[ReplicaWish]
    seen: Mapping[CapacityType, NodePoolState]
    places: PlaceSource
    split: NodesOfSplit
    staying: NodesOfSplit

    def plan(self, wish: ReplicaWish, to: CapacityType) -> NodeMove:
        """What it takes to move the replicas of one node of this scaler."""
        assert wish.workload is not None
        looked = self.places.places_of(wish.workload.target, wish.workload.pods)
        to_spot = to is CapacityType.SPOT
        left = self.places.nodes_of(self.seen[to.other].name)
        split, room = self.split if to_spot else self.staying, self._room(wish, looked, left)
        ground = MoveGround(
            to=to,
            split=replace(split, on_demand=split.on_demand - left.empty) if to_spot else split,
            can_buy=self.seen[to].is_ready,
            replicas_per_node=max(1, self.pool.parameters.node_room.replicas_of(demand_of(wish))),
            room=room,
            empty=left.empty,
            held_ready=self._held_ready if to_spot else 0,
        )
        found = plan_move(looked.replicas, ground)
        # To know of the room all nodes are planned: only where there is something to move.
        is_in_question = found.nodes_beyond_floor > 0 and not found.waits
        if is_in_question and not self._has_room(wish, room + 1, to):
            found = plan_move(looked.replicas, replace(ground, has_room_there=False))
        if not found.surge_replicas:
            return found
        if not wish.empties_nodes:
            because = "scaleDownVictims: WholeNodes, and a Deployment, are needed to choose who goes"
            return replace(found, surge_replicas=0, because=because)
        busy = next((other for other in self.wishes if other.key != wish.key and self._is_busy(other, to)), None)
        if busy is not None:
            return replace(found, surge_replicas=0, because=f"{'/'.join(busy.key)} changes its count", waits=True)
        return found

    def _is_busy(self, other: ReplicaWish, to: CapacityType) -> bool:
        """Whether another scaler's count changes. Where one is kept from falling by the floor, that is to be mended."""
        return other.desired > other.current if to is CapacityType.ON_DEMAND else other.desired != other.current

    @property
    def _held_ready(self) -> int:
        return 0 if self.pool.prewarm is None else self.pool.prewarm.spare_nodes or 0

    def _room(self, wish: ReplicaWish, looked: Places, left: PoolNodes) -> int:
        """For how many more of its replicas these nodes have room, those of other scalers and empty ones too.

        One on which something runs that is no scaler's is taken to be full, but for nodes of its own.
        """
        mine, node_room = demand_of(wish), self.pool.parameters.node_room
        taken: dict[str, list[AcceleratorDemand]] = defaultdict(list)
        for other in self.wishes:
            if other.workload is None or not other.accelerators_per_replica:
                continue
            one = replace(demand_of(other), wanted_replicas=1, current_replicas=0)
            targets = [part.target for part in other.parts] or [other.workload.target]
            for target in targets:
                there = looked if other is wish else self.places.places_of(target, other.workload.pods)
                for replica in there.replicas:
                    if replica.node in left.filled:
                        taken[replica.node].append(one)
        return left.empty * node_room.replicas_of(mine) + sum(
            node_room.replicas_beside(mine, others) for others in taken.values()
        )

    def _has_room(self, wish: ReplicaWish, replicas: int, kind: CapacityType) -> bool:
        """Whether the plan would let one more node come for so many replicas more; while one moves it has let it."""
        if wish.is_moving:
            return True
        demands: list[AcceleratorDemand] = [demand for each in self.wishes for demand in node_demands(each, None)]
        more = replace(demand_of(wish), wanted_replicas=replicas, current_replicas=0, capacity_type=kind)
        parameters = replace(self.pool.parameters, slack_nodes=0)
        plan = plan_node_capacity(parameters, [*demands, more], list(self.seen.values()))
        limits = {each.name: each.limit_nodes for each in plan.node_pools}
        return limits[self.seen[kind].name] > self.seen[kind].nodes_in_use
