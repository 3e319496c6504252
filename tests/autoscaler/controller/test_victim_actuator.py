from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.victim_marker import ChosenVictims, CountFall
from autoscaler.controller.actuation import Considered, carry_out
from autoscaler.controller.pool_report import Decided
from autoscaler.observers.workload import ScaleTarget
from policies.history import ScaleEvent, planned_replicas
from policies.parameters import Mode
from policies.reasons import Reason
from tests.builders import a_history
from tests.pool_builders import a_decision_report, a_scaler


@dataclass
class FakeScale:
    """An actuator that writes what it is told, unless it refuses."""

    refuses: bool = False
    written: list[int] = field(default_factory=list)

    def scale(self, target: ScaleTarget, from_replicas: int, to_replicas: int) -> Actuated | ActuationFailed:
        if self.refuses:
            return ActuationFailed(Reason.CONFLICT, "refused")
        self.written.append(to_replicas)
        return Actuated(Reason.SUCCEEDED_RESCALE, f"{from_replicas} -> {to_replicas}")


@dataclass
class FakeMarker:
    """A marker by which so many of those that drain are done; `asked` is what it was asked for."""

    done: int = 0
    asked: list[str] = field(default_factory=list)
    gone: int = 0

    def mark(self, fall: CountFall) -> ChosenVictims:
        if fall.drain_seconds is None:
            self.asked.append("mark")
            return self._chosen(fall.to_replicas, fall.from_replicas - fall.to_replicas, "marked")
        self.asked.append(f"drain within {fall.drain_seconds:g} s")
        return self._chosen(fall.from_replicas - self.done, self.done, "drains")

    def note_written(self, target: ScaleTarget, victims: ChosenVictims) -> None:
        self.gone += len(victims.names)

    def _chosen(self, to_replicas: int, gone: int, message: str) -> ChosenVictims:
        return ChosenVictims(to_replicas, tuple(f"llama-{i}" for i in range(gone)), gone, message)


def decide(
    scale: FakeScale, marker: FakeMarker, *, waiting: float = 20.0, spec: dict[str, Any] | None = None, **workload: Any
) -> Decided:
    """What comes of a decision for a pool of four; ten waiting requests a replica are as it wants."""
    wanted = {"scaleDownVictims": "WholeNodes", "scaleDownDrainSeconds": 60} if spec is None else spec
    report = a_decision_report(scaler=a_scaler(**wanted), waiting=waiting, **workload)
    considered = Considered(report.scaler, report.workload, report.decision_input, report.decision)
    return carry_out(considered, dict.fromkeys(Mode, scale), marker=marker)


def downward(report: Decided) -> int:
    """The change that counts for rate policies."""
    return sum(event.change for event in report.next_history.scale_events)


def test_nothing_is_written_while_all_end_their_requests() -> None:
    scale, marker = FakeScale(), FakeMarker()
    report = decide(scale, marker)
    assert report.decision.desired_replicas == 2
    assert (scale.written, downward(report), marker.gone) == ([], 0, 0)
    assert report.actuation.reason is Reason.DRAINING
    assert marker.asked == ["drain within 60 s"]


def test_the_count_falls_by_those_that_are_done_and_rates_count_no_more() -> None:
    scale, marker = FakeScale(), FakeMarker(done=1)
    report = decide(scale, marker)
    assert (scale.written, downward(report), marker.gone) == ([3], -1, 1)
    assert report.actuation.reason is Reason.SUCCEEDED_RESCALE
    assert (report.actuation.message, report.actuation.emptied_nodes) == ("4 -> 3; drains", 1)
    assert report.next_history.scale_events == (ScaleEvent(report.now_seconds, -1),)


@pytest.mark.parametrize(
    ("change", "asked", "written"),
    [
        pytest.param({"waiting": 80.0}, [], [8], id="who grows chooses nobody"),
        pytest.param({"waiting": 40.0}, [], [], id="nor who stays"),
        pytest.param({"spec": {"scaleDownVictims": "WholeNodes"}}, ["mark"], [2], id="without a time they go at once"),
        pytest.param({"spec": {}}, [], [2], id="left to the ReplicaSet nobody is asked"),
        pytest.param({"is_rolling_out": True}, ["mark"], [2], id="during a rollout nobody can say who goes"),
    ],
)
def test_who_is_asked(change: dict[str, Any], asked: list[str], written: list[int]) -> None:
    scale, marker = FakeScale(), FakeMarker()
    decide(scale, marker, **change)
    assert (marker.asked, scale.written) == (asked, written)


def test_a_refused_count_lets_nobody_go() -> None:
    marker = FakeMarker(done=2)
    report = decide(FakeScale(refuses=True), marker)
    assert (marker.gone, report.actuation.reason, report.actuation.emptied_nodes) == (0, Reason.CONFLICT, 0)
    assert report.actuation.message == "refused; drains"


def test_a_pool_that_goes_to_sleep_is_not_taken_out_of_the_router() -> None:
    scale, marker = FakeScale(), FakeMarker()
    report = a_decision_report(scaler=a_scaler(scaleDownVictims="WholeNodes", scaleDownDrainSeconds=60))
    asleep = replace(report.decision, desired_replicas=0)
    considered = Considered(report.scaler, report.workload, report.decision_input, asleep)
    carry_out(considered, dict.fromkeys(Mode, scale), marker=marker)
    assert (marker.asked, scale.written) == (["mark"], [0])


def test_what_stands_beside_the_plan_ends_its_requests_without_a_trace_in_rates_or_plan() -> None:
    """Six stand for a plan of four; of the two that are to go one has ended its requests."""
    scale, marker = FakeScale(), FakeMarker(done=1)
    history = a_history(last_desired_replicas=6, last_seen_replicas=6, replaced_replicas=2, replaced_of_seen=2)
    report = decide(scale, marker, waiting=40.0, replicas=6, history=history)
    assert report.decision.desired_replicas == 4
    assert (scale.written, downward(report)) == ([5], 0)
    assert planned_replicas(report.next_history, 5) == 4
    assert planned_replicas(report.next_history, 4) == 4
