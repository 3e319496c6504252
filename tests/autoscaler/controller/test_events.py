"""Which Events a pool's life is worth."""

from __future__ import annotations

import logging

import pytest

from autoscaler.controller.events import NORMAL, WARNING, EventReporter, LoggedEvents, event_of
from autoscaler.controller.pool_report import PoolReport
from policies.reasons import Reason
from tests.builders import a_blackout, a_history
from tests.fakes.ports import FakeEventSink
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_rejected_report,
    a_scaler,
    an_unobserved_report,
    some_waiting,
)

AT_REST = a_decision_report()
RAISED = a_decision_report(waiting=80.0)
AFTER_THE_RAISE = a_decision_report(
    replicas=8, metrics=some_waiting(80.0, ready=8), history=a_history(rescaled={15.0: 4})
)
LOWERED = a_decision_report(waiting=20.0)
BLIND = a_decision_report(metrics=a_blackout())
CONFLICT = a_decision_report(waiting=80.0, outcome=Reason.CONFLICT, message="the target has changed")
FORBIDDEN = a_decision_report(waiting=80.0, outcome=Reason.FORBIDDEN, message="grant verb patch")
COMPETING = a_decision_report(outcome=Reason.COMPETING_AUTOSCALER, message="an HPA steers it too")
DRY_RUN = a_decision_report(scaler=a_scaler(mode="DryRun"), waiting=80.0, outcome=Reason.DRY_RUN)
AT_MAXIMUM = a_decision_report(scaler=a_scaler(maxReplicas=4), waiting=80.0)
NOT_READ_YET = an_unobserved_report(Reason.NOT_READ_YET)
OTHER_VOTE = a_decision_report(scaler=a_scaler(signals={"kvCache": {"headroomPercent": 60}}))


def reasons(*ticks: PoolReport) -> list[str]:
    """The Events of one pool over several ticks."""
    sink = FakeEventSink()
    reporter = EventReporter(sink)
    for report in ticks:
        reporter.report([report])
    return [event.reason.value for event in sink.sent]


@pytest.mark.parametrize(
    ("ticks", "expected"),
    [
        pytest.param([AT_REST], [], id="the first sight of a pool is no news"),
        pytest.param([AT_REST] * 3, [], id="nothing happens, nothing is said"),
        pytest.param([RAISED], ["SucceededRescale"], id="a rescale at first sight is said"),
        pytest.param(
            [AT_REST, RAISED, AFTER_THE_RAISE, AFTER_THE_RAISE],
            ["SucceededRescale"],
            id="a rescale is said once, and the tick after it is no news",
        ),
        pytest.param([RAISED, RAISED], ["SucceededRescale"] * 2, id="the same rescale again is said again"),
        pytest.param([AT_REST, RAISED, LOWERED], ["SucceededRescale"] * 2, id="up and down are two"),
        pytest.param([AT_REST, OTHER_VOTE], ["KVCache"], id="another reason for the same count is said"),
        pytest.param([AT_REST, AT_MAXIMUM, AT_MAXIMUM], ["TooManyReplicas"], id="a cap that begins to bind"),
        pytest.param([AT_REST, BLIND, BLIND, AT_REST], ["MetricsUnavailable", "WaitingRequests"], id="blind and back"),
        pytest.param([BLIND], ["MetricsUnavailable"], id="a warning is said at first sight"),
        pytest.param(
            [AT_REST, CONFLICT, CONFLICT], ["WaitingRequests"], id="a conflict is the normal course of things"
        ),
        pytest.param([AT_REST, FORBIDDEN, FORBIDDEN], ["Forbidden"], id="a write that is forbidden is said once"),
        pytest.param([COMPETING, COMPETING], ["CompetingAutoscaler"], id="a competitor is said once"),
        pytest.param(
            [COMPETING, AT_REST, COMPETING],
            ["CompetingAutoscaler", "WaitingRequests", "CompetingAutoscaler"],
            id="a competitor that comes again is said again",
        ),
        pytest.param([AT_REST, DRY_RUN, DRY_RUN], ["WaitingRequests"], id="in a dry run the wish is said once"),
        pytest.param([a_rejected_report()] * 2, ["SpecInvalid"], id="an invalid spec is said once"),
        pytest.param([an_unobserved_report()] * 2, ["TargetNotFound"], id="a target that is not there is said once"),
        pytest.param(
            [an_unobserved_report(), AT_REST], ["TargetNotFound", "WaitingRequests"], id="a target that comes back"
        ),
        pytest.param([NOT_READ_YET, AT_REST], [], id="a target that is being read for the first time is no news"),
        pytest.param([NOT_READ_YET, BLIND], ["MetricsUnavailable"], id="what is then seen is the first sight"),
        pytest.param([a_crash_report()] * 2, ["InternalError"], id="a bug of ours is said once"),
    ],
)
def test_an_event_is_sent_for_each_change_and_not_repeated(ticks: list[PoolReport], expected: list[str]) -> None:
    assert reasons(*ticks) == expected


