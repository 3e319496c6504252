"""What does it cost to plan the nodes of a large fleet: 100 pools, 50 AcceleratorPools, 5,000 nodes?

Processor time, the best of several rounds: on a busy machine a clock would measure the neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from autoscaler.api.accelerator_pool import AcceleratorPool, InvalidAcceleratorPool, parse_accelerator_pool
from autoscaler.api.pool_observation import NodesByPool, PoolNode, observe_accelerator_pool
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.metrics import PoolKey
from autoscaler.observers.node_pools import NodePoolSeen
from autoscaler.observers.workload import ScaleTarget, TargetPart
from policies.capacity_split import CapacityType, TargetCounts
from tests.benchmarks.figure import Figure

ROUNDS = 20
SCALERS, POOLS, NODES = 100, 50, 5000


class LargeFleet:
    """AcceleratorPools with a floor of 20 % and ceilings; half of the scalers have two targets."""

    def __init__(self) -> None:
        self._pools = tuple(_a_pool(number) for number in range(POOLS))
        per_pool = NODES // POOLS
        self._seen = {
            f"{kind}-{number}": NodePoolSeen(f"{kind}-{number}", {"nvidia.com/gpu": "800", "cpu": "19200"}, count)
            for number in range(POOLS)
            for kind, count in (("od", per_pool // 5), ("spot", per_pool - per_pool // 5))
        }
        self.nodes = tuple(
            PoolNode(name, 8, True, "on-demand" if name.startswith("od") else "spot")
            for name, seen in self._seen.items()
            for _ in range(seen.nodes_in_use)
        )
        self.wishes = tuple(_a_wish(number) for number in range(SCALERS))
        self.referring: Mapping[PoolKey, str | None] = {wish.key: wish.accelerator_pool for wish in self.wishes}

    def accelerator_pools(self) -> Sequence[AcceleratorPool | InvalidAcceleratorPool]:
        """All of them."""
        return self._pools

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        """Two for each."""
        return self._seen


def measure() -> list[Figure]:
    """Milliseconds for splits, sharing and plans of all pools, and for the status of one and of all."""
    fleet = LargeFleet()
    keeper = NodeCapacityKeeper(fleet, fleet, None, "tokenscaler")
    plan = _milliseconds(lambda: keeper.provide(fleet.wishes, fleet.referring, 0.0))
    for pool in fleet.accelerator_pools():
        outcome = keeper.outcome(pool.name)
        assert outcome is not None
        assert outcome.plan is not None, outcome

    def count() -> None:
        nodes = NodesByPool(fleet.nodes)
        for pool in fleet.accelerator_pools():
            assert isinstance(pool, AcceleratorPool)
            observe_accelerator_pool(pool, nodes.of(pool), (), 0.0, keeper.outcome(pool.name))

    return [
        Figure("plans of all", f"{plan:.1f} ms", "<= 50 ms"),
        Figure("counting the nodes for all statuses", f"{_milliseconds(count):.1f} ms"),
    ]


def _a_pool(number: int) -> AcceleratorPool | InvalidAcceleratorPool:
    return parse_accelerator_pool(
        {
            "apiVersion": "tokenscaler.io/v1alpha1",
            "kind": "AcceleratorPool",
            "metadata": {"name": f"pool-{number}"},
            "spec": {
                "mode": "Manage",
                "nodePools": {"onDemand": f"od-{number}", "spot": f"spot-{number}"},
                "nodeShape": {"accelerators": 8, "cpu": 192},
                "split": {"onDemandFloorPercent": 20},
                "ceilings": {"accelerators": 1024, "dollarsPerHour": "6000"},
                "nodeDollarsPerHour": {"onDemand": "55.04", "spot": "20"},
            },
        }
    )


def _a_wish(number: int) -> ReplicaWish:
    count, size = 40 + number % 17, (8, 4, 2, 1)[number % 4]
    wish = ReplicaWish(
        key=("inference", f"scaler-{number}"),
        accelerator_pool=f"pool-{number % POOLS}",
        accelerators_per_replica=size,
        wanted=count + 3,
        desired=count,
        current=count - 2,
        minimum=2,
        priority=number % 3,
        will_be_written=True,
    )
    if number % 2:
        return wish
    parts = tuple(
        TargetPart(kind, ScaleTarget("inference", "Deployment", "a", "", "", ""), TargetCounts(each, each, each))
        for kind, each in ((CapacityType.ON_DEMAND, count // 5), (CapacityType.SPOT, count - count // 5))
    )
    return replace(wish, parts=parts)


def _milliseconds(action: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        action()
        best = min(best, time.process_time() - started)
    return 1000.0 * best
