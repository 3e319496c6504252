"""Which scalers with one target on both kinds of nodes may move replicas back to spot, by the nodes of this tick?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autoscaler.controller.managed_pool import ManagedPool, states
from autoscaler.controller.replica_wish import ReplicaWish, demand_of, node_demands
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.replica_places import Places, PlaceSource
from policies.accelerator_sharing import AcceleratorDemand
from policies.capacity_split import CapacityType
from policies.node_capacity import NodePoolState, plan_node_capacity
from policies.spot_return import ReturnGround, SpotReturn, nodes_beyond_floor, plan_return
from policies.victims import NodesOfSplit


def spot_returns_of(
    pool: ManagedPool,
    wishes: Sequence[ReplicaWish],
    node_pools: Mapping[str, NodePoolSeen],
    places: PlaceSource,
    turn: int,
) -> Mapping[PoolKey, SpotReturn]:
    """What the next decisions may do about nodes on demand beyond the floor; while one scaler moves, others wait.

    Who may begin and does not, for want of room or calm, keeps nobody from it: where there are fewer nodes to be moved
    than scalers that may begin, each has its turn (`turn` counts ticks). Empty where no split is managed, and where
    nothing is on demand that could be on spot.
    """
    seen = states(pool.node_pools, node_pools)
    in_use = {state.capacity_type: state for state in seen}
    if len(in_use) < len(CapacityType):
        return {}
    split = NodesOfSplit(
        pool.parameters.on_demand_floor_percent,
        in_use[CapacityType.ON_DEMAND].nodes_in_use,
        in_use[CapacityType.SPOT].nodes_in_use,
    )
    returns: dict[PoolKey, SpotReturn] = {}
    can_buy_spot, beyond = in_use[CapacityType.SPOT].is_ready, nodes_beyond_floor(split)
    moving = [wish.key for wish in wishes if _moves(wish)]
    for wish in wishes:
        if wish.workload is None or wish.parts or not wish.will_be_written or not wish.accelerators_per_replica:
            continue
        if _moves(wish) or (beyond and not moving):
            looked = places.places_of(wish.workload.target, wish.workload.pods)
            returns[wish.key] = _plan(pool, wish, wishes, seen, split, looked)
        elif beyond and can_buy_spot:
            because = f"{'/'.join(moving[0])} goes back first"
            returns[wish.key] = SpotReturn(can_buy_spot, 0, beyond, because=because, waits=True)
    return returns if moving else _in_turn(returns, turn)


def _in_turn(returns: Mapping[PoolKey, SpotReturn], turn: int) -> Mapping[PoolKey, SpotReturn]:
    """As many may begin as there are nodes: two at once with one to move would bring more on spot than can stay."""
    ready = [key for key, each in returns.items() if each.surge_replicas]
    nodes = min((returns[key].nodes_beyond_floor for key in ready), default=0)
    if len(ready) <= nodes:
        return returns
    first = turn % len(ready)
    chosen = (ready[first:] + ready[:first])[:nodes]
    because = f"{'/'.join(chosen[0])} may go back first"
    waiting = {
        key: replace(returns[key], surge_replicas=0, because=because, waits=True) for key in ready if key not in chosen
    }
    return {**returns, **waiting}


def _moves(wish: ReplicaWish) -> bool:
    return wish.moved_replicas > 0 or wish.moved_standing > 0


def _plan(
    pool: ManagedPool,
    wish: ReplicaWish,
    wishes: Sequence[ReplicaWish],
    seen: Sequence[NodePoolState],
    split: NodesOfSplit,
    looked: Places,
) -> SpotReturn:
    ground = ReturnGround(
        split=replace(split, on_demand=split.on_demand - looked.empty_on_demand),
        can_buy_spot=any(each.is_ready for each in seen if each.capacity_type is CapacityType.SPOT),
        replicas_per_node=max(1, pool.parameters.node_room.replicas_of(demand_of(wish))),
        has_room_on_spot=_has_room_on_spot(pool, wish, wishes, seen),
        empty_on_demand=looked.empty_on_demand,
        held_ready=0 if pool.prewarm is None else pool.prewarm.spare_nodes or 0,
    )
    found = plan_return(looked.replicas, ground)
    if not found.surge_replicas:
        return found
    if not wish.empties_nodes:
        because = "scaleDownVictims: WholeNodes, and a Deployment, are needed to choose who goes"
        return replace(found, surge_replicas=0, because=because)
    busy = next((other for other in wishes if other.key != wish.key and other.desired != other.current), None)
    if busy is not None:
        return replace(found, surge_replicas=0, because=f"{'/'.join(busy.key)} changes its count", waits=True)
    return found


def _has_room_on_spot(
    pool: ManagedPool, wish: ReplicaWish, wishes: Sequence[ReplicaWish], seen: Sequence[NodePoolState]
) -> bool:
    """Whether the plan would let one more node come on spot for a replica more; while one moves it has let it."""
    if _moves(wish):
        return True
    demands: list[AcceleratorDemand] = [demand for each in wishes for demand in node_demands(each, None)]
    one_more = replace(demand_of(wish), wanted_replicas=1, current_replicas=0, capacity_type=CapacityType.SPOT)
    plan = plan_node_capacity(replace(pool.parameters, slack_nodes=0), [*demands, one_more], seen)
    limits = {each.name: each.limit_nodes for each in plan.node_pools}
    return any(limits[each.name] > each.nodes_in_use for each in seen if each.capacity_type is CapacityType.SPOT)
