"""The newest record of each pool, and what goes into the log."""

from __future__ import annotations

from autoscaler.controller.latest_records import LatestRecords
from tests.builders import NOW
from tests.fakes.ports import FakeDecisionLog
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_record,
    a_rejected_report,
    a_scaler,
    an_unobserved_report,
)


def test_every_decision_is_logged_and_the_newest_is_kept() -> None:
    log = FakeDecisionLog()
    records = LatestRecords(log)
    first, second = a_decision_report(waiting=80.0), a_decision_report(now_seconds=NOW + 15.0)
    records.report([first])
    assert records.latest("inference", "llama") == a_record(first)
    records.report([second])
    assert records.latest("inference", "llama") == a_record(second)
    assert log.records == [a_record(first), a_record(second)]


def test_where_nothing_was_decided_there_is_no_record() -> None:
    log = FakeDecisionLog()
    records = LatestRecords(log)
    for report in (an_unobserved_report(), a_rejected_report(), a_crash_report()):
        records.report([a_decision_report()])
        records.report([report])
        assert records.latest("inference", "llama") is None
        assert records.undecided_because("inference", "llama") is not None
    assert len(log.records) == 3


def test_why_nothing_was_decided_is_kept_until_something_is() -> None:
    records = LatestRecords(FakeDecisionLog())
    assert records.undecided_because("inference", "llama") is None
    report = an_unobserved_report()
    records.report([report])
    said = records.undecided_because("inference", "llama")
    assert said == f"{report.unavailable.reason.value}: {report.unavailable.message}"
    records.report([a_decision_report()])
    assert records.undecided_because("inference", "llama") is None


def test_a_pool_that_is_gone_or_was_never_there_has_no_record() -> None:
    records = LatestRecords(FakeDecisionLog())
    records.report([a_decision_report(), a_decision_report(scaler=a_scaler("other"))])
    assert records.latest("inference", "other") is not None
    records.report([a_decision_report()])
    assert records.latest("inference", "other") is None
    assert records.latest("elsewhere", "llama") is None
    records.report([])
    assert records.latest("inference", "llama") is None
