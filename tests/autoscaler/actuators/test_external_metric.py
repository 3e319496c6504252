"""A pool in mode ExternalMetric: decided by us, written by an HPA, and remembered as if we had written it."""

from __future__ import annotations

import pytest

from autoscaler.actuators.external_metric import ExternalMetricActuator
from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Decided
from autoscaler.controller.reconcile import Reconciler
from autoscaler.observers.workload import CompetingWriter
from policies.history import ScaleEvent, ScalingHistory
from policies.observation import ReplicaCounts
from policies.parameters import Mode
from policies.reasons import Reason
from tests.builders import NOW, a_history
from tests.fakes.ports import FakeMetrics, FakeWorkloads
from tests.pool_builders import KEY, a_scaler, a_workload, some_waiting

TICK_SECONDS = 15.0
AN_HPA = CompetingWriter(Reason.COMPETING_AUTOSCALER, "HorizontalPodAutoscaler inference/llama")
ITS_HAND = CompetingWriter(Reason.COMPETING_WRITER, "kube-controller-manager (set 8 replicas 3 s ago)")
AN_OLDER_ONE = CompetingWriter(Reason.COMPETING_SCALER, "InferenceScaler inference/older")


class FollowedPool:
    """A pool whose count somebody else writes; each `tick` sees the count that stands then."""

    def __init__(self, scaler: InferenceScaler | None = None, history: ScalingHistory | None = None) -> None:
        self.scaler = scaler or a_scaler(mode="ExternalMetric")
        self.histories = HistoryStore()
        self.histories.remember(self.scaler, history or a_history())
        self.now_seconds = NOW

    def tick(
        self, replicas: int, waiting: float = 40.0, writers: tuple[CompetingWriter, ...] = (AN_HPA,), **seen: bool
    ) -> Decided:
        counts = ReplicaCounts(replicas, replicas, replicas)
        reconciler = Reconciler(
            FakeWorkloads({KEY: a_workload(counts, competing_writers=writers, **seen)}),
            FakeMetrics({KEY: some_waiting(waiting, ready=max(replicas, 1))}),
            {Mode.EXTERNAL_METRIC: ExternalMetricActuator()},
            self.histories,
            (),
        )
        (report,) = reconciler.reconcile_all([self.scaler], self.now_seconds)
        assert isinstance(report, Decided), report
        self.now_seconds += TICK_SECONDS
        return report


@pytest.mark.parametrize(
    ("writers", "reason", "message"),
    [
        pytest.param((AN_HPA,), Reason.EXTERNAL_METRIC, "4 -> 8 is served for an HPA to write", id="an HPA follows"),
        pytest.param((AN_HPA, ITS_HAND), Reason.EXTERNAL_METRIC, "4 -> 8 is served", id="its writes are no rival's"),
        pytest.param((), Reason.NO_AUTOSCALER, "`tokenscaler hpa inference/llama` prints one", id="nobody follows"),
        pytest.param((ITS_HAND,), Reason.NO_AUTOSCALER, "no HorizontalPodAutoscaler has", id="a person is no HPA"),
        pytest.param(
            (AN_HPA, AN_OLDER_ONE),
            Reason.COMPETING_SCALER,
            "InferenceScaler inference/older steers it too",
            id="another InferenceScaler is a rival",
        ),
    ],
)
def test_what_comes_of_a_decision(writers: tuple[CompetingWriter, ...], reason: Reason, message: str) -> None:
    report = FollowedPool().tick(4, waiting=80.0, writers=writers)
    assert report.decision.desired_replicas == 8
    assert report.actuation.reason is reason
    assert message in report.actuation.message
    assert report.next_history.scale_events == ()


def test_a_count_that_is_right_needs_nobody_to_write_it() -> None:
    assert FollowedPool().tick(4).actuation.reason is Reason.READY_FOR_NEW_SCALE


def test_a_count_that_was_followed_is_an_event_of_ours() -> None:
    pool = FollowedPool()
    pool.tick(4, waiting=80.0)
    assert pool.tick(8, waiting=80.0).decision.next_history.scale_events == (ScaleEvent(NOW + TICK_SECONDS, 4),)


def test_a_followed_count_uses_the_rate_limit_up() -> None:
    scaler = a_scaler(
        mode="ExternalMetric",
        behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}},
    )
    pool = FollowedPool(scaler)
    decided = [pool.tick(replicas, waiting=200.0).decision.desired_replicas for replicas in (4, 4, 6, 6, 6, 6)]
    # While the HPA has not followed, the same count is wanted; once it has, the next step waits for the period's end.
    assert decided == [6, 6, 6, 6, 6, 6]
    assert pool.tick(6, waiting=200.0).decision.desired_replicas == 8


@pytest.mark.parametrize(
    ("stands", "event"),
    [
        pytest.param(6, ScaleEvent(NOW + TICK_SECONDS, 2), id="half way there, as an HPA with limits of its own goes"),
        pytest.param(3, None, id="the other way"),
        pytest.param(9, None, id="beyond what was wanted"),
    ],
)
def test_only_a_change_towards_our_count_is_ours(stands: int, event: ScaleEvent | None) -> None:
    pool = FollowedPool()
    pool.tick(4, waiting=80.0)
    events = pool.tick(stands, waiting=80.0).decision.next_history.scale_events
    assert events == (() if event is None else (event,))


SLEEPY = a_scaler(
    mode="ExternalMetric", minReplicas=0, signals={"pendingRequests": {"query": "sum(pending)", "perReplica": 10}}
)


class SleepyPool(FollowedPool):
    """A pool that may go to zero; `pending` requests wake it."""

    def look(self, replicas: int, pending: float) -> int:
        observation = some_waiting(0.0, ready=replicas, queries={"pendingRequests": pending})
        reconciler = Reconciler(
            FakeWorkloads(
                {
                    KEY: a_workload(
                        ReplicaCounts(replicas, replicas, replicas), competing_writers=(AN_HPA,), is_count_ours=False
                    )
                }
            ),
            FakeMetrics({KEY: observation}),
            {Mode.EXTERNAL_METRIC: ExternalMetricActuator()},
            self.histories,
            (),
        )
        (report,) = reconciler.reconcile_all([self.scaler], self.now_seconds)
        assert isinstance(report, Decided), report
        self.now_seconds += TICK_SECONDS
        return report.decision.desired_replicas


def test_a_zero_that_the_hpa_has_taken_from_us_is_sleep_and_wakes_up() -> None:
    history = a_history(last_desired_replicas=0, last_seen_replicas=1)
    pool = SleepyPool(SLEEPY, history)
    assert pool.look(0, pending=0.0) == 0
    assert pool.look(0, pending=25.0) == 3


def test_a_zero_of_somebody_else_is_left_alone() -> None:
    history = a_history(last_desired_replicas=3, last_seen_replicas=3)
    pool = SleepyPool(SLEEPY, history)
    # The zero lies beyond what was wanted, so it is nobody's following.
    assert pool.look(0, pending=25.0) == 0


def test_a_pool_that_was_woken_by_hand_and_switched_off_again_is_left_alone() -> None:
    history = a_history(last_desired_replicas=0, last_seen_replicas=0, is_scaled_to_zero=True)
    pool = SleepyPool(SLEEPY, history)
    pool.look(5, pending=45.0)
    assert pool.look(0, pending=45.0) == 0
