"""On which nodes does a replica find room? The fullest node that has enough, as a bin-packing scheduler does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.replay.simulated_node_pool import SimulatedNode


@dataclass(frozen=True, slots=True)
class Shape:
    """What a replica takes: so many accelerators on each of so many nodes. Beyond one node it takes whole ones."""

    accelerators: int
    nodes: int = 1


def shape_of_replica(accelerators_per_replica: int, accelerators_per_node: int) -> Shape:
    """A replica of 4 takes half of a node of 8, one of 12 two whole nodes."""
    if accelerators_per_replica <= accelerators_per_node:
        return Shape(accelerators_per_replica)
    return Shape(accelerators_per_node, -(-accelerators_per_replica // accelerators_per_node))


def find_place(shape: Shape, nodes: Iterable[SimulatedNode]) -> Sequence[SimulatedNode] | None:
    """The nodes that a replica goes to, the fullest first, then the oldest; None where there is not enough room."""
    fitting = [node for node in nodes if node.free_accelerators >= shape.accelerators]
    if len(fitting) < shape.nodes:
        return None
    fitting.sort(key=lambda node: (node.free_accelerators, node.launched_at, node.name))
    return fitting[: shape.nodes]


def missing_nodes(waiting: Sequence[Shape], free_by_node: Mapping[str, int], accelerators_per_node: int) -> int:
    """How many nodes are to be launched, so that all that wait have a place, with those that are on their way.

    `free_by_node` holds the nodes that are there and those that are being launched.
    """
    free = sorted(free_by_node.values())
    missing = 0
    for shape in waiting:
        for _ in range(shape.nodes):
            place = next((place for place, left in enumerate(free) if left >= shape.accelerators), None)
            if place is None:
                missing += 1
                free.append(accelerators_per_node - shape.accelerators)
            else:
                free[place] -= shape.accelerators
            free.sort()
    return missing
