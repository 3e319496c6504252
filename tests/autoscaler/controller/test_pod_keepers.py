"""What is kept on pods after each tick: who may serve again, and who may not be moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from autoscaler.controller.drain_keeper import DrainKeeper
from autoscaler.controller.loading_keeper import LoadingKeeper
from autoscaler.controller.pool_report import Decided, PoolReport, Unobserved
from autoscaler.observers.workload import LivePod, WorkloadUnavailable
from policies.reasons import Reason
from tests.builders import NOW
from tests.pool_builders import a_decision_report, a_scaler

READY = LivePod("llama-0", "llama-0", True, NOW - 60.0)
LOADING = LivePod("llama-1", "llama-1", False, None)


@dataclass
class FakePods:
    """The pods' side of both keepers: how often pods were put back, and who was to be protected."""

    put_back: int = 0
    protected: list[Mapping[tuple[str, str], float]] = field(default_factory=list)

    def put_back_others(self) -> None:
        self.put_back += 1

    def forget_all(self) -> None:
        self.put_back = -1

    def bring_to(self, limits_seconds: Mapping[tuple[str, str], float]) -> None:
        self.protected.append(limits_seconds)


def decided(**spec: object) -> Decided:
    report = a_decision_report(scaler=a_scaler(**spec))
    return replace(report, workload=replace(report.workload, pods=(READY, LOADING)))


def unobserved(reason: Reason) -> Unobserved:
    return Unobserved(a_scaler("mistral"), NOW, WorkloadUnavailable(reason, ""))


NOT_READ = unobserved(Reason.NOT_READ_YET)


@pytest.mark.parametrize(
    ("reports", "is_put_back"),
    [
        pytest.param((decided(),), True, id="all decided"),
        pytest.param((), True, id="the last scaler is gone"),
        pytest.param((decided(), unobserved(Reason.TARGET_NOT_FOUND)), True, id="one without a target holds up nobody"),
        pytest.param((decided(), NOT_READ), False, id="just after a start nobody can say who is to go"),
    ],
)
def test_when_pods_are_put_back(reports: tuple[PoolReport, ...], is_put_back: bool) -> None:
    pods = FakePods()
    DrainKeeper(pods).keep(reports)
    assert pods.put_back == is_put_back


def test_a_new_leader_remembers_nothing_of_who_was_to_go() -> None:
    pods = FakePods()
    DrainKeeper(pods).forget_all()
    assert pods.put_back == -1


@pytest.mark.parametrize(
    ("reports", "protected"),
    [
        pytest.param(
            (decided(protectLoadingReplicas=True),), [{("inference", "llama-1"): 300.0}], id="those that load"
        ),
        pytest.param((decided(),), [{}], id="nobody asked for it: what stands is taken back"),
        pytest.param((decided(protectLoadingReplicas=True, mode="DryRun"),), [{}], id="a dry run writes nothing"),
        pytest.param((), [{}], id="the last scaler is gone"),
        pytest.param((decided(protectLoadingReplicas=True), NOT_READ), [], id="just after a start all stays as it is"),
    ],
)
def test_who_is_protected(reports: tuple[PoolReport, ...], protected: list[Mapping[tuple[str, str], float]]) -> None:
    pods = FakePods()
    LoadingKeeper(pods).keep(reports)
    assert pods.protected == protected
