"""Small fleets on simulated nodes for tests: launches and starts take exactly as long as said."""

from __future__ import annotations

from collections.abc import Iterator

from autoscaler.api.node_shape import NodeShape
from autoscaler.replay.cold_start import ColdStart, ColdStartPhase
from autoscaler.replay.node_setup import NodePoolSetup, NodesSetup
from autoscaler.replay.serving_replica import Request
from autoscaler.replay.simulated_fleet import SimulatedFleet
from autoscaler.replay.simulated_nodes import SimulatedNodes
from autoscaler.replay.simulated_pool import SimulatedPool
from policies.capacity_split import CapacityType
from tests.autoscaler.replay.simulated_pools import KEY, STARTED_AT, a_setup

LAUNCH_SECONDS, IMAGE_SECONDS, LOAD_SECONDS = 100.0, 20.0, 30.0
PRICES = {CapacityType.ON_DEMAND: 3.0, CapacityType.SPOT: 1.0}


def node_pool(name: str = "od", **more: object) -> NodePoolSetup:
    """An on-demand NodePool, unless it is called spot; empty nodes stay for an hour unless it is said otherwise."""
    kind = CapacityType.SPOT if name.startswith("spot") else CapacityType.ON_DEMAND
    given: dict[str, object] = {"consolidate_after_seconds": 3600.0} | more
    return NodePoolSetup(name, kind, **given)  # type: ignore[arg-type]


def nodes_setup(*pools: NodePoolSetup, accelerators: int = 2) -> NodesSetup:
    shape = NodeShape({"nvidia.com/gpu": str(accelerators), "cpu": str(12 * accelerators)})
    return NodesSetup(shape, ColdStartPhase("node", LAUNCH_SECONDS, 0.0), pools or (node_pool(),), PRICES)


def a_node_fleet(
    *pools: NodePoolSetup,
    accelerators: int = 2,
    requests: Iterator[Request] | None = None,
    seed: int = 1,
    **setup: object,
) -> SimulatedFleet:
    """One pool of replicas with one accelerator each, on nodes of two."""
    phases = (ColdStartPhase("image", IMAGE_SECONDS, 0.0), ColdStartPhase("load", LOAD_SECONDS, 0.0))
    pool_setup = a_setup(**({"cold_start": ColdStart(phases)} | setup))  # type: ignore[arg-type]
    nodes = SimulatedNodes(nodes_setup(*pools, accelerators=accelerators), seed, STARTED_AT, STARTED_AT)
    return SimulatedFleet([(pool_setup, requests or iter(()))], STARTED_AT, seed, nodes)


def only_pool(fleet: SimulatedFleet) -> SimulatedPool:
    return fleet.pools[KEY]


def nodes_of(fleet: SimulatedFleet) -> dict[str, int]:
    """Nodes that exist, by NodePool; those with a notice too."""
    assert fleet.nodes is not None
    return {name: pool.existing_nodes for name, pool in fleet.nodes.pools.items()}


def after(fleet: SimulatedFleet, seconds: float) -> SimulatedFleet:
    """The fleet so many seconds after its start."""
    fleet.advance(STARTED_AT + seconds)
    return fleet
