"""One ceiling in dollars an hour for the nodes of all AcceleratorPools: who may grow, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.controller.node_capacity import NodeCapacityKeeper
from autoscaler.controller.replica_wish import ReplicaWish
from autoscaler.observers.node_pools import NodePoolSeen
from policies.node_capacity import MICRO_DOLLARS
from policies.reasons import Reason

CEILING = 500 * MICRO_DOLLARS  # ten nodes at 50


@dataclass
class FakeFleet:
    """AcceleratorPools a and b, on a NodePool each of the same name, and the nodes that stand there or go."""

    specs: dict[str, dict[str, Any]] = field(default_factory=lambda: {"a": {}, "b": {}})
    standing: dict[str, int] = field(default_factory=dict)
    deleting: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)

    def accelerator_pools(self) -> tuple[AcceleratorPool, ...]:
        return tuple(_pool(name, spec) for name, spec in self.specs.items())

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return {
            name: NodePoolSeen(
                name,
                {"nvidia.com/gpu": str(8 * self.limits.get(name, 0))},
                self.standing.get(name, 0),
                limit_managers=("tokenscaler",),
                nodes_deleting=self.deleting.get(name, 0),
            )
            for name in self.specs
        }

    def write(self, name: str, before: Mapping[str, str], after: Mapping[str, str]) -> Actuated | ActuationFailed:
        self.limits[name] = int(after["nvidia.com/gpu"]) // 8
        return Actuated(Reason.LIMITS_IN_STEP, "")


def _pool(name: str, changes: dict[str, Any]) -> AcceleratorPool:
    spec: dict[str, Any] = {
        "mode": "Manage",
        "nodePools": {"onDemand": name},
        "nodeShape": {"accelerators": 8},
        "nodeDollarsPerHour": {"onDemand": "50"},
        "slackNodes": 0,
    } | changes
    document = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": name}}
    pool = parse_accelerator_pool(document | {"spec": {key: value for key, value in spec.items() if value is not None}})
    assert isinstance(pool, AcceleratorPool), pool
    return pool


def keeper_of(fleet: FakeFleet) -> NodeCapacityKeeper:
    return NodeCapacityKeeper(fleet, fleet, fleet, "tokenscaler", ceiling_per_hour=CEILING)


def wish(pool: str, wanted: int, priority: int = 0, *, current: int = 0) -> ReplicaWish:
    """Of a scaler that is named as its pool; each replica takes a node."""
    return ReplicaWish(("n", pool), pool, 8, wanted, wanted, current, 0, priority, will_be_written=True)


def provide(keeper: NodeCapacityKeeper, *wishes: ReplicaWish, at: float = 0.0) -> None:
    keeper.provide(wishes, {each.key: each.accelerator_pool for each in wishes}, at)


def allowed(keeper: NodeCapacityKeeper, pool: str) -> int:
    allowance = keeper.allowance(("n", pool))
    assert allowance is not None
    return allowance.replicas


@pytest.mark.parametrize(
    ("fleet", "wishes", "limits", "allowances"),
    [
        pytest.param(FakeFleet(), [wish("a", 3), wish("b", 4)], (3, 4), (6, 7), id="enough for both, and a rest"),
        pytest.param(FakeFleet(), [wish("a", 8), wish("b", 9)], (5, 5), (5, 5), id="equals share evenly"),
        pytest.param(FakeFleet(), [wish("a", 8), wish("b", 9, 10)], (1, 9), (1, 9), id="by priority of their scalers"),
        pytest.param(
            FakeFleet(standing={"a": 8}, limits={"a": 8}),
            [wish("a", 8, current=8), wish("b", 9, 10)],
            (8, 2),
            (1, 9),
            id="the nodes of one that must yield are paid for until they have gone",
        ),
        pytest.param(
            FakeFleet(standing={"a": 2}, deleting={"a": 4}, limits={"a": 6}),
            [wish("a", 2), wish("b", 9, 10)],
            (2, 4),
            (1, 9),
            id="nodes that are being deleted cost too",
        ),
        pytest.param(
            FakeFleet(specs={"a": {"slackNodes": 2}, "b": {"slackNodes": 2}}),
            [wish("a", 4), wish("b", 4)],
            (6, 4),
            (6, 6),
            id="replicas of all pools come before nodes to spare",
        ),
        pytest.param(
            FakeFleet(specs={"a": {"ceilings": {"dollarsPerHour": "150"}}, "b": {}}),
            [wish("a", 8), wish("b", 4)],
            (3, 4),
            (3, 7),
            id="a pool's own ceiling holds as well",
        ),
    ],
)
def test_pools_share_a_ceiling(
    fleet: FakeFleet, wishes: list[ReplicaWish], limits: tuple[int, int], allowances: tuple[int, int]
) -> None:
    keeper = keeper_of(fleet)
    provide(keeper, *wishes)
    assert (fleet.limits.get("a", 0), fleet.limits.get("b", 0)) == limits
    assert (allowed(keeper, "a"), allowed(keeper, "b")) == allowances


def test_who_may_grow_does_so_as_the_nodes_of_others_go() -> None:
    fleet = FakeFleet(standing={"a": 8}, limits={"a": 8})
    keeper = keeper_of(fleet)
    wishes = [wish("a", 8, current=8), wish("b", 9, 10)]
    provide(keeper, *wishes)
    fleet.standing, fleet.deleting = {"a": 1, "b": 2}, {"a": 7}
    provide(keeper, wish("a", 1, current=1), wishes[1], at=70.0)
    assert fleet.limits["b"] == 2, "seven nodes of a are still paid for"
    assert (allowed(keeper, "a"), allowed(keeper, "b")) == (1, 9), "and no count that was asked for falls meanwhile"
    fleet.deleting = {}
    provide(keeper, wish("a", 1, current=1), wishes[1], at=140.0)
    assert fleet.limits == {"a": 1, "b": 9}


def test_what_the_shared_ceiling_takes_is_told() -> None:
    keeper = keeper_of(FakeFleet())
    provide(keeper, wish("a", 8), wish("b", 9))
    outcome, allowance = keeper.outcome("a"), keeper.allowance(("n", "a"))
    assert outcome is not None
    assert outcome.plan is not None
    assert allowance is not None
    step = outcome.plan.node_pools[0].steps[0]
    assert (step.reason, step.message) == (
        Reason.SHARED_DOLLAR_CEILING,
        "replicas take 8 nodes, the ceiling leaves 5, 5 of them here",
    )
    assert allowance.because == "40 accelerators of a (within the dollars an hour of all pools), shared by priority"


def test_a_pool_without_prices_stays_as_it_is_and_says_why() -> None:
    fleet = FakeFleet(specs={"a": {}, "b": {"nodeDollarsPerHour": None}}, limits={"b": 2})
    keeper = keeper_of(fleet)
    provide(keeper, wish("a", 3), wish("b", 4))
    assert fleet.limits == {"a": 3, "b": 2}
    outcome = keeper.outcome("b")
    assert outcome is not None
    assert (outcome.reason, outcome.plan) == (Reason.NODE_PRICE_UNKNOWN, None)


def test_what_is_only_observed_is_paid_for_first() -> None:
    fleet = FakeFleet(specs={"a": {}, "b": {"mode": "Observe"}}, standing={"b": 6}, deleting={"b": 1})
    provide(keeper_of(fleet), wish("a", 8), wish("b", 20))
    assert fleet.limits == {"a": 3}


def test_a_pool_of_which_not_all_is_known_keeps_what_it_has() -> None:
    fleet = FakeFleet(standing={"b": 6}, limits={"b": 6})
    keeper = keeper_of(fleet)
    keeper.provide([wish("a", 9, 10)], {("n", "a"): "a", ("n", "b"): "b"}, 0.0)
    assert fleet.limits == {"a": 4, "b": 6}


def test_a_new_leader_decides_within_the_shares_of_its_first_look() -> None:
    keeper = keeper_of(FakeFleet())
    first = keeper.first_allowances([wish("a", 8), wish("b", 9, 10)], 0.0)
    assert {key[1]: allowance.replicas for key, allowance in first.items()} == {"a": 1, "b": 9}


def test_without_the_ceiling_prices_are_nobodys_business() -> None:
    fleet = FakeFleet()
    keeper = NodeCapacityKeeper(fleet, fleet, fleet, "tokenscaler")
    provide(keeper, wish("a", 8), replace(wish("b", 9)))
    assert fleet.limits == {"a": 8, "b": 9}
    assert keeper.allowance(("n", "a")) is None
