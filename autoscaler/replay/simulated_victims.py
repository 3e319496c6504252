"""Where are the replicas of a simulated pool, and which go when its count falls? Chosen as in the cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.observers.replica_places import Places
from autoscaler.observers.workload import LivePod, ScaleTarget
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.simulated_pool import SimulatedPool
from policies.capacity_split import CapacityType
from policies.victims import PlacedReplica, choose_victims
from policies.wording import counted


class SimulatedVictims:
    """A VictimMarker and a PlaceSource over simulated nodes. `pool_of` finds a target's pool; None: not simulated."""

    def __init__(self, nodes: SimulatedNodes, pool_of: Callable[[ScaleTarget], SimulatedPool | None]) -> None:
        self._nodes = nodes
        self._pool_of = pool_of

    def mark(self, fall: CountFall) -> ChosenVictims:
        """Gives those that should go the lowest deletion costs, and takes away what an earlier choice has left.

        A simulated victim gets no new requests in any case, and ends those that it has before it goes.
        """
        pool = self._pool_of(fall.target)
        if pool is None:
            return ChosenVictims(fall.to_replicas, (), 0, "")
        kind = pool.kind_of(fall.target.name)
        fewer = -(-(fall.from_replicas - fall.to_replicas) // self._nodes.copies)
        split = fall.split
        if split is not None:
            split = replace(split, on_demand=split.on_demand - self._empty_on_demand(pool))
        victims = choose_victims(self._placed(pool, kind), fewer, split)
        ranks = {name: rank - len(victims.names) for rank, name in enumerate(victims.names)}
        for pod in pool.existing_pods:
            if pod.capacity_type is kind:
                pod.deletion_cost = ranks.get(pod.name, 0)
        emptied = len(victims.emptied_nodes) * self._nodes.copies
        return ChosenVictims(fall.to_replicas, victims.names, emptied, f"{counted(emptied, 'node')} will be empty")

    def places_of(self, target: ScaleTarget, pods: Sequence[LivePod]) -> Places:
        """Where the replicas are that go on; nowhere for a target that is not simulated."""
        del pods  # the pool has them
        pool = self._pool_of(target)
        if pool is None:
            return Places((), 0)
        return Places(tuple(self._placed(pool, pool.kind_of(target.name))), self._empty_on_demand(pool))

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        """Nothing is remembered."""

    def _empty_on_demand(self, pool: SimulatedPool) -> int:
        """On-demand nodes of the pool's NodePools on which nothing goes on: they go by themselves, or are held."""
        filled = self._nodes.filled_nodes()
        used = {node.node_pool for pod in pool.existing_pods if (node := self._nodes.node_of(pod)) is not None}
        on_demand = [each for name, each in self._nodes.pools.items() if name in used and not each.is_spot]
        return sum(not node.is_deleting and node.name not in filled for each in on_demand for node in each.nodes)

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
