"""A log of decision records: written, rotated, continued after a crash, and what is said of lines that are none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoscaler import decision_log
from autoscaler.decision_log import KEPT_FILES, JsonLinesLog, UnreadableRecord, read_log
from autoscaler.decision_record import read_record
from tests.pool_builders import a_decision_report, a_record


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.jsonl"


@pytest.fixture
def log(log_path: Path) -> Iterator[JsonLinesLog]:
    log = JsonLinesLog(log_path)
    yield log
    log.close()


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


def test_a_line_without_end_is_no_record_and_is_not_kept_in_memory(
    log_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decision_log, "LONGEST_LINE_CHARACTERS", 5000)
    line = a_record().to_json_line()
    log_path.write_text(f"{line}\n{'x' * 60_000}\n{line}\n{'y' * 5001}")
    first, second, third, last = read_log(log_path)
    assert first == third == a_record()
    assert second == UnreadableRecord(2, "a line longer than any record", is_cut_short=False)
    assert isinstance(last, UnreadableRecord)


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
