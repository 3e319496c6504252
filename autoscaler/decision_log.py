"""One JSON line per decision, holding enough to decide it again.

The format is stable: `schemaVersion` grows when a field changes its meaning or goes away, not when one is added.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Protocol, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.reasons import Reason

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
MAXIMUM_FILE_BYTES = 64 * 1024 * 1024
KEPT_FILES = 4


@dataclass(frozen=True, slots=True)
class ActuationOutcome:
    """What came of the decision: written, not written and why, or nothing to write."""

    reason: Reason
    message: str


class DecisionRecord(BaseModel):
    """One decision with its whole input and what came of it."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        ser_json_inf_nan="strings",  # so that a number that should never be there is seen
    )

    schema_version: int = SCHEMA_VERSION
    time: str
    namespace: str
    name: str
    input: DecisionInput
    decision: ScalingDecision
    actuation: ActuationOutcome

    def to_json_line(self) -> str:
        """The record as one line of JSON, without the line's end."""
        return self.model_dump_json(by_alias=True)

    def decision_document(self) -> dict[str, Any]:
        """The decision as it stands in the line, for comparing: there a path can be named, and NaN equals itself."""
        document: dict[str, Any] = json.loads(self.model_dump_json(by_alias=True, include={"decision"}))
        return document


class _Version(BaseModel):
    """Read first: what else a newer record holds may be unknown here."""

    schema_version: int = Field(alias="schemaVersion", ge=1)


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A line that is no record of this format: where it stands and what is wrong with it."""

    line_number: int
    problem: str
    is_cut_short: bool  # a last line without its end: the writer was stopped, or is just writing it


def record_decision(
    namespace: str, name: str, decision_input: DecisionInput, decision: ScalingDecision, actuation: ActuationOutcome
) -> DecisionRecord:
    """The record of one decision; its time is the input's."""
    moment = datetime.fromtimestamp(decision_input.now_seconds, UTC)
    return DecisionRecord(
        time=moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        namespace=namespace,
        name=name,
        input=decision_input,
        decision=decision,
        actuation=actuation,
    )


def read_record(line: str) -> DecisionRecord | str:
    """A record from one line of JSON, or a sentence that says what is wrong with the line."""
    try:
        version = _Version.model_validate_json(line).schema_version
        if version > SCHEMA_VERSION:
            return f"schemaVersion {version} is newer than this program's {SCHEMA_VERSION}"
        return DecisionRecord.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        return f"{place}: {first['msg']}" if place else first["msg"]


def read_log(path: Path) -> Iterator[DecisionRecord | UnreadableRecord]:
    """The records of a log file in order, and what else stands between them. Raises OSError."""
    with path.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        for line_number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            record = read_record(line)
            if isinstance(record, DecisionRecord):
                yield record
            else:
                yield UnreadableRecord(line_number, record, is_cut_short=not line.endswith("\n"))


def differences(record: DecisionRecord) -> tuple[str, ...]:
    """Decides the record's input again; one sentence for each part of the decision that comes out otherwise."""
    again = record.model_copy(update={"decision": decide(record.input)})
    return tuple(_differences("", record.decision_document(), again.decision_document()))


def _differences(path: str, recorded: Any, again: Any) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(again, dict):
        for name in recorded | again:
            yield from _differences(f"{path}.{name}".lstrip("."), recorded.get(name), again.get(name))
    elif isinstance(recorded, list) and isinstance(again, list) and len(recorded) == len(again):
        for index, (before, after) in enumerate(zip(recorded, again, strict=True)):
            yield from _differences(f"{path}[{index}]", before, after)
    elif recorded != again:
        yield f"{path}: recorded {json.dumps(recorded)}, decided again {json.dumps(again)}"


class DecisionLog(Protocol):
    """Where records go."""

    def write(self, record: DecisionRecord) -> None:
        """Appends one record. Never raises for a full disk: the loop must go on."""
        ...


class NoDecisionLog:
    """Keeps no records."""

    def write(self, record: DecisionRecord) -> None:
        """Does nothing."""


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
        """Closes the file; stdout stays open."""
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
