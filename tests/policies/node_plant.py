"""A model of what Karpenter, the scheduler and a ReplicaSet make of limits and counts; only as much as laws need.

Karpenter's rules as in its documentation: a NodePool gets a node for a pod that waits, if one more whole node is within
its limit; nodes that are being deleted do not count; of two NodePools that suit a pod the one with the higher weight
comes first (here: on demand); an empty node goes after a while.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.capacity_split import CapacityType, TargetCounts
from policies.node_capacity import NodePoolState
from policies.victims import NodesOfSplit, PlacedReplica, choose_victims, going_now

ON_DEMAND, SPOT = CapacityType.ON_DEMAND, CapacityType.SPOT
EMPTY_TICKS = 3
DELETING_TICKS = 2
LOADING_TICKS = 2
SLOW_SHARE = 0.3


@dataclass(eq=False)
class Pod:
    """A replica of a target. `target` says which nodes it may run on; None: any. `owner` tells such targets apart."""

    target: CapacityType | None
    size: int
    owner: int = 0
    ticks_on_node: int = 0


@dataclass(eq=False)
class Node:
    """A node with its pods; `leaves_in` counts down once it is being deleted."""

    kind: CapacityType
    pods: list[Pod] = field(default_factory=list)
    empty_ticks: int = 0
    leaves_in: int | None = None


class NodePlant:
    """Two NodePools, and targets of one size of replica. Nothing here looks at a plan but at the limits."""

    def __init__(self, seed: int, accelerators_per_node: int = 8) -> None:
        self._random = random.Random(seed)
        self._each = accelerators_per_node
        self.nodes: list[Node] = []
        self.waiting: list[Pod] = []
        self.limits: dict[CapacityType, int] = {ON_DEMAND: 0, SPOT: 0}
        self.buys = {ON_DEMAND: True, SPOT: True}
        self.opened: list[Node] = []  # in the last tick
        self._slow: set[CapacityType] = set()

    def states(self) -> list[NodePoolState]:
        """What is seen of the NodePools."""
        return [
            NodePoolState(kind.value, kind, self.count(kind), self.buys[kind], self.count(kind, deleting=True))
            for kind in CapacityType
        ]

    def count(self, kind: CapacityType, *, deleting: bool = False) -> int:
        """Nodes that stay, or those that are being deleted."""
        return sum(node.kind is kind and (node.leaves_in is not None) == deleting for node in self.nodes)

    def target(self, kind: CapacityType | None, owner: int = 0) -> TargetCounts:
        """A target's replicas."""
        waiting, placed = self._pods(kind, owner)
        ready = sum(pod.ticks_on_node >= LOADING_TICKS for pod in placed)
        return TargetCounts(len(placed) + len(waiting), ready, len(placed))

    def _pods(self, kind: CapacityType | None, owner: int) -> tuple[list[Pod], list[Pod]]:
        """Those that wait for a node, and those that have one."""
        placed = [pod for node in self.nodes if node.leaves_in is None for pod in node.pods]
        return (
            [pod for pod in self.waiting if pod.target is kind and pod.owner == owner],
            [pod for pod in placed if pod.target is kind and pod.owner == owner],
        )

    def scale(self, kind: CapacityType | None, replicas: int, size: int, owner: int = 0) -> None:
        """A ReplicaSet's work: of too many pods those without a node go first, then any."""
        there, placed = self._pods(kind, owner)
        self._random.shuffle(placed)
        surplus = (there + placed)[: max(0, len(there) + len(placed) - replicas)]
        self.waiting = [pod for pod in self.waiting if pod not in surplus]
        for node in self.nodes:
            node.pods = [pod for pod in node.pods if pod not in surplus]
        self.waiting += [Pod(kind, size, owner) for _ in range(replicas - len(there) - len(placed))]

    def shrink_by_choice(
        self, replicas: int, floor_percent: int, *, on_demand_first: bool = False, owner: int = 0
    ) -> int:
        """A ReplicaSet's work where victims are marked: of those with a node, once none of this target waits for one.

        Returns how many stay beyond the count for the floor.
        """
        waiting, there = self._pods(None, owner)
        fewer = min(len(there), max(0, len(waiting) + len(there) - replicas))
        of_all = [(pod, node) for node in self.nodes for pod in node.pods]
        placed = self.placed(owner)
        split = NodesOfSplit(floor_percent, self.busy_on_demand, self.count(SPOT), on_demand_first)
        fewer = max(0, fewer - len(waiting))
        wanted = choose_victims(placed, fewer, split)
        going = going_now(placed, wanted, split)
        for name in going.names:
            pod, node = of_all[int(name)]
            node.pods.remove(pod)
        return len(wanted.names) - len(going.names)

    def placed(self, owner: int | None = None) -> list[PlacedReplica]:
        """The replicas of a target, or of all, that have their nodes, called by their place among all of them."""
        pods = [(pod, number, node) for number, node in enumerate(self.nodes) for pod in node.pods]
        return [
            PlacedReplica(
                f"{at:03}",
                f"{number:03}",
                pod.ticks_on_node >= LOADING_TICKS,
                node_leaves=node.leaves_in is not None,
                others_on_node=sum(each.owner != pod.owner for each in node.pods),
                is_on_spot=node.kind is SPOT,
            )
            for at, (pod, number, node) in enumerate(pods)
            if owner in (None, pod.owner)
        ]

    def room(self, kind: CapacityType, size: int) -> int:
        """How many replicas more of a size the nodes have room for, whoever is there."""
        nodes = [node for node in self.nodes if node.kind is kind and node.leaves_in is None]
        return sum((self._each - sum(pod.size for pod in node.pods)) // size for node in nodes)

    def empty(self, kind: CapacityType) -> int:
        """Nodes that stay, and on which nothing runs."""
        return sum(node.kind is kind and node.leaves_in is None and not node.pods for node in self.nodes)

    @property
    def busy_on_demand(self) -> int:
        """Nodes on demand on which something runs."""
        return sum(node.kind is ON_DEMAND and bool(node.pods) for node in self.nodes)

    def delete_a_node(self) -> None:
        """A node is lost: what ran there waits again."""
        staying = [node for node in self.nodes if node.leaves_in is None]
        if staying:
            self._delete(self._random.choice(staying))

    def tick(self) -> None:
        """Pods are placed, nodes are opened within the limits, empty ones begin to leave, and some have left."""
        self.opened = []
        # Now and then a kind of node is slow to come: that must not upset the shares.
        self._slow = {kind for kind in CapacityType if self._random.random() < SLOW_SHARE}
        for node in self.nodes:
            node.leaves_in = None if node.leaves_in is None else node.leaves_in - 1
            for pod in node.pods:
                pod.ticks_on_node += 1
        self.nodes = [node for node in self.nodes if node.leaves_in is None or node.leaves_in > 0]
        self._random.shuffle(self.nodes)
        self.waiting = [pod for pod in self.waiting if not self._place(pod)]
        for node in self.nodes:
            node.empty_ticks = 0 if node.pods else node.empty_ticks + 1
            if node.empty_ticks > EMPTY_TICKS and node.leaves_in is None:
                self._delete(node)

    def _place(self, pod: Pod) -> bool:
        kinds: Sequence[CapacityType] = list(CapacityType) if pod.target is None else [pod.target]
        pod.ticks_on_node = 0
        for node in self.nodes:
            free = self._each - sum(each.size for each in node.pods)
            if node.kind in kinds and node.leaves_in is None and free >= pod.size:
                node.pods.append(pod)
                return True
        for kind in kinds:
            if self.buys[kind] and kind not in self._slow and self.count(kind) < self.limits[kind]:
                node = Node(kind, [pod])
                self.nodes.append(node)
                self.opened.append(node)
                return True
        return False

    def _delete(self, node: Node) -> None:
        node.leaves_in = DELETING_TICKS
        self.waiting += node.pods
        node.pods = []


def by_kind(limits: Mapping[str, int]) -> Counter[CapacityType]:
    """Limits of NodePools that are called after their kind of capacity."""
    return Counter({CapacityType(name): nodes for name, nodes in limits.items()})
