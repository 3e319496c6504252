"""Which replicas should go, so that whole nodes become empty and the least work is lost?

A ReplicaSet takes those that are not Ready first, whatever anybody says: a replica that still loads its model goes
before one that serves. Among equals it takes the lower `controller.kubernetes.io/pod-deletion-cost`. So the choice here
follows its order, and is free within it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from policies.capacity_split import is_split_kept


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica and its node. `work` is what it has in flight; `others_on_node` are pods that are not its pool's.

    `node` None: it waits for one. `node_leaves`: the node is noticed, being deleted or not Ready.
    """

    name: str
    node: str | None
    is_ready: bool
    work: float = 0.0
    node_leaves: bool = False
    others_on_node: int = 0
    is_on_spot: bool = False
    is_drained: bool = False  # it is out of the router already: a choice once made stands


@dataclass(frozen=True, slots=True)
class NodesOfSplit:
    """The nodes of the AcceleratorPool that are there, and the floor that they must keep.

    `on_demand_first`: replicas have come on spot so that others go on demand, and so these are emptied first.
    """

    on_demand_floor_percent: int
    on_demand: int
    spot: int
    on_demand_first: bool = False


@dataclass(frozen=True, slots=True)
class Victims:
    """The replicas that should go, first to go first, and the nodes on which then nothing is left."""

    names: tuple[str, ...]
    emptied_nodes: tuple[str, ...]


def choose_victims(replicas: Iterable[PlacedReplica], fewer: int, split: NodesOfSplit | None = None) -> Victims:
    """So many victims. Those that are not Ready come first, as a ReplicaSet has it: their loading is given up.

    Then those whose node is about to go, then those that are drained already, then whole nodes (those with the fewest
    replicas first, of these on-demand ones where the floor allows it, then the least work), then what is left from the
    node that is nearest to being empty. So what went on demand while spot could not be had goes back by itself; where
    it is moved, whole nodes on demand go before any on spot. An on-demand node is not emptied where the spot nodes that
    stay would break the floor.
    """
    everything = tuple(replicas)
    chosen: list[PlacedReplica] = []
    for is_ready in (False, True):
        tier = [replica for replica in everything if replica.is_ready == is_ready]
        chosen += _without_a_place(tier, fewer - len(chosen))
        for is_drained in (True, False):
            taken = {replica.name for replica in chosen}
            equals = [each for each in tier if each.is_drained == is_drained and each.name not in taken]
            picked, split = _of_equals(equals, fewer - len(chosen), everything, chosen, split)
            chosen += picked
    names = tuple(replica.name for replica in chosen)
    return Victims(names, emptied_nodes(everything, names))


def going_now(replicas: Iterable[PlacedReplica], victims: Victims, split: NodesOfSplit | None) -> Victims:
    """Those of the victims that may go while all spot nodes stand that stand now: the first ones.

    On demand goes after spot. One that leaves its node empty waits, and all after it, for as long as the floor would be
    broken without that node: until emptied spot nodes have gone, or a replica of others serves on demand in its place.
    """
    everything = tuple(replicas)
    if split is None:
        return victims
    on_spot = {replica.node for replica in everything if replica.is_on_spot}
    for count in range(len(victims.names), 0, -1):
        names = victims.names[:count]
        emptied = emptied_nodes(everything, names)
        on_demand = sum(node not in on_spot for node in emptied)
        if on_demand == 0 or is_split_kept(split.on_demand - on_demand, split.spot, split.on_demand_floor_percent):
            return Victims(names, emptied)
    return Victims((), ())


def emptied_nodes(replicas: Iterable[PlacedReplica], names: Iterable[str]) -> tuple[str, ...]:
    """The nodes on which nothing is left without these replicas."""
    gone = frozenset(names)
    return tuple(
        node
        for node, members in _by_node(replicas).items()
        if all(member.name in gone for member in members) and members[0].others_on_node == 0
    )


def _without_a_place(tier: Sequence[PlacedReplica], need: int) -> list[PlacedReplica]:
    """Those that wait for a node, then those whose node is about to go."""
    waiting_or_leaving = sorted(
        (replica for replica in tier if replica.node is None or replica.node_leaves),
        key=lambda replica: (replica.node is not None, replica.work, replica.name),
    )
    return waiting_or_leaving[: max(0, need)]


def _of_equals(
    equals: Sequence[PlacedReplica],
    need: int,
    everything: Sequence[PlacedReplica],
    chosen: Sequence[PlacedReplica],
    split: NodesOfSplit | None,
) -> tuple[list[PlacedReplica], NodesOfSplit | None]:
    """Node by node the cheapest, and what is left of the split without them."""
    picked: list[PlacedReplica] = []
    members = _by_node(everything)
    nodes = dict(_by_node(replica for replica in equals if replica.node is not None and not replica.node_leaves))
    gone = {replica.name for replica in chosen}
    while len(picked) < need and nodes:
        left = need - len(picked)
        staying = {node: [each for each in members[node] if each.name not in gone] for node in nodes}
        free = [node for node in nodes if _can_be_emptied(staying[node], nodes[node]) and len(nodes[node]) <= left]
        kept = [node for node in free if _keeps_floor(staying[node], split)]
        cheapest = min(kept or nodes, key=lambda node: _price(node, staying[node], split))
        victims = sorted(nodes.pop(cheapest), key=lambda replica: (replica.work, replica.name))[:left]
        if kept:
            split = _without(split, victims[0])
        picked += victims
        gone |= {victim.name for victim in victims}
    return picked, split


def _by_node(replicas: Iterable[PlacedReplica]) -> Mapping[str, list[PlacedReplica]]:
    nodes: dict[str, list[PlacedReplica]] = defaultdict(list)
    for replica in replicas:
        if replica.node is not None:
            nodes[replica.node].append(replica)
    return nodes


def _can_be_emptied(staying: Sequence[PlacedReplica], candidates: Sequence[PlacedReplica]) -> bool:
    return len(staying) == len(candidates) and all(replica.others_on_node == 0 for replica in staying)


def _price(
    node: str, staying: Sequence[PlacedReplica], split: NodesOfSplit | None
) -> tuple[bool, bool, bool, int, bool, float, str]:
    """What is cheapest to give up: the floor kept, no strangers that keep the node, few replicas, dear, little work."""
    is_on_spot = split is not None and any(replica.is_on_spot for replica in staying)
    return (
        not _keeps_floor(staying, split),
        any(replica.others_on_node for replica in staying),
        is_on_spot and split is not None and split.on_demand_first,
        len(staying),
        is_on_spot,
        sum(replica.work for replica in staying),
        node,
    )


def _keeps_floor(members: Sequence[PlacedReplica], split: NodesOfSplit | None) -> bool:
    """Whether the nodes that stay keep the floor without this one. One that is broken already is not made worse."""
    if split is None or members[0].is_on_spot:
        return True
    return is_split_kept(split.on_demand - 1, split.spot, split.on_demand_floor_percent)


def _without(split: NodesOfSplit | None, victim: PlacedReplica) -> NodesOfSplit | None:
    if split is None:
        return None
    on_spot = int(victim.is_on_spot)
    return replace(split, on_demand=split.on_demand - 1 + on_spot, spot=split.spot - on_spot)
