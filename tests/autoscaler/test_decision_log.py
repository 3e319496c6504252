"""Records of decisions: written, read again, decided again, and what is said of lines that are none."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autoscaler.decision_log import (
    KEPT_FILES,
    DecisionRecord,
    JsonLinesLog,
    UnreadableRecord,
    differences,
    read_log,
    read_record,
)
from policies.history import ScaleEvent, TimedRecommendation
from policies.observation import PoolLatency, QueryUnknown
from tests.builders import NOW, a_blackout, a_history, an_observation
from tests.pool_builders import a_decision_report, a_record, a_scaler

ALL_VOTES = {
    "tokensInFlight": {},
    "tokenRate": {"perReplicaPerSecond": 9000},
    "kvCache": {},
    "waitingRequests": {"perReplica": 4},
    "pendingRequests": {"query": 'sum(gateway_pending_requests{pool="llama-70b"})', "perReplica": 16},
    "custom": [{"name": "sessions", "query": "sum(sessions)", "perReplica": 20}],
}


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


@pytest.fixture
def log(log_path: Path) -> Iterator[JsonLinesLog]:
    log = JsonLinesLog(log_path)
    yield log
    log.close()


def changed(record: DecisionRecord, path: str, value: Any) -> str:
    """The record's line with one value replaced."""
    document = json.loads(record.to_json_line())
    *around, last = path.split(".")
    place = document
    for part in around:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    return json.dumps(document)


def reading(line: str) -> DecisionRecord:
    record = read_record(line)
    assert isinstance(record, DecisionRecord), record
    return record


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(a_record(), id="a raise"),
        pytest.param(a_record(a_decision_report(waiting=20.0)), id="a lowering"),
        pytest.param(a_record(a_decision_report(metrics=a_blackout())), id="a blackout"),
        pytest.param(
            a_record(
                a_decision_report(
                    scaler=a_scaler(signals=ALL_VOTES, missingData={"fallback": {"replicas": 8}}),
                    metrics=an_observation(
                        queries={"pendingRequests": 12.5, "custom/sessions": QueryUnknown("NaN")},
                        latency=PoolLatency(0.8, 0.0131, 0.045, 2.1),
                        warnings=("a rate() over too short a window",),
                    ),
                    history=a_history(recommended={100.0: 9, 15.0: 8}, rescaled={40.0: 2}),
                )
            ),
            id="all votes, one of them unknown",
        ),
        pytest.param(
            a_record(
                a_decision_report(
                    scaler=a_scaler(
                        minReplicas=0,
                        schedules=[
                            {
                                "name": "day",
                                "timezone": "America/New_York",
                                "start": "30 7 * * 1-5",
                                "end": "0 19 * * 1-5",
                                "minReplicas": 24,
                            }
                        ],
                    )
                )
            ),
            id="a schedule",
        ),
    ],
)
def test_a_record_is_read_as_it_was_written_and_decided_again_alike(record: DecisionRecord) -> None:
    line = record.to_json_line()
    assert "\n" not in line
    assert read_record(line) == record
    assert differences(reading(line)) == ()


def test_the_line_says_schema_version_time_and_pool_first() -> None:
    document = json.loads(a_record().to_json_line())
    assert list(document) == ["schemaVersion", "time", "namespace", "name", "input", "decision", "actuation"]
    assert (document["schemaVersion"], document["time"]) == (1, "2030-03-17T17:46:40.000Z")
    assert (document["namespace"], document["name"]) == ("inference", "llama")
    assert document["actuation"] == {"reason": "SucceededRescale", "message": "Deployment inference/llama: 4 -> 8"}