@pytest.mark.parametrize(
    ("report", "kind", "message"),
    [
        pytest.param(
            RAISED,
            NORMAL,
            "Deployment inference/llama: 4 -> 8: 8: waiting requests (80 at 10 a replica) need 8",
            id="a rescale says from, to and why",
        ),
        pytest.param(CONFLICT, NORMAL, "8: waiting requests (80 at 10 a replica) need 8", id="a conflict"),
        pytest.param(FORBIDDEN, WARNING, "grant verb patch", id="forbidden"),
        pytest.param(COMPETING, WARNING, "an HPA steers it too", id="a competitor"),
        pytest.param(BLIND, WARNING, "4: held at 4, blind for 0 s: Prometheus does not answer", id="blind"),
        pytest.param(
            a_rejected_report(),
            WARNING,
            "spec.maxReplica is not a known field; did you mean maxReplicas?",
            id="an invalid spec",
        ),
        pytest.param(an_unobserved_report(), WARNING, "no Deployment inference/llama", id="no target"),
        pytest.param(
            an_unobserved_report(Reason.STALE_CACHE, message="the watch is silent"),
            WARNING,
            "the watch is silent",
            id="a stale cache",
        ),
        pytest.param(a_crash_report(), WARNING, "decide: ZeroDivisionError: division by zero", id="a bug of ours"),
    ],
)
def test_an_event_says_what_a_person_wants_to_know(report: PoolReport, kind: str, message: str) -> None:
    event = event_of(report)
    assert (event.type, event.message) == (kind, message)
    assert event.scaler is report.scaler


def test_each_pool_has_changes_of_its_own() -> None:
    sink = FakeEventSink()
    reporter = EventReporter(sink)
    other = a_scaler("other")
    reporter.report([AT_REST, a_decision_report(scaler=other)])
    reporter.report([AT_REST, a_decision_report(scaler=other, waiting=80.0)])
    assert [(event.scaler.name, event.reason) for event in sink.sent] == [("other", Reason.SUCCEEDED_RESCALE)]


def test_a_pool_that_was_gone_is_seen_for_the_first_time_again() -> None:
    sink = FakeEventSink()
    reporter = EventReporter(sink)
    for reports in ([AT_REST], [], [OTHER_VOTE]):
        reporter.report(reports)
    assert sink.sent == []


def test_events_stand_in_the_process_log_with_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    reporter = EventReporter(LoggedEvents())
    for report in (AT_REST, RAISED, AFTER_THE_RAISE, FORBIDDEN):
        reporter.report([report])
    logged = [vars(record) for record in caplog.records]
    assert [(each["levelname"], each["namespace"], each["scaler"], each["reason"]) for each in logged] == [
        ("INFO", "inference", "llama", "SucceededRescale"),
        ("WARNING", "inference", "llama", "Forbidden"),
    ]
    assert logged[1]["note"] == "grant verb patch"
