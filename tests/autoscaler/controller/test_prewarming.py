from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.node_holder import HeldPool
from autoscaler.actuators.placeholder_pods import PlaceholderPods
from autoscaler.api.prewarm import PlaceholderRef, Prewarm
from autoscaler.controller.prewarming import Prewarmer, PrewarmPlan
from autoscaler.controller.replica_wish import ReplicaWish, node_demands
from autoscaler.observers.placeholders import Placeholders
from autoscaler.observers.workload import ScaleTarget
from policies.node_capacity import WarmOutcome
from policies.node_packing import NodeRoom
from policies.reasons import Reason
from tests.builders import a_decision_input, a_policy

KEY = ("inference", "chat")
PREWARM = Prewarm(method="PlaceholderPods", placeholderRef={"namespace": "inference", "name": "warm"}, spareNodes=1)
POOL = HeldPool("h100", "uid", PREWARM, "od", NodeRoom(8))


@dataclass
class FakePlaceholders:
    """A Deployment of placeholders of 4 accelerators each, and the actuator that writes its count."""

    replicas: int = 0
    missing: str = ""
    written: list[int] = field(default_factory=list)
    refusal: ActuationFailed | None = None

    def placeholders(self, reference: PlaceholderRef) -> Placeholders | str:
        target = ScaleTarget(reference.namespace, "Deployment", reference.name, "", "", "")
        return self.missing or Placeholders(target, self.replicas, 4)

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        assert (target.name, from_replicas) == ("warm", self.replicas)
        self.written.append(to_replicas)
        return self.refusal or Actuated(Reason.SUCCEEDED_RESCALE, "")


def a_wish(desired: int, minimum_expected: int = 1, *, written: bool = True) -> ReplicaWish:
    """The wish of a pool whose policy asks for so many replicas at least."""
    policy = a_policy(signals={"kvCache": {}}, minReplicas=minimum_expected)
    wish = ReplicaWish(KEY, "h100", 8, desired, desired, desired, 1, 0, will_be_written=written)
    return replace(wish, decision_input=a_decision_input(policy))


def a_plan(
    fake: FakePlaceholders, wish: ReplicaWish, ceiling: int | None = None, *, dry_run: bool = False
) -> tuple[PrewarmPlan | WarmOutcome, WarmOutcome | None]:
    prewarmer = Prewarmer(PlaceholderPods(fake, fake), None, is_dry_run=dry_run)
    plan = prewarmer.plan(POOL, {KEY: node_demands(wish, None)}, {KEY: wish}, ceiling, 0.0)
    return plan, prewarmer.carry_out(plan) if isinstance(plan, PrewarmPlan) else None


@pytest.mark.parametrize(
    ("wish", "ceiling", "stands", "written"),
    [
        pytest.param(a_wish(3), None, 0, [2], id="a node to spare takes two placeholders of half a node"),
        pytest.param(a_wish(3, 5), None, 2, [6], id="two more nodes are foreseen"),
        pytest.param(a_wish(5, 5), None, 6, [2], id="they go as replicas are asked for"),
        pytest.param(a_wish(5, 5), None, 2, [], id="as many as there are"),
        pytest.param(a_wish(3, 5), 4, 0, [2], id="the ceiling leaves one"),
        pytest.param(a_wish(3, 5, written=False), None, 0, [2], id="a pool that is not written wants none"),
    ],
)
def test_placeholders_hold_what_is_expected_and_spare(
    wish: ReplicaWish, ceiling: int | None, stands: int, written: list[int]
) -> None:
    fake = FakePlaceholders(stands)
    plan, outcome = a_plan(fake, wish, ceiling)
    assert isinstance(plan, PrewarmPlan)
    assert (fake.written, outcome) == (written, WarmOutcome(Reason.NODES_HELD_READY, plan.sentence))
    assert plan.demand.wanted_replicas == plan.pods
    assert plan.demand.current_replicas == 0, "what is given up goes at once"


def test_what_stands_in_the_way_is_said() -> None:
    plan, _ = a_plan(FakePlaceholders(missing="there is no Deployment inference/warm"), a_wish(3))
    assert plan == WarmOutcome(Reason.PLACEHOLDERS_NOT_FOUND, "there is no Deployment inference/warm")
    _, problem = a_plan(FakePlaceholders(), a_wish(3), dry_run=True)
    assert problem == WarmOutcome(Reason.DRY_RUN, "Deployment inference/warm would be set from 0 to 2")
    _, problem = a_plan(FakePlaceholders(refusal=ActuationFailed(Reason.FORBIDDEN, "403")), a_wish(3))
    assert problem == WarmOutcome(Reason.FORBIDDEN, "403")


def test_a_plan_says_what_nodes_are_held_for() -> None:
    plan, _ = a_plan(FakePlaceholders(), a_wish(3, 5))
    assert isinstance(plan, PrewarmPlan)
    assert plan.sentence == "3 nodes held ready by Deployment inference/warm (2 for what is expected, 1 to spare)"