@pytest.mark.parametrize(
    ("path", "value", "difference"),
    [
        pytest.param(
            "decision.desiredReplicas", 80, "decision.desiredReplicas: recorded 80, decided again 8", id="the count"
        ),
        pytest.param(
            "decision.reason",
            "Fallback",
            'decision.reason: recorded "Fallback", decided again "WaitingRequests"',
            id="the reason",
        ),
        pytest.param(
            "decision.recommendations.0.replicas",
            9.5,
            "decision.recommendations[0].replicas: recorded 9.5, decided again 8.0",
            id="a vote",
        ),
        pytest.param(
            "decision.recommendations.0.values.waitingRequests",
            81.0,
            "decision.recommendations[0].values.waitingRequests: recorded 81.0, decided again 80.0",
            id="a value of a vote's formula",
        ),
        pytest.param("decision.binding", None, "decision.binding: recorded null, decided again", id="the binding vote"),
        pytest.param("decision.steps", [], "decision.steps: recorded [], decided again [{", id="a step is missing"),
        pytest.param(
            "decision.nextHistory.lastDesiredReplicas",
            3,
            "decision.nextHistory.lastDesiredReplicas: recorded 3, decided again 8",
            id="what is remembered",
        ),
        pytest.param(
            "input.metrics.signals.waitingRequests.total",
            90.0,
            "decision.recommendations[0].replicas: recorded 8.0, decided again 9.0",
            id="what was seen",
        ),
        pytest.param(
            "input.parameters.maxReplicas", 6, "decision.desiredReplicas: recorded 8, decided again 6", id="the policy"
        ),
        pytest.param(
            "input.history.scaleEvents",
            [{"atSeconds": NOW - 5.0, "change": 4}],
            "decision.desiredReplicas: recorded 8, decided again 4",
            id="what was remembered",
        ),
    ],
)
def test_a_changed_record_is_found(path: str, value: Any, difference: str) -> None:
    found = differences(reading(changed(a_record(), path, value)))
    assert any(each.startswith(difference) for each in found), found


def test_times_and_messages_of_the_write_are_not_part_of_the_decision() -> None:
    assert differences(reading(changed(a_record(), "actuation.message", "something else"))) == ()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("{}", "schemaVersion: Field required", id="an empty object"),
        pytest.param("[]", "Input should be an object", id="a list"),
        pytest.param("what?", "Invalid JSON: expected value at line 1 column 1", id="no JSON"),
        pytest.param(a_record().to_json_line()[:-9], "Invalid JSON: EOF while parsing", id="half a line"),
        pytest.param(
            '{"schemaVersion": 2, "everything": "else"}',
            "schemaVersion 2 is newer than this program's 1",
            id="a newer schema, whatever else it holds",
        ),
        pytest.param(changed(a_record(), "schemaVersion", "one"), "schemaVersion: Input should be", id="no version"),
        pytest.param(
            changed(a_record(), "input.replicas.spec", None), "input.replicas.spec: Input should be", id="no count"
        ),
        pytest.param(
            changed(a_record(), "input.replicas.warm", 3),
            "input.replicas.warm: Unexpected keyword argument",
            id="a field that is not known",
        ),
        pytest.param(
            changed(a_record(), "input.metrics.signals.waitingRequests.total", "Infinity"),
            "input.metrics.MetricsObservation.signals.waitingRequests.total: Input should be a finite number",
            id="a value that is not finite",
        ),
        pytest.param(
            changed(a_record(), "decision.reason", "Whim"), "decision.reason: Input should be", id="an unknown reason"
        ),
        pytest.param(
            changed(a_record(), "input.parameters.minReplicas", 1000),
            "input.parameters: Value error, minReplicas 1000 is above maxReplicas 100",
            id="a policy that is none",
        ),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_place_and_reason(line: str, problem: str) -> None:
    found = read_record(line)
    assert isinstance(found, str)
    assert found.startswith(problem)


def test_a_log_holds_its_records_in_order(log: JsonLinesLog, log_path: Path) -> None:
    records = [a_record(a_decision_report(waiting=waiting)) for waiting in (40.0, 50.0, 60.0)]
    for record in records:
        log.write(record)
    assert list(read_log(log_path)) == records


def test_a_log_is_continued_after_a_restart(log_path: Path) -> None:
    for _ in range(2):
        log = JsonLinesLog(log_path)
        log.write(a_record())
        log.close()
    assert list(read_log(log_path)) == [a_record(), a_record()]


