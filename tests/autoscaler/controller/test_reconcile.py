"""One tick over several pools: what is written, what is not, and what is remembered of it."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from autoscaler.actuators.actuator import Actuated, ActuationFailed
from autoscaler.actuators.dry_run import DryRunActuator
from autoscaler.api.inference_scaler import InferenceScaler, InvalidInferenceScaler
from autoscaler.controller.history_store import HistoryStore
from autoscaler.controller.pool_report import Crashed, Decided, PoolReport, Rejected, Unobserved
from autoscaler.controller.reconcile import Reconciler
from autoscaler.observers.workload import CompetingWriter, Workload, WorkloadUnavailable
from policies.history import ScaleEvent, ScalingHistory
from policies.observation import MetricsObservation, ObservationUnavailable
from policies.parameters import Mode
from policies.reasons import Reason
from tests.builders import NOW, a_blackout, a_history, an_observation
from tests.fakes.ports import FakeActuator, FakeForesight, FakeMetrics, FakeReporter, FakeWorkloads
from tests.forecast_builders import RISING
from tests.pool_builders import KEY, a_scaler, a_workload, an_invalid_scaler, some_waiting

COMPETITOR = CompetingWriter(Reason.COMPETING_AUTOSCALER, "HorizontalPodAutoscaler inference/llama")


class Tick:
    """A reconciler on fakes; `run` makes one tick of it and gives the reports."""

    def __init__(
        self,
        *scalers: InferenceScaler | InvalidInferenceScaler,
        workload: Workload | WorkloadUnavailable | Exception | None = None,
        metrics: MetricsObservation | ObservationUnavailable | Exception | None = None,
        result: Actuated | ActuationFailed | Exception | None = None,
        history: ScalingHistory | None = None,
        reporters: tuple[FakeReporter, ...] = (),
        executor: ThreadPoolExecutor | None = None,
        foresight: FakeForesight | None = None,
    ) -> None:
        self.scalers = scalers or (a_scaler(),)
        keys = [scaler.key for scaler in self.scalers]
        self.workloads = FakeWorkloads(
            {key: (a_workload(name=key[1]) if workload is None else workload) for key in keys}
        )
        metrics = some_waiting(40.0) if metrics is None else metrics
        self.metrics = FakeMetrics(metrics if isinstance(metrics, Exception) else dict.fromkeys(keys, metrics))
        self.actuator = FakeActuator(result)
        self.histories = HistoryStore()
        for scaler in self.scalers:
            if isinstance(scaler, InferenceScaler):
                self.histories.remember(scaler, history or a_history())
        self.reporter = FakeReporter()
        self.reconciler = Reconciler(
            self.workloads,
            self.metrics,
            {Mode.DRY_RUN: DryRunActuator(), Mode.SCALE_UP_ONLY: self.actuator, Mode.SCALE: self.actuator},
            self.histories,
            (*reporters, self.reporter),
            executor,
            foresight,
        )

    def run(self, now_seconds: float = NOW) -> tuple[PoolReport, ...]:
        reports = self.reconciler.reconcile_all(self.scalers, now_seconds)
        assert self.reporter.ticks[-1] == reports
        return reports

    def decided(self, now_seconds: float = NOW) -> Decided:
        (report,) = self.run(now_seconds)
        assert isinstance(report, Decided), report
        return report

    def remembered(self) -> ScalingHistory:
        scaler = self.scalers[0]
        assert isinstance(scaler, InferenceScaler)
        return self.histories.recall(scaler, -1, NOW + 3600.0)


@pytest.mark.parametrize(
    ("mode", "waiting", "writes", "reason"),
    [
        pytest.param("Scale", 80.0, [("llama", 4, 8)], Reason.SUCCEEDED_RESCALE, id="Scale raises"),
        pytest.param("Scale", 20.0, [("llama", 4, 2)], Reason.SUCCEEDED_RESCALE, id="Scale lowers"),
        pytest.param("Scale", 40.0, [], Reason.READY_FOR_NEW_SCALE, id="a count that is right is not written"),
        pytest.param("ScaleUpOnly", 80.0, [("llama", 4, 8)], Reason.SUCCEEDED_RESCALE, id="ScaleUpOnly raises"),
        pytest.param("ScaleUpOnly", 20.0, [], Reason.READY_FOR_NEW_SCALE, id="ScaleUpOnly never lowers"),
        pytest.param("DryRun", 80.0, [], Reason.DRY_RUN, id="DryRun does not raise"),
        pytest.param("DryRun", 20.0, [], Reason.DRY_RUN, id="DryRun does not lower"),
    ],
)
def test_the_mode_says_what_is_written(
    mode: str, waiting: float, writes: list[tuple[str, int, int]], reason: Reason
) -> None:
    tick = Tick(a_scaler(mode=mode), metrics=some_waiting(waiting))
    assert tick.decided().actuation.reason is reason
    assert tick.actuator.writes == writes


def test_a_write_becomes_a_rescale_event_in_the_history() -> None:
    tick = Tick(metrics=some_waiting(80.0))
    report = tick.decided()
    assert report.next_history.scale_events == (ScaleEvent(NOW, 4),)
    assert tick.remembered() == report.next_history
    assert report.decision.next_history.scale_events == ()


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(ActuationFailed(Reason.CONFLICT, "the target has changed"), id="conflict"),
        pytest.param(ActuationFailed(Reason.THROTTLED, "429", 30.0), id="429"),
        pytest.param(ActuationFailed(Reason.FORBIDDEN, "403"), id="forbidden"),
        pytest.param(ActuationFailed(Reason.NOT_LEADER, "the lease is not held"), id="not leader"),
        pytest.param(ActuationFailed(Reason.FAILED_UPDATE_SCALE, "timed out"), id="timeout"),
        pytest.param(Actuated(Reason.DRY_RUN, "not written"), id="a dry run of the whole process"),
    ],
)
def test_a_write_that_failed_is_no_rescale_event_and_the_next_tick_decides_again(
    result: Actuated | ActuationFailed,
) -> None:
    tick = Tick(metrics=some_waiting(80.0), result=result)
    report = tick.decided()
    assert (report.actuation.reason, report.actuation.message) == (result.reason, result.message)
    assert report.next_history.scale_events == ()
    tick.actuator.result = Actuated(Reason.SUCCEEDED_RESCALE, "written")
    assert tick.decided(NOW + 15.0).decision.desired_replicas == 8
    assert tick.actuator.writes == [("llama", 4, 8), ("llama", 4, 8)]
    assert tick.remembered().scale_events == (ScaleEvent(NOW + 15.0, 4),)


@pytest.mark.parametrize(
    ("waiting", "message"),
    [
        pytest.param(
            80.0,
            "HorizontalPodAutoscaler inference/llama steers it too, so 4 -> 8 is not written",
            id="a count that would be written",
        ),
        pytest.param(40.0, "HorizontalPodAutoscaler inference/llama steers it too", id="nothing to write"),
    ],
)
def test_nothing_is_written_while_somebody_else_steers(waiting: float, message: str) -> None:
    tick = Tick(workload=a_workload(competing_writers=(COMPETITOR,)), metrics=some_waiting(waiting))
    report = tick.decided()
    assert tick.actuator.writes == []
    assert (report.actuation.reason, report.actuation.message) == (Reason.COMPETING_AUTOSCALER, message)
    assert report.next_history.scale_events == ()


def test_all_competitors_are_named() -> None:
    other = CompetingWriter(Reason.COMPETING_SCALER, "the older InferenceScaler inference/first")
    tick = Tick(workload=a_workload(competing_writers=(COMPETITOR, other)), metrics=some_waiting(40.0))
    expected = "HorizontalPodAutoscaler inference/llama and the older InferenceScaler inference/first steers it too"
    assert tick.decided().actuation.message == expected.replace("steers", "steer")


@pytest.mark.parametrize(
    ("is_count_ours", "is_remembered", "wakes"),
    [
        pytest.param(True, False, True, id="our zero, the answer to the write never came or was never saved"),
        pytest.param(True, True, True, id="our zero"),
        pytest.param(False, True, False, id="somebody has switched off what we had put to sleep"),
        pytest.param(False, False, False, id="somebody has switched it off"),
        pytest.param(None, True, True, id="nobody says whose count it is: what is remembered counts"),
        pytest.param(None, False, False, id="nobody says and nothing is remembered"),
    ],
)
def test_a_pool_at_zero_wakes_up_only_if_the_zero_is_ours(
    is_count_ours: bool | None, is_remembered: bool, wakes: bool
) -> None:
    tick = Tick(
        a_scaler(minReplicas=0, signals={"pendingRequests": {"query": "pending", "perReplica": 4}}),
        workload=a_workload(0, is_count_ours=is_count_ours),
        metrics=some_waiting(0.0, ready=0, queries={"pendingRequests": 10.0}),
        history=a_history(is_scaled_to_zero=is_remembered),
    )
    assert tick.decided().decision.desired_replicas == (3 if wakes else 0)


def test_an_invalid_spec_is_rejected_and_nothing_is_asked_or_written() -> None:
    tick = Tick(an_invalid_scaler())
    (report,) = tick.run()
    assert isinstance(report, Rejected)
    assert "spec.maxReplica is not a known field; did you mean maxReplicas?" in report.scaler.problems
    assert tick.metrics.asked == []
    assert tick.actuator.writes == []


def test_a_target_that_cannot_be_seen_is_reported_and_its_metrics_are_not_asked_for() -> None:
    tick = Tick(workload=WorkloadUnavailable(Reason.TARGET_NOT_FOUND, "no Deployment inference/llama"))
    before = tick.remembered()
    (report,) = tick.run()
    assert isinstance(report, Unobserved)
    assert report.unavailable.reason is Reason.TARGET_NOT_FOUND
    assert tick.metrics.asked == []
    assert tick.actuator.writes == []
    assert tick.remembered() == before


def test_the_metrics_of_all_pools_are_asked_for_at_once() -> None:
    query = {"query": "sum(gateway_pending)", "perReplica": 4}
    tick = Tick(a_scaler("one", signals={"pendingRequests": query}), an_invalid_scaler("two"), a_scaler("three"))
    tick.run()
    (pools,) = tick.metrics.asked
    assert [(pool.key, pool.engine, pool.target_name, len(pool.pods)) for pool in pools] == [
        (("inference", "one"), "vllm", "one", 4),
        (("inference", "three"), "vllm", "three", 4),
    ]
    assert dict(pools[0].queries) == {"pendingRequests": "sum(gateway_pending)"}


def test_metrics_that_are_unavailable_hold_the_count() -> None:
    tick = Tick(metrics=a_blackout())
    report = tick.decided()
    assert report.decision.reason is Reason.METRICS_UNAVAILABLE
    assert report.decision.desired_replicas == 4


def test_one_pool_that_raises_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    tick = Tick(a_scaler("one"), a_scaler("two"), a_scaler("three"), metrics=some_waiting(80.0))
    tick.workloads.workloads["inference", "two"] = KeyError("pods")
    reports = tick.run()
    assert [type(report) for report in reports] == [Decided, Crashed, Decided]
    assert isinstance(reports[1], Crashed)
    assert reports[1].problem == "observe: KeyError: 'pods'"
    assert tick.actuator.writes == [("one", 4, 8), ("three", 4, 8)]
    (logged,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert logged.exc_info is not None
    assert vars(logged)["about"] == "inference/two"


def test_a_pool_whose_write_raises_keeps_its_history_and_is_tried_again() -> None:
    tick = Tick(metrics=some_waiting(80.0), result=RuntimeError("a bug"))
    before = tick.remembered()
    (report,) = tick.run()
    assert isinstance(report, Crashed)
    assert report.problem == "actuate: RuntimeError: a bug"
    assert tick.remembered() == before
    tick.actuator.result = Actuated(Reason.SUCCEEDED_RESCALE, "written")
    assert tick.decided(NOW + 15.0).actuation.reason is Reason.SUCCEEDED_RESCALE


def test_a_bug_in_the_metrics_observer_makes_every_pool_blind_and_no_more() -> None:
    tick = Tick(a_scaler("one"), a_scaler("two"), metrics=ZeroDivisionError("division by zero"))
    reports = tick.run()
    for report in reports:
        assert isinstance(report, Decided)
        assert report.decision.desired_replicas == 4
        assert report.decision_input.metrics == ObservationUnavailable(
            Reason.INTERNAL_ERROR, "observe: ZeroDivisionError: division by zero"
        )
    assert tick.actuator.writes == []


def test_a_pool_without_an_answer_from_the_metrics_observer_is_blind() -> None:
    tick = Tick(a_scaler("one"), a_scaler("two"), metrics=some_waiting(80.0))
    assert isinstance(tick.metrics.observations, dict)
    del tick.metrics.observations["inference", "one"]
    one, two = tick.run()
    assert isinstance(one, Decided)
    assert isinstance(one.decision_input.metrics, ObservationUnavailable)
    assert isinstance(two, Decided)
    assert two.decision.desired_replicas == 8


def test_a_reporter_that_raises_stops_neither_the_tick_nor_the_other_reporters(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = FakeReporter(failure=TypeError("a bug"))
    tick = Tick(metrics=some_waiting(80.0), reporters=(broken,))
    assert tick.decided().actuation.reason is Reason.SUCCEEDED_RESCALE
    assert len(broken.ticks) == len(tick.reporter.ticks) == 1
    assert [vars(record)["about"] for record in caplog.records] == ["FakeReporter"]


def test_with_an_executor_the_reports_come_in_the_order_of_the_scalers() -> None:
    names = [f"pool-{number}" for number in range(20)]
    with ThreadPoolExecutor(4) as executor:
        tick = Tick(*(a_scaler(name) for name in names), metrics=some_waiting(80.0), executor=executor)
        assert [report.scaler.name for report in tick.run()] == names
    assert len(tick.actuator.writes) == 20


def test_a_pool_that_is_gone_is_forgotten() -> None:
    tick = Tick(a_scaler("one"), a_scaler("two"))
    tick.run()
    tick.scalers = (a_scaler("two"),)
    tick.run()
    fresh = tick.histories.recall(a_scaler("one"), 7, NOW)
    assert [each.replicas for each in fresh.recommendations] == [7]


def test_standing_down_tells_the_reporters_that_there_is_no_pool() -> None:
    tick = Tick()
    tick.run()
    tick.reconciler.stand_down()
    assert tick.reporter.ticks[-1] == ()


def test_the_record_holds_the_policy_and_nothing_else_of_the_spec() -> None:
    tick = Tick()
    report = tick.decided()
    assert type(report.decision_input.parameters).__name__ == "ScalingParameters"
    assert report.scaler.key == KEY


RATE = {"tokenRate": {"perReplicaPerSecond": 5000}}
FORECAST_ACTS = {
    "signals": RATE,
    "coldStart": {"priorSeconds": 300},
    "forecast": {"mode": "Active", "quantilePercent": 50},
}


def test_what_is_foreseen_is_decided_with() -> None:
    foresight = FakeForesight(RISING)
    report = Tick(a_scaler(**FORECAST_ACTS), metrics=an_observation(), foresight=foresight).decided()
    assert report.decision.binding == "forecast"
    assert report.decision.desired_replicas == 6
    assert foresight.asked == [(KEY,)]


@pytest.mark.parametrize(
    "foresight",
    [
        pytest.param(FakeForesight(RuntimeError("a bug")), id="a bug in it"),
        pytest.param(None, id="none at all"),
    ],
)
def test_without_foresight_it_is_decided_by_what_is_seen(foresight: FakeForesight | None) -> None:
    report = Tick(a_scaler(**FORECAST_ACTS), metrics=an_observation(), foresight=foresight).decided()
    assert (report.decision.binding, report.decision.desired_replicas) == ("tokenRate", 4)


@pytest.mark.parametrize(
    "forecast",
    [pytest.param(None, id="a policy that says nothing of it"), pytest.param({"mode": "Off"}, id="one that is off")],
)
def test_a_pool_that_wants_no_forecast_is_not_asked_for(forecast: dict[str, str] | None) -> None:
    foresight = FakeForesight(RISING)
    Tick(a_scaler(signals=RATE, forecast=forecast), metrics=an_observation(), foresight=foresight).run()
    assert foresight.asked == []
