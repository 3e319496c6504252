"""What happens to the nodes of a simulated fleet? They are launched for pods that wait, emptied, reclaimed, and lost.

Karpenter and the scheduler, as far as counts and times go: NodePools by weight and within their limits, whole nodes,
pods on the fullest node that has room, empty nodes given back after a delay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autoscaler.replay.node_places import Shape, find_place, missing_nodes, shape_of_replica
from autoscaler.replay.node_setup import NodesSetup
from autoscaler.replay.replica_set import SimulatedPod
from autoscaler.replay.simulated_node_pool import RECLAIM_NOTICE_SECONDS, SimulatedNode, SimulatedNodePool
from autoscaler.replay.simulated_pool import SimulatedPool
from policies.capacity_split import CapacityType

# The scheduler and Karpenter look this often.
STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class LimitsChange:
    """One write of a NodePool's limits, in whole nodes; None: nothing limits it."""

    at_seconds: float
    node_pool: str
    from_nodes: int | None
    to_nodes: int | None


@dataclass(slots=True, eq=False)
class _Placed:
    """A pod on its nodes."""

    pool: SimulatedPool
    pod: SimulatedPod
    shape: Shape
    nodes: Sequence[SimulatedNode]


class SimulatedNodes:
    """The nodes under the pods of all pools. Moves only by `step`, and depends on nothing but its setup and seed."""

    def __init__(
        self, setup: NodesSetup, seed: int, now_seconds: float, trace_began_at: float, copies: int = 1
    ) -> None:
        """`trace_began_at` is second 0 of the lists of losses, in simulated unix time."""
        self.now_seconds = now_seconds
        self.setup = setup
        self.copies = copies
        self.pools: Mapping[str, SimulatedNodePool] = {
            pool.name: SimulatedNodePool(pool, setup, (seed, 1, number), copies)
            for number, pool in enumerate(setup.node_pools)
        }
        self.limit_changes: list[LimitsChange] = []
        self.most_nodes = 0
        self._trace_began_at = trace_began_at
        self._by_weight = sorted(self.pools.values(), key=lambda pool: -pool.setup.weight)
        self._placed: list[_Placed] = []
        self._held_ready: dict[str, int] = {}  # nodes, by NodePool
        self._looked_at = now_seconds - trace_began_at
        for node_pool in self.pools.values():
            for _ in range(node_pool.setup.initial_nodes):
                node_pool.begin_with_node(now_seconds)

    def take_in(self, pool: SimulatedPool) -> None:
        """Gives the first replicas of a pool their nodes; those that are missing are there from the beginning too."""
        shape = self._shape(pool)
        pool.use_nodes(self._neighbours)
        for pod in pool.existing_pods:
            self._begin_with_room_for(shape, pod.capacity_type)
            place = find_place(shape, self._nodes_of(pod.capacity_type))
            assert place is not None
            self._occupy(_Placed(pool, pod, shape, place))
            for node in place:
                node.images[pool.setup.key] = self.now_seconds
        self._count()

    def existing_nodes(self, capacity_type: CapacityType) -> int:
        """Nodes of one kind that are paid for now."""
        pools = (pool for pool in self.pools.values() if pool.setup.capacity_type is capacity_type)
        return sum(pool.existing_nodes for pool in pools)

    def node_of(self, pod: SimulatedPod) -> SimulatedNode | None:
        """The node of a pod, the first of several; None while it waits for one."""
        return next((placed.nodes[0] for placed in self._placed if placed.pod is pod), None)

    def others_on(self, node: SimulatedNode, pool: SimulatedPool) -> int:
        """How many pods of other pools stand on a node."""
        return sum(node in placed.nodes for placed in self._placed if placed.pool is not pool)

    def filled_nodes(self) -> frozenset[str]:
        """The nodes on which a pod goes on."""
        going_on = (placed for placed in self._placed if not math.isfinite(placed.pod.ends_at))
        return frozenset(node.name for placed in going_on for node in placed.nodes)

    def set_limits(self, node_pool: str, limits: Mapping[str, str]) -> None:
        """Writes the limits of a NodePool. No node goes because of them."""
        pool, shape = self.pools[node_pool], self.setup.shape
        change = LimitsChange(self.now_seconds, node_pool, shape.whole_nodes(pool.limits), shape.whole_nodes(limits))
        pool.limits = dict(limits)
        self.limit_changes.append(change)

    def held_ready(self, node_pool: str) -> int:
        """How many nodes of a NodePool are to stand ready beside those that replicas take."""
        return self._held_ready.get(node_pool, 0)

    def hold_ready(self, node_pool: str, nodes: int) -> None:
        """So many from now on. Those that are missing are launched, within the limits; a replica may take any."""
        self._held_ready[node_pool] = nodes

    def step(self, pools: Sequence[SimulatedPool], now_seconds: float) -> None:
        """What happens between the last step and this one; the pools have been advanced to `now_seconds`."""
        self.now_seconds = now_seconds
        self._free_left_places()
        self._lose(now_seconds - self._trace_began_at)
        self._end_noticed()
        waiting = [(pool, pod) for pool in pools for pod in pool.waiting_pods]
        missed: list[tuple[Shape, CapacityType | None]] = []
        if waiting:
            waiting.sort(key=lambda pair: pair[1].created_at)
            left = [(pool, pod) for pool, pod in waiting if not self._place(pool, pod)]
            # A pod that was made in this step waits for the next: what it replaces may be about to free its place.
            missed = [(self._shape(pool), pod.capacity_type) for pool, pod in left if pod.created_at < now_seconds]
            for kind in dict.fromkeys(kind for _, kind in missed):
                self._launch_for([shape for shape, of_kind in missed if of_kind is kind], kind)
        for name in self._held_ready:
            self._launch_held(name, [shape for shape, _ in missed])
        self._consolidate()
        self._count()

    def _shape(self, pool: SimulatedPool) -> Shape:
        return shape_of_replica(pool.setup.profile.accelerators_per_replica, self.setup.shape.accelerators)

    def _pools_of(self, kind: CapacityType | None) -> list[SimulatedNodePool]:
        """The NodePools on whose nodes pods of a kind may run, the one that is asked first at the beginning."""
        return [pool for pool in self._by_weight if kind is None or pool.setup.capacity_type is kind]

    def _nodes_of(self, kind: CapacityType | None) -> list[SimulatedNode]:
        return [node for pool in self._pools_of(kind) for node in pool.nodes if not node.is_deleting]

    def _begin_with_room_for(self, shape: Shape, kind: CapacityType | None) -> None:
        while find_place(shape, self._nodes_of(kind)) is None:
            pool = next((pool for pool in self._pools_of(kind) if pool.has_room()), None)
            if pool is None:
                raise ValueError("the limits of the NodePools have no room for the first replicas")
            pool.begin_with_node(self.now_seconds)

    def _place(self, pool: SimulatedPool, pod: SimulatedPod) -> bool:
        """Puts a pod on nodes that are ready, and lets it start; the image is pulled once a node."""
        now, shape, key = self.now_seconds, self._shape(pool), pool.setup.key
        place = find_place(shape, [node for node in self._nodes_of(pod.capacity_type) if node.ready_at <= now])
        if place is None:
            return False
        image_seconds, load_seconds = pool.draw_start(pod)
        for node in place:
            node.images.setdefault(key, now + image_seconds)
        image_at = max(node.images[key] for node in place)
        pool.start_pod(pod, max(0.0, image_at - now) + load_seconds)
        self._occupy(_Placed(pool, pod, shape, place))
        return True

    def _occupy(self, placed: _Placed) -> None:
        for node in placed.nodes:
            node.free_accelerators -= placed.shape.accelerators
            node.empty_since = math.inf
        self._placed.append(placed)

    def _launch_for(self, waiting: Sequence[Shape], kind: CapacityType | None) -> None:
        free = {node.name: node.free_accelerators for node in self._nodes_of(kind)}
        missing = missing_nodes(waiting, free, self.setup.shape.accelerators)
        trace_seconds = self.now_seconds - self._trace_began_at
        for pool in self._pools_of(kind):
            while missing and pool.launch(self.now_seconds, trace_seconds) is not None:
                missing -= 1

    def _launch_held(self, name: str, waiting: Sequence[Shape]) -> None:
        """Launches what is missing of the nodes that are held; those that waiting pods will take are not held."""
        pool, nodes = self.pools[name], self._nodes_of(None)
        taken = {node.name: node.free_accelerators for node in nodes if not self._is_empty(node)}
        spoken_for = missing_nodes(waiting, taken, self.setup.shape.accelerators)
        empty = sum(self._is_empty(node) for node in nodes if node.node_pool == name)
        for _ in range(self._held(name) - max(0, empty - spoken_for)):
            if pool.launch(self.now_seconds, self.now_seconds - self._trace_began_at) is None:
                return

    def _held(self, node_pool: str) -> int:
        """The nodes to be held in a sampled fleet, where each stands for several."""
        return math.ceil(self.held_ready(node_pool) / self.copies)

    def _free_left_places(self) -> None:
        existing = {id(pool): {pod.name for pod in pool.existing_pods} for pool in {p.pool for p in self._placed}}
        kept = []
        for placed in self._placed:
            if placed.pod.name in existing[id(placed.pool)]:
                kept.append(placed)
                continue
            for node in placed.nodes:
                node.free_accelerators += placed.shape.accelerators
                if node.free_accelerators == self.setup.shape.accelerators:
                    node.empty_since = self.now_seconds
        self._placed = kept

    def _lose(self, trace_seconds: float) -> None:
        since, self._looked_at = self._looked_at, trace_seconds
        for pool in self.pools.values():
            for node in [node for node in pool.nodes if node.death_at <= self.now_seconds]:
                self._kill(pool, node)
            for loss in pool.setup.deaths.listed:
                if since < loss.at_seconds <= trace_seconds:
                    for node in _oldest(pool, loss.nodes):
                        self._kill(pool, node)
            due = [node for node in pool.nodes if node.reclaim_at <= self.now_seconds and not node.is_deleting]
            for loss in pool.setup.reclaims.listed:
                if since < loss.at_seconds <= trace_seconds:
                    due += [node for node in _oldest(pool, loss.nodes) if node not in due]
            for node in due:
                self._notice(pool, node)

    def _kill(self, pool: SimulatedNodePool, node: SimulatedNode) -> None:
        pool.died += 1
        self._evict(node, self.now_seconds, is_reclaimed=False)
        pool.end(node, self.now_seconds)

    def _notice(self, pool: SimulatedNodePool, node: SimulatedNode) -> None:
        pool.reclaimed += 1
        node.gone_at = self.now_seconds + RECLAIM_NOTICE_SECONDS
        self._evict(node, node.gone_at, is_reclaimed=True)

    def _evict(self, node: SimulatedNode, ends_at: float, is_reclaimed: bool) -> None:
        """The pods of a node have until `ends_at`; others are made for them at once."""
        for pool in {id(placed.pool): placed.pool for placed in self._placed if node in placed.nodes}.values():
            pods = [each.pod for each in self._placed if each.pool is pool and node in each.nodes]
            pool.lose_pods(pods, ends_at, is_reclaimed)
        self._free_left_places()

    def _end_noticed(self) -> None:
        """A node that has had its notice goes with its last pod, or when the notice is over."""
        for pool in self.pools.values():
            for node in [node for node in pool.nodes if node.is_deleting]:
                if self._is_empty(node) or node.gone_at <= self.now_seconds:
                    pool.end(node, self.now_seconds)

    def _consolidate(self) -> None:
        for pool in self.pools.values():
            latest = self.now_seconds - pool.setup.consolidate_after_seconds
            empty = [node for node in pool.nodes if not node.is_deleting and self._is_empty(node)]
            for node in empty[self._held(pool.setup.name) :]:
                if max(node.empty_since, node.ready_at) <= latest:
                    pool.end(node, self.now_seconds)

    def _is_empty(self, node: SimulatedNode) -> bool:
        return node.free_accelerators == self.setup.shape.accelerators

    def _neighbours(self, pod: SimulatedPod) -> int:
        """How many other replicas of its pool stand on a pod's nodes."""
        own = next((placed for placed in self._placed if placed.pod is pod), None)
        if own is None:
            return 0
        same = (placed for placed in self._placed if placed.pool is own.pool and placed is not own)
        return sum(any(node in placed.nodes for node in own.nodes) for placed in same)

    def _count(self) -> None:
        self.most_nodes = max(self.most_nodes, sum(pool.existing_nodes for pool in self.pools.values()))


def _oldest(pool: SimulatedNodePool, nodes: int) -> list[SimulatedNode]:
    return sorted((node for node in pool.nodes if not node.is_deleting), key=lambda node: node.launched_at)[:nodes]
