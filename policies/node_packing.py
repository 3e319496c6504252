"""On how many nodes do replicas find their places, by accelerators, and by what is left of CPU and memory?

A node gives its CPU and memory to the system and to the DaemonSets that run on it first: so fewer replicas may fit than
its accelerators say, and every node that this costs is one more in all keys of a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from policies.accelerator_sharing import AcceleratorDemand

# What is not known binds nothing.
_PLENTY = 2**62

_Places = tuple[int, int, int]
"""Accelerators, thousandths of a CPU, bytes of memory: free on a node, or taken by a replica."""


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What replicas may have of a new node, beside the system and DaemonSets. None: not known, and not looked at."""

    accelerators: int
    cpu_millis: int | None = None
    memory_bytes: int | None = None

    def replicas_of(self, demand: AcceleratorDemand) -> int:
        """The replicas of one kind that fit on a node together; 0 for what fits on none, or needs several."""
        return _fit(self._places, _places_of(demand))

    def replicas_beside(self, demand: AcceleratorDemand, others: Iterable[AcceleratorDemand]) -> int:
        """The replicas of one kind for which a node has room beside one replica of each of the others."""
        free = self._places
        for other in others:
            free = _less(free, _places_of(other), 1)
        return max(0, _fit(free, _places_of(demand)))

    @property
    def _places(self) -> _Places:
        cpu_millis, memory_bytes = self.cpu_millis, self.memory_bytes
        return (
            self.accelerators,
            _PLENTY if cpu_millis is None else max(0, cpu_millis),
            _PLENTY if memory_bytes is None else max(0, memory_bytes),
        )


def nodes_for(room: NodeRoom, demands: Iterable[AcceleratorDemand]) -> int:
    """The nodes that all replicas take, the largest placed first; one larger than a node takes whole nodes.

    First fit in falling order needs no more nodes than any order where sizes divide each other (1, 2, 4, 8). A replica
    that fits on no node, for its CPU or memory, is counted with a node of its own.
    """
    replicas_by_size: Counter[_Places] = Counter()
    whole_nodes = 0
    for demand in demands:
        replicas = max(demand.wanted_replicas, demand.current_replicas)
        if room.replicas_of(demand) == 0:
            whole_nodes += replicas * max(1, -(-demand.accelerators_per_replica // max(1, room.accelerators)))
        else:
            replicas_by_size[_places_of(demand)] += replicas
    nodes_by_free: Counter[_Places] = Counter()
    for size in sorted(replicas_by_size, reverse=True):
        _place(size, replicas_by_size[size], room._places, nodes_by_free)
    return whole_nodes + sum(nodes_by_free.values())


def _places_of(demand: AcceleratorDemand) -> _Places:
    return demand.accelerators_per_replica, demand.cpu_millis, demand.memory_bytes


def _fit(free: _Places, size: _Places) -> int:
    """How many of this size there is room for. What a replica does not ask for binds nothing."""
    return min((there // each for there, each in zip(free, size, strict=True) if each), default=0)


def _place(size: _Places, replicas: int, empty: _Places, nodes_by_free: Counter[_Places]) -> None:
    """Places replicas of one size: the fullest nodes that have room first, then new ones."""
    for free in sorted(free for free in nodes_by_free if _fit(free, size)):
        nodes = min(nodes_by_free[free], -(-replicas // _fit(free, size)))
        replicas = _fill(size, replicas, free, nodes, nodes_by_free)
        nodes_by_free[free] -= nodes
    new_nodes = -(-replicas // _fit(empty, size))
    _fill(size, replicas, empty, new_nodes, nodes_by_free)


def _fill(size: _Places, replicas: int, free: _Places, nodes: int, nodes_by_free: Counter[_Places]) -> int:
    """Fills so many nodes, the last one perhaps in part; returns the replicas that are left."""
    fit = _fit(free, size)
    placed = min(replicas, nodes * fit)
    full, rest = divmod(placed, fit)
    nodes_by_free[_less(free, size, fit)] += full
    if rest:
        nodes_by_free[_less(free, size, rest)] += 1
    return replicas - placed


def _less(free: _Places, size: _Places, replicas: int) -> _Places:
    return free[0] - replicas * size[0], free[1] - replicas * size[1], free[2] - replicas * size[2]
