"""A scaler that is deleted while a replica more stands for a move of nodes leaves its target as it was planned."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.controller.pool_report import Decided, Unobserved
from autoscaler.controller.surge_keeper import SurgeKeeper
from autoscaler.observers.workload import ScaleTarget, WorkloadUnavailable
from policies.history import MoveMemory
from policies.reasons import Reason
from tests.builders import NOW
from tests.pool_builders import a_decision_report, a_scaler


@dataclass
class Target:
    """A Deployment with its count, and who has written it."""

    replicas: int | None = 5
    fails: int = 0
    written: list[tuple[str, int]] = field(default_factory=list)

    def find(self, target: ScaleTarget) -> tuple[ScaleTarget, int] | None:
        return None if self.replicas is None else (replace(target, resource_version="now"), self.replicas)

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        assert from_replicas == self.replicas
        if self.fails:
            self.fails -= 1
            return ActuationFailed(Reason.CONFLICT, "changed")
        self.written.append((target.resource_version, to_replicas))
        self.replicas = to_replicas
        return Actuated(Reason.SUCCEEDED_RESCALE, "")


def report(moved: int) -> Decided:
    """Of four that are planned, with so many more asked for and written."""
    made = a_decision_report(replicas=4)
    decision = replace(made.decision, desired_replicas=4 + moved)
    history = replace(made.next_history, node_move=MoveMemory(moved_replicas=moved) if moved else None)
    return replace(made, decision=decision, next_history=history)


def kept(target: Target, *ticks: tuple[Decided | Unobserved, ...]) -> Target:
    keeper = SurgeKeeper(target.find, target)
    for reports in ticks:
        keeper.keep(reports)
    return target


UNREAD = Unobserved(a_scaler(), NOW, WorkloadUnavailable(Reason.STALE_CACHE, ""))


@pytest.mark.parametrize(
    ("target", "ticks", "written"),
    [
        pytest.param(Target(), [(report(1),), ()], [("now", 4)], id="it is given back"),
        pytest.param(Target(), [(report(1),), (), ()], [("now", 4)], id="once"),
        pytest.param(Target(fails=1), [(report(1),), (), ()], [("now", 4)], id="tried again where that fails"),
        pytest.param(Target(), [(report(1),), (UNREAD,), ()], [("now", 4)], id="it could not be read meanwhile"),
        pytest.param(Target(), [(report(1),), (report(1),)], [], id="the scaler is there"),
        pytest.param(Target(), [(report(0),), ()], [], id="nothing stood beside the plan"),
        pytest.param(Target(), [(report(1),), (report(0),), ()], [], id="the move has ended before"),
        pytest.param(Target(replicas=7), [(report(1),), ()], [], id="somebody has set another count"),
        pytest.param(Target(replicas=None), [(report(1),), ()], [], id="the target is gone too"),
    ],
)
def test_what_a_deleted_scaler_leaves(
    target: Target, ticks: list[tuple[Decided | Unobserved, ...]], written: list[tuple[str, int]]
) -> None:
    assert kept(target, *ticks).written == written


def test_who_leads_next_knows_of_nothing() -> None:
    target = Target()
    keeper = SurgeKeeper(target.find, target)
    keeper.keep((report(1),))
    keeper.forget_all()
    keeper.keep(())
    assert target.written == []
