"""When nodes may be taken away: what is written to NodePools, and what is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.api.accelerator_pool import AcceleratorPool, parse_accelerator_pool
from autoscaler.api.held_budgets import HeldBudgets, closed_over, reopened, write_held
from autoscaler.api.pool_observation import PoolNode
from autoscaler.clock import ManualClock
from autoscaler.controller.node_disruption import NodeDisruptionKeeper
from autoscaler.controller.pool_report import Decided
from autoscaler.observers.node_pools import DisruptionSeen, NodePoolSeen
from policies.latency_class import ConsolidationSettings
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from tests.builders import NOW
from tests.pool_builders import a_decision_report, a_scaler

OWN: tuple[dict[str, Any], ...] = ({"nodes": "10%"},)
SPEC: dict[str, Any] = {
    "mode": "Manage",
    "manageDisruption": True,
    "nodePools": {"onDemand": "od"},
    "nodeShape": {"accelerators": 8},
}

OPEN = DisruptionSeen(ConsolidationSettings("WhenEmpty", 300.0, None), "5m", OWN)


@dataclass
class FakeNodePool:
    """One AcceleratorPool over one NodePool; what is written is seen at once."""

    spec: dict[str, Any] = field(default_factory=lambda: dict(SPEC))
    seen: DisruptionSeen = OPEN
    refusal: ActuationFailed | None = None
    writes: list[str] = field(default_factory=list)

    def accelerator_pools(self) -> Sequence[AcceleratorPool]:
        document = {"apiVersion": "tokenscaler.io/v1alpha1", "kind": "AcceleratorPool", "metadata": {"name": "h100"}}
        pool = parse_accelerator_pool(document | {"spec": self.spec})
        assert isinstance(pool, AcceleratorPool), pool
        return (pool,)

    def node_pools(self) -> Mapping[str, NodePoolSeen]:
        return {"od": NodePoolSeen("od", {}, 2, disruption=self.seen)}

    def nodes(self) -> Sequence[PoolNode]:
        return ()

    def close(self, name: str, seen: DisruptionSeen, now_seconds: float) -> Actuated | ActuationFailed:
        held, budgets = write_held(seen.budgets, now_seconds), tuple(closed_over(seen.budgets))
        return self._written("close", seen, replace(seen, held=held, budgets=budgets))

    def reopen(self, name: str, seen: DisruptionSeen, held: HeldBudgets) -> Actuated | ActuationFailed:
        return self._written("reopen", seen, replace(seen, held=None, budgets=tuple(reopened(seen.budgets, held))))

    def set_consolidation(self, name: str, seen: DisruptionSeen, policy: str, after: str) -> Actuated | ActuationFailed:
        settings = ConsolidationSettings(policy, {"30m": 1800.0}[after], None)
        return self._written(f"{policy} {after}", seen, replace(seen, settings=settings, consolidate_after=after))

    def _written(self, what: str, before: DisruptionSeen, after: DisruptionSeen) -> Actuated | ActuationFailed:
        assert before == self.seen
        if self.refusal is not None:
            return self.refusal
        self.writes.append(what)
        self.seen = after
        return Actuated(Reason.DISRUPTION_SET, what)


def a_report(*, starting: int = 0) -> Decided:
    scaler = a_scaler(acceleratorPoolRef={"name": "h100"})
    return a_decision_report(scaler=scaler, replicas=ReplicaCounts(4, 4, 4 - starting, starting=starting))


AT_REST, GROWING = a_report(), a_report(starting=1)


def keeper_of(pool: FakeNodePool, clock: ManualClock) -> NodeDisruptionKeeper:
    return NodeDisruptionKeeper(pool, pool, clock)


def told(keeper: NodeDisruptionKeeper) -> tuple[Reason, str]:
    outcome = keeper.outcome("h100")
    assert outcome is not None
    return outcome.reason, outcome.message


def test_budgets_are_closed_while_replicas_start_and_opened_five_minutes_after() -> None:
    pool, clock = FakeNodePool(), ManualClock(NOW)
    keeper = keeper_of(pool, clock)
    keeper.keep([AT_REST])
    assert told(keeper) == (Reason.DISRUPTION_ALLOWED, "the NodePools' own budgets count")
    for _ in range(3):
        clock.advance(15.0)
        keeper.keep([GROWING])
    assert pool.writes == ["close"]
    assert pool.seen.budgets == ({"nodes": "0"}, *OWN)
    assert told(keeper) == (
        Reason.POOL_GROWS,
        "no node is taken away (budgets closed: od), as the pool grows: inference/llama",
    )
    clock.advance(300.0)
    keeper.keep([AT_REST])
    assert pool.writes == ["close", "reopen"]
    assert pool.seen.budgets == OWN


def test_another_process_takes_over_what_a_crashed_one_has_closed() -> None:
    pool, clock = FakeNodePool(), ManualClock(NOW)
    keeper_of(pool, clock).keep([GROWING])
    heir = keeper_of(pool, clock)
    for _ in range(25):
        clock.advance(15.0)
        heir.keep([AT_REST])
    assert pool.writes == ["close", "reopen"]
    assert pool.seen.budgets == OWN


def test_what_nobody_wants_managed_any_more_is_given_back() -> None:
    pool, clock = FakeNodePool(), ManualClock(NOW)
    keeper = keeper_of(pool, clock)
    keeper.keep([GROWING])
    pool.spec = SPEC | {"manageDisruption": False}
    keeper.keep([GROWING])
    assert pool.writes == ["close", "reopen"]
    assert keeper.outcome("h100") is None


def test_nothing_is_written_where_nobody_asked_for_it() -> None:
    pool, clock = FakeNodePool(spec=SPEC | {"manageDisruption": False, "latencyClass": "Batch"}), ManualClock(NOW)
    keeper_of(pool, clock).keep([GROWING])
    assert pool.writes == []


def test_consolidation_is_set_by_the_class_once() -> None:
    pool, clock = FakeNodePool(spec=SPEC | {"latencyClass": "Interactive"}), ManualClock(NOW)
    keeper = keeper_of(pool, clock)
    for _ in range(3):
        keeper.keep([AT_REST])
    assert pool.writes == ["WhenEmpty 30m"]

    pool.seen = replace(pool.seen, settings=ConsolidationSettings("WhenEmpty", 300.0, None), consolidate_after="5m")
    keeper.keep([AT_REST])
    assert pool.writes == ["WhenEmpty 30m"]
    assert told(keeper) == (
        Reason.COMPETING_WRITER,
        "somebody has set the consolidation of NodePool od back; it is left alone",
    )


def test_a_refused_write_is_said_and_tried_again() -> None:
    pool, clock = FakeNodePool(refusal=ActuationFailed(Reason.FORBIDDEN, "patch: no")), ManualClock(NOW)
    keeper = keeper_of(pool, clock)
    keeper.keep([GROWING])
    assert told(keeper) == (Reason.FORBIDDEN, "patch: no")
    pool.refusal = None
    keeper.keep([GROWING])
    assert pool.writes == ["close"]
