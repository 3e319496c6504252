"""When a status is worth a write, and what stands in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from autoscaler.api.inference_scaler import InferenceScaler
from autoscaler.api.learned import LearnedColdStart
from autoscaler.api.status import MAXIMUM_MESSAGE_CHARACTERS, InferenceScalerStatus, restore_history, status_document
from autoscaler.controller.latest_records import LatestRecords
from autoscaler.controller.pool_report import Decided, PoolReport
from autoscaler.controller.status import REFRESH_SECONDS, WINDOW_SAVE_SECONDS, StatusReporter
from autoscaler.decision_record import DecisionRecord, differences, read_record
from policies.cold_start import ObservedStart, learn_cold_start
from policies.observation import ReplicaCounts
from policies.reasons import Reason
from tests.builders import NOW, a_blackout, a_history
from tests.fakes.ports import FakeStatusSink
from tests.pool_builders import (
    a_crash_report,
    a_decision_report,
    a_record,
    a_rejected_report,
    a_scaler,
    an_invalid_scaler,
    an_unobserved_report,
    some_waiting,
)

BUSY = a_history(recommended={100.0: 9})


class Status:
    """A status reporter on fakes."""

    def __init__(self) -> None:
        self.sink = FakeStatusSink()
        self.records = LatestRecords(None)
        self.reporter = StatusReporter(self.sink, self.records)

    def report(self, *reports: PoolReport) -> None:
        self.records.report(reports)
        self.reporter.report(reports)

    @property
    def newest(self) -> InferenceScalerStatus:
        return self.sink.written[-1][2]

    @property
    def writes(self) -> int:
        return len(self.sink.written)


def writes_after(*ticks: PoolReport) -> list[int]:
    """How many statuses had been written after each tick."""
    status = Status()
    counts = []
    for report in ticks:
        status.report(report)
        counts.append(status.writes)
    return counts


def document_of(status: InferenceScalerStatus) -> dict[str, Any]:
    """The status as the API server would hand it back: what is null is not there."""
    fields = status_document(status)["status"]
    return {name: value for name, value in fields.items() if value is not None}


def with_status(status: InferenceScalerStatus, **spec: Any) -> InferenceScaler:
    return a_scaler(status=document_of(status), **spec)


@pytest.mark.parametrize(
    ("ticks", "writes"),
    [
        pytest.param([a_decision_report()], [1], id="the first decision is written"),
        pytest.param(
            [a_decision_report(now_seconds=NOW + after) for after in (0.0, 15.0, 150.0)],
            [1, 1, 1],
            id="nothing changes, nothing is written",
        ),
        pytest.param(
            [a_decision_report(waiting=40.0), a_decision_report(waiting=39.0)],
            [1, 1],
            id="a number that drifts in a message is not worth a write",
        ),
        pytest.param([a_decision_report(), a_decision_report(waiting=80.0)], [1, 2], id="another count"),
        pytest.param(
            [a_decision_report(), a_decision_report(replicas=ReplicaCounts(4, 4, 3, 1), waiting=40.0)],
            [1, 2],
            id="a replica that does not serve any more",
        ),
        pytest.param([a_decision_report(), a_decision_report(metrics=a_blackout())], [1, 2], id="another reason"),
        pytest.param(
            [a_decision_report(), a_decision_report(scaler=a_scaler(generation=2))], [1, 2], id="another generation"
        ),
        pytest.param(
            [a_decision_report(), a_decision_report(outcome=Reason.COMPETING_AUTOSCALER, message="x")],
            [1, 2],
            id="another condition",
        ),
        pytest.param([a_decision_report(), an_unobserved_report(), a_decision_report()], [1, 2, 3], id="gone and back"),
        pytest.param(
            [an_unobserved_report(Reason.NOT_READ_YET), a_decision_report()],
            [0, 1],
            id="a target that is being read for the first time is not worth a write",
        ),
        pytest.param([a_rejected_report()] * 2, [1, 1], id="an invalid spec is written once"),
        pytest.param([a_crash_report()] * 2, [1, 1], id="a bug of ours is written once"),
        pytest.param(
            [a_decision_report(waiting=40.0), a_decision_report(waiting=39.0, now_seconds=NOW + REFRESH_SECONDS)],
            [1, 2],
            id="a message is refreshed from time to time",
        ),
        pytest.param(
            [
                a_decision_report(history=BUSY, now_seconds=NOW + after)
                for after in (0.0, 15.0, WINDOW_SAVE_SECONDS, WINDOW_SAVE_SECONDS + 15.0, 2 * WINDOW_SAVE_SECONDS)
            ],
            [1, 1, 2, 2, 3],
            id="the history is saved while a scale-down waits for its window",
        ),
    ],
)
def test_a_status_is_written_where_something_worth_knowing_has_changed(
    ticks: Sequence[PoolReport], writes: list[int]
) -> None:
    assert writes_after(*ticks) == writes


def test_a_status_tells_what_was_seen_decided_and_done() -> None:
    status = Status()
    report = a_decision_report(replicas=ReplicaCounts(5, 5, 4, 1), waiting=80.0, accelerators_per_replica=2)
    status.report(report)
    (namespace, name, written), *_ = status.sink.written
    assert (namespace, name) == ("inference", "llama")
    assert (written.spec_replicas, written.ready_replicas, written.starting_replicas) == (5, 4, 1)
    assert (written.desired_replicas, written.accelerators_desired) == (8, 16)
    assert (written.binding_reason, written.message) == ("WaitingRequests", report.decision.message)
    assert written.reason_since == written.last_scale_time == "2030-03-17T17:46:40Z"
    assert written.observed_generation == 1
    assert restore_history(document_of(written)) == report.next_history
    assert written.last_record is not None
    assert read_record(written.last_record) == a_record(report)


def test_since_when_count_and_reason_are_the_same_is_kept() -> None:
    status = Status()
    status.report(a_decision_report())
    status.report(a_decision_report(replicas=ReplicaCounts(4, 4, 3, 1), now_seconds=NOW + 60.0))
    assert status.newest.reason_since == "2030-03-17T17:46:40Z"
    status.report(a_decision_report(waiting=80.0, now_seconds=NOW + 120.0))
    assert status.newest.reason_since == "2030-03-17T17:48:40Z"


def test_only_a_rescale_changes_the_time_of_the_last_scale() -> None:
    status = Status()
    status.report(a_decision_report(waiting=80.0))
    failed = a_decision_report(waiting=70.0, now_seconds=NOW + 60.0, outcome=Reason.CONFLICT)
    status.report(failed)
    assert status.newest.desired_replicas == 7
    assert status.newest.last_scale_time == "2030-03-17T17:46:40Z"


def test_the_saved_history_holds_the_rescale() -> None:
    status = Status()
    status.report(a_decision_report(waiting=80.0))
    restored = restore_history(document_of(status.newest))
    assert restored is not None
    assert [event.change for event in restored.scale_events] == [4]


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(an_unobserved_report(now_seconds=NOW + 15.0), id="no target"),
        pytest.param(a_crash_report(now_seconds=NOW + 15.0), id="a bug of ours"),
        pytest.param(a_rejected_report(now_seconds=NOW + 15.0), id="an invalid spec"),
    ],
)
def test_what_a_report_does_not_speak_of_is_kept(report: PoolReport) -> None:
    status = Status()
    status.report(a_decision_report(waiting=80.0))
    before = status.newest
    status.report(report)
    assert status.newest.binding_reason != before.binding_reason
    assert (status.newest.history, status.newest.last_record) == (before.history, before.last_record)
    assert (status.newest.desired_replicas, status.newest.ready_replicas) == (8, 4)


def test_after_a_restart_an_invalid_spec_costs_nothing_of_what_stands_in_the_object() -> None:
    before = Status()
    before.report(a_decision_report(waiting=80.0))
    after = Status()
    after.report(a_rejected_report(scaler=an_invalid_scaler(status=document_of(before.newest))))
    assert after.newest.history == before.newest.history
    assert after.newest.last_record == before.newest.last_record


def test_after_a_restart_nothing_is_written_that_stands_there_already() -> None:
    before = Status()
    before.report(a_decision_report())
    scaler = with_status(before.newest)
    after = Status()
    for seconds in (60.0, 75.0, 120.0):
        after.report(a_decision_report(scaler=scaler, waiting=39.0, now_seconds=NOW + seconds))
    assert after.writes == 0


def test_a_recreated_scaler_begins_with_its_own_status() -> None:
    status = Status()
    status.report(a_decision_report(waiting=80.0))
    status.report(a_decision_report(scaler=a_scaler(uid="uid-2"), now_seconds=NOW + 60.0))
    assert status.writes == 2
    assert status.newest.last_scale_time is None


def test_a_pool_that_was_gone_is_compared_with_what_stands_in_its_object() -> None:
    status = Status()
    status.report(a_decision_report())
    status.report()
    status.report(a_decision_report(now_seconds=NOW + 30.0))
    assert status.writes == 2


def test_a_write_that_never_arrived_is_repeated_in_time() -> None:
    status = Status()
    scaler = a_scaler()  # its object goes on without a status: the write has failed for good
    status.report(a_decision_report(scaler=scaler))
    status.report(a_decision_report(scaler=scaler, now_seconds=NOW + REFRESH_SECONDS - 1.0))
    assert status.writes == 1
    status.report(a_decision_report(scaler=scaler, now_seconds=NOW + REFRESH_SECONDS))
    assert status.writes == 2
    status.report(a_decision_report(scaler=scaler, now_seconds=NOW + REFRESH_SECONDS + 15.0))
    assert status.writes == 2


def test_a_status_that_arrived_is_not_repeated() -> None:
    status = Status()
    status.report(a_decision_report())
    scaler = with_status(status.newest)
    for seconds in (REFRESH_SECONDS, 2 * REFRESH_SECONDS, 3 * REFRESH_SECONDS):
        status.report(a_decision_report(scaler=scaler, now_seconds=NOW + seconds))
    assert status.writes == 1


def test_a_record_that_is_too_large_is_left_out_and_no_older_one_stays() -> None:
    status = Status()
    status.report(a_decision_report(waiting=80.0))
    huge = a_decision_report(
        metrics=some_waiting(90.0, warnings=tuple(f"warning {number}" for number in range(5000))),
        now_seconds=NOW + 15.0,
    )
    status.report(huge)
    assert status.newest.last_record is None
    assert status.newest.history is not None
    assert "lastRecord" in status_document(status.newest)["status"]  # as null, which removes it


def test_a_message_without_end_is_cut_and_stays_valid() -> None:
    status = Status()
    status.report(a_decision_report(metrics=a_blackout("x" * 100_000)))
    assert len(status.newest.message) == MAXIMUM_MESSAGE_CHARACTERS
    assert InferenceScalerStatus.model_validate(document_of(status.newest)) == status.newest


def test_the_explanation_of_a_status_can_be_decided_again() -> None:
    status = Status()
    report = a_decision_report(waiting=80.0)
    assert isinstance(report, Decided)
    status.report(report)
    record = read_record(status.newest.last_record or "")
    assert isinstance(record, DecisionRecord)
    assert record.decision.desired_replicas == report.decision.desired_replicas == 8
    assert differences(record) == ()


def test_the_cold_start_that_was_learned_is_shown_and_saved() -> None:
    starts = (ObservedStart(90.0, 20.0, 60.0), ObservedStart(0.0, 2.0, 58.0))
    status = Status()
    status.report(a_decision_report(cold_start=learn_cold_start(starts, 300.0), starts=starts))
    learned = status.newest.learned
    assert learned is not None
    assert learned.cold_start == LearnedColdStart(
        starts=2,
        l50_seconds=170,
        l90_seconds=300,
        l95_seconds=300,
        node_seconds=0,
        image_seconds=2,
        load_seconds=58,
        recent="90+20+60 0+2+58",
    )
    status.report(a_decision_report(scaler=a_scaler(generation=2)))
    assert status.newest.learned is None