def test_what_stands_between_the_records_is_named_by_its_line(log_path: Path) -> None:
    line = a_record().to_json_line()
    log_path.write_text(f"{line}\n\nnonsense\n{line}\n")
    assert [entry if isinstance(entry, UnreadableRecord) else "record" for entry in read_log(log_path)] == [
        "record",
        UnreadableRecord(3, "Invalid JSON: expected ident at line 1 column 2", is_cut_short=False),
        "record",
    ]


def test_a_last_line_that_a_crash_cut_short_is_named_as_such(log_path: Path) -> None:
    line = a_record().to_json_line()
    log_path.write_text(f"{line}\n{line[:100]}")
    first, last = read_log(log_path)
    assert first == a_record()
    assert isinstance(last, UnreadableRecord)
    assert last.is_cut_short


def test_a_character_that_a_crash_cut_in_two_stops_nothing(log_path: Path) -> None:
    log_path.write_bytes(a_record().to_json_line().encode() + b"\n" + '{"name": "é'.encode()[:-1])
    assert [isinstance(entry, UnreadableRecord) for entry in read_log(log_path)] == [False, True]


def test_the_next_record_is_not_written_on_to_a_line_that_was_cut_short(log_path: Path) -> None:
    line = a_record().to_json_line()
    log_path.write_text(f"{line}\n{line[:100]}")
    log = JsonLinesLog(log_path)
    log.write(a_record())
    log.close()
    assert [isinstance(entry, UnreadableRecord) for entry in read_log(log_path)] == [False, True, False]


def test_a_log_that_is_large_enough_is_rotated_and_few_old_ones_are_kept(
    log_path: Path, log: JsonLinesLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log._handler, "maxBytes", 1000)  # one record is longer
    for _ in range(KEPT_FILES + 3):
        log.write(a_record())
    assert len(list(log_path.parent.iterdir())) == KEPT_FILES + 1
    assert list(read_log(log_path)) == [a_record()]


def test_without_a_file_the_records_go_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    JsonLinesLog(None).write(a_record())
    assert read_record(capsys.readouterr().out) == a_record()


def test_a_log_that_cannot_be_opened_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory"):
        JsonLinesLog(tmp_path / "nowhere" / "decisions.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_stops_nothing_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = JsonLinesLog(Path("/dev/full"))
    for _ in range(3):
        log.write(a_record())
    assert [record.getMessage() for record in caplog.records] == ["decision log not written"]
    assert "No space left" in vars(caplog.records[0])["problem"]
    log.close()


def test_a_log_that_is_written_again_says_so(log: JsonLinesLog, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    log._is_failing = True
    log.write(a_record())
    log.write(a_record())
    assert [record.getMessage() for record in caplog.records] == ["decision log is written again"]


@pytest.mark.parametrize(
    ("signals", "maximum_bytes"),
    [
        pytest.param({"waitingRequests": {"perReplica": 4}}, 5000, id="one vote"),
        pytest.param({"tokensInFlight": {}, "kvCache": {}}, 5500, id="two votes"),
        pytest.param(ALL_VOTES, 7500, id="all votes"),
    ],
)
def test_a_record_of_ten_replicas_is_small(signals: dict[str, Any], maximum_bytes: int) -> None:
    report = a_decision_report(
        scaler=a_scaler(signals=signals),
        replicas=10,
        metrics=an_observation(
            ready=10,
            queries={"pendingRequests": 12.0, "custom/sessions": 7.0},
            latency=PoolLatency(0.8123456789, 0.0131234567, 0.0456789012, 2.1234567890),
        ),
        history=a_history(recommended={100.123: 12, 15.001: 10}, rescaled={20.1: 1}),
    )
    assert len(a_record(report).to_json_line()) < maximum_bytes


def test_a_history_in_a_record_is_whole() -> None:
    history = a_history(recommended={100.0: 9}, rescaled={40.0: 2})
    record = reading(a_record(a_decision_report(history=history)).to_json_line())
    assert record.input.history.recommendations == (TimedRecommendation(NOW - 100.0, 9),)
    assert record.input.history.scale_events == (ScaleEvent(NOW - 40.0, 2),)
