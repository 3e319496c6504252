"""Where are the replicas of a simulated pool, and which go when its count falls? Chosen as in the cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from autoscaler.actuators.joint_falls import JointFalls
from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.observers.replica_places import Places, PoolNodes
from autoscaler.observers.workload import LivePod, ScaleTarget
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.simulated_pool import SimulatedPool
from policies.capacity_split import CapacityType
from policies.reasons import Reason
from policies.victims import PlacedReplica
from policies.wording import counted


class SimulatedVictims:
    """A VictimMarker and a PlaceSource over simulated nodes. `pool_of` finds a target's pool; None: not simulated."""

    def __init__(self, nodes: SimulatedNodes, pool_of: Callable[[ScaleTarget], SimulatedPool | None]) -> None:
        self._nodes = nodes
        self._pool_of = pool_of
        self._falls = JointFalls()

    def mark(self, fall: CountFall) -> ChosenVictims:
        """Gives those that should go the lowest deletion costs, and takes away what an earlier choice has left.

        A simulated victim gets no new requests in any case, and ends those that it has before it goes.
        """
        pool = self._pool_of(fall.target)
        if pool is None:
            return ChosenVictims(fall.to_replicas, (), 0, "")
        kind = pool.kind_of(fall.target.name)
        copies = self._nodes.copies
        fewer = -(-(fall.from_replicas - fall.to_replicas) // copies)
        split = fall.split
        if split is not None:
            split = replace(split, on_demand=split.on_demand // copies, spot=split.spot // copies)
        chosen = self._falls.choose(fall.target, self._places(pool, kind), fewer, split, self._nodes.now_seconds)
        victims, held = chosen.now, min(chosen.held * copies, fall.from_replicas - fall.to_replicas)
        ranks = {name: rank - len(victims.names) for rank, name in enumerate(victims.names)}
        for pod in pool.existing_pods:
            if pod.capacity_type is kind:
                pod.deletion_cost = ranks.get(pod.name, 0)
        emptied = len(victims.emptied_nodes) * copies
        message = f"{counted(emptied, 'node')} will be empty"
        return ChosenVictims(fall.to_replicas + held, victims.names, emptied, message, Reason.ON_DEMAND_FLOOR)

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        """Where the replicas are that go on; nowhere for a target that is not simulated."""
        del pods  # the pool has them
        pool = self._pool_of(target)
        if pool is None:
            return Places((), 0)
        return self._places(pool, pool.kind_of(target.name))

    def nodes_of(self, node_pool: str) -> PoolNodes:
        """The nodes of a simulated NodePool; none of one that is not there."""
        found = self._nodes.pools.get(node_pool)
        names = frozenset() if found is None else frozenset(each.name for each in found.nodes if not each.is_deleting)
        filled = names & self._nodes.filled_nodes()
        return PoolNodes(filled, len(names - filled))

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        """Nothing is remembered."""

    def _places(self, pool: SimulatedPool, kind: CapacityType | None) -> Places:
        """With the on-demand nodes of the pool's NodePools: those on which nothing goes on go, or are held."""
        used = {node.node_pool for pod in pool.existing_pods if (node := self._nodes.node_of(pod)) is not None}
        on_demand = [self.nodes_of(name) for name in used if not self._nodes.pools[name].is_spot]
        filled = frozenset(node for each in on_demand for node in each.filled)
        return Places(tuple(self._placed(pool, kind)), sum(each.empty for each in on_demand), filled)

    def _placed(self, pool: SimulatedPool, kind: CapacityType | None) -> Iterator[PlacedReplica]:
        for pod in pool.existing_pods:
            if math.isfinite(pod.ends_at) or pod.capacity_type is not kind:
                continue  # it goes already, or is the other target's
            node = self._nodes.node_of(pod)
            yield PlacedReplica(
                name=pod.name,
                node=None if node is None else node.name,
                is_ready=pod.ready_at <= self._nodes.now_seconds,
                work=float(pod.requests_in_flight),
                node_leaves=node is not None and node.is_deleting,
                others_on_node=0 if node is None else self._nodes.others_on(node, pool),
                is_on_spot=node is not None and self._nodes.pools[node.node_pool].is_spot,
            )
