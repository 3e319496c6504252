"""Where do decision records go, one JSON line each, and how are they read again?"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Protocol, TextIO

from autoscaler.decision_record import DecisionRecord, read_record

logger = logging.getLogger(__name__)

MAXIMUM_FILE_BYTES = 64 * 1024 * 1024
KEPT_FILES = 4
# Far more than any record; a file that is no log may be one line of gigabytes.
LONGEST_LINE_CHARACTERS = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A line that is no record of this format: where it stands and what is wrong with it."""

    line_number: int
    problem: str
    is_cut_short: bool  # a last line without its end: the writer was stopped, or is just writing it


def read_log(path: Path) -> Iterator[DecisionRecord | UnreadableRecord]:
    """The records of a log file in order, and what else stands between them. Raises OSError."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
        for line_number, line in enumerate(_lines(file), start=1):
            if not line.strip():
                continue
            record = read_record(line) if len(line) <= LONGEST_LINE_CHARACTERS else "a line longer than any record"
            if isinstance(record, DecisionRecord):
                yield record
            else:
                yield UnreadableRecord(line_number, record, is_cut_short=not line.endswith("\n"))


def _lines(file: TextIO) -> Iterator[str]:
    """Each line with its end; of one that is longer than any record no more is kept in memory than shows that it is."""
    while line := file.readline(LONGEST_LINE_CHARACTERS + 1):
        rest = line
        while len(rest) > LONGEST_LINE_CHARACTERS and not rest.endswith("\n"):
            rest = file.readline(LONGEST_LINE_CHARACTERS + 1)
        yield line if rest is line else line + "\n"


class DecisionLog(Protocol):
    """Where records go."""

    def write(self, record: DecisionRecord) -> None:
        """Appends one record. Never raises for a full disk: the loop must go on."""
        ...


class _Raising(logging.Handler):
    """A handler whose failures are its caller's."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        raise


class _File(_Raising, RotatingFileHandler):
    pass


class _Stream(_Raising, logging.StreamHandler[TextIO]):
    pass


class JsonLinesLog:
    """Records as JSON lines, to a file that is rotated at 64 MiB (four old ones are kept) or to stdout."""

    def __init__(self, path: Path | None) -> None:
        """Opens the file, or makes it. Raises OSError where that cannot be done."""
        self._handler: _File | _Stream
        if path is None:
            self._handler = _Stream(sys.stdout)
        else:
            try:
                self._handler = _File(path, maxBytes=MAXIMUM_FILE_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
                _end_half_written_line(path)
            except OSError as error:
                raise OSError(f"cannot write decisions to {path}: {error.strerror}") from error
        self._is_failing = False

    def write(self, record: DecisionRecord) -> None:
        """Appends one record. Where that fails (disk full, pipe closed) it is logged once until it succeeds again."""
        try:
            self._handler.handle(logging.makeLogRecord({"msg": record.to_json_line()}))
        except OSError as error:
            if not self._is_failing:
                logger.warning("decision log not written", extra={"problem": str(error)})
            self._is_failing = True
            return
        if self._is_failing:
            logger.info("decision log is written again")
        self._is_failing = False

    def close(self) -> None:
        """Closes the file; stdout stays open. What a full disk has not taken until now is lost, as was said."""
        with suppress(OSError):
            self._handler.close()


def _end_half_written_line(path: Path) -> None:
    """A crash may have left half a line behind: the next record must not be written on to it."""
    if not path.is_file():
        return  # a pipe or a terminal
    with path.open("rb+") as file:
        if file.seek(0, os.SEEK_END) > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
