"""One enumeration of reasons: the same word for a report in log, Event, condition, metric label and record."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from autoscaler.controller.events import EventReporter, LoggedEvents, event_of
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.controller.status import StatusReporter
from autoscaler.telemetry import Telemetry
from policies.reasons import Reason
from tests.builders import a_blackout
from tests.fakes.ports import FakeEventSink, FakeStatusSink
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_rejected_report,
    a_scaler,
    an_unobserved_report,
)

SLOW = {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 15}]}}
REPORTS = [
    pytest.param(a_decision_report(), Reason.READY_FOR_NEW_SCALE, id="at rest"),
    pytest.param(a_decision_report(waiting=80.0), Reason.SUCCEEDED_RESCALE, id="raised by a vote"),
    pytest.param(
        a_decision_report(scaler=a_scaler(behavior=SLOW), waiting=80.0), Reason.SUCCEEDED_RESCALE, id="held back"
    ),
    pytest.param(a_decision_report(metrics=a_blackout()), Reason.READY_FOR_NEW_SCALE, id="blind"),
    pytest.param(
        a_decision_report(waiting=80.0, outcome=Reason.FORBIDDEN, message="no right"), Reason.FORBIDDEN, id="forbidden"
    ),
    pytest.param(a_decision_report(outcome=Reason.COMPETING_AUTOSCALER, message="an HPA"), None, id="an HPA"),
    pytest.param(a_rejected_report(), None, id="a spec that is none"),
    pytest.param(an_unobserved_report(), None, id="no target"),
    pytest.param(a_crash_report(), None, id="our own bug"),
]


def metric_reasons(telemetry: Telemetry, metric: str) -> list[str]:
    families = text_string_to_metric_families(telemetry.render().decode())
    samples = [sample for family in families for sample in family.samples if sample.name == metric]
    return [sample.labels["reason"] for sample in samples if sample.value > 0]


@pytest.mark.parametrize(("report", "written"), REPORTS)
def test_the_reason_of_a_report_is_one_word_wherever_it_is_said(
    report: PoolReport, written: Reason | None, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    events, statuses, telemetry, records = FakeEventSink(), FakeStatusSink(), Telemetry(), LatestRecords(None)
    before: list[Any] = [a_decision_report(waiting=41.0)]  # within tolerance: another reason than all of the above
    for reports in (before, [report]):
        records.report(reports)
        telemetry.report(reports)
        for reporter in (EventReporter(events), EventReporter(LoggedEvents()), StatusReporter(statuses, records)):
            reporter.report(reports)

    event, status = event_of(report), statuses.written[-1][2]
    decided = report.decision.reason if isinstance(report, Decided) else event.reason
    assert metric_reasons(telemetry, "tokenscaler_binding_reason") == [decided.value]
    assert status.binding_reason == decided.value
    conditions = {condition.reason for condition in status.conditions}
    assert conditions <= {reason.value for reason in Reason}
    if written is None:
        assert event.reason.value in conditions
    if isinstance(report, Decided):
        record = records.latest(report.scaler.namespace, report.scaler.name)
        assert record is not None
        assert record.document()["decision"]["reason"] == decided.value
        assert record.document()["actuation"]["reason"] == report.actuation.reason.value
        assert report.actuation.reason.value in metric_reasons(telemetry, "tokenscaler_actuations_total")
    for sent in events.sent:
        assert sent.reason in (event.reason, decided)
    logged = [vars(record)["reason"] for record in caplog.records if record.getMessage() == "pool event"]
    assert logged == [sent.reason.value for sent in events.sent]


def test_there_is_one_gauge_for_each_vote_that_has_an_opinion() -> None:
    signals = {
        "tokensInFlight": {},
        "kvCache": {},
        "waitingRequests": {"perReplica": 10},
        "pendingRequests": {"query": "q", "perReplica": 1},
    }
    telemetry = Telemetry()
    report = a_decision_report(scaler=a_scaler(signals=signals))
    telemetry.report([report])
    families = text_string_to_metric_families(telemetry.render().decode())
    votes = {
        sample.labels["vote"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "tokenscaler_vote_replicas"
    }
    given = report.decision.recommendations
    assert votes == pytest.approx({vote.recommender: vote.replicas for vote in given if vote.replicas is not None})
    assert set(votes) == {"tokensInFlight", "kvCache", "waitingRequests"}, "the query was not answered"
