"""One JSON line per decision, holding enough to decide it again.

The format is stable: `schemaVersion` grows when a field changes its meaning or goes away, not when one is added.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Protocol

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from policies.decision import ScalingDecision, decide
from policies.decision_input import DecisionInput
from policies.reasons import Reason

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
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, ser_json_inf_nan="strings"
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


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A line that is no record of this format: where it stands and what is wrong with it."""

    line_number: int
    problem: str


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
        record = DecisionRecord.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the line"
        return f"{place}: {first['msg']}"
    if record.schema_version > SCHEMA_VERSION:
        return f"schemaVersion {record.schema_version} is newer than this program's {SCHEMA_VERSION}"
    return record


def read_log(path: Path) -> Iterator[DecisionRecord | UnreadableRecord]:
    """The records of a log file in order. A half-written last line comes out as unreadable. Raises OSError."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line_number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            record = read_record(line)
            yield record if isinstance(record, DecisionRecord) else UnreadableRecord(line_number, record)


def differences(record: DecisionRecord) -> tuple[str, ...]:
    """Decides the record's input again; one sentence for each part of the decision that comes out otherwise."""
    again = decide(record.input)
    found = []
    for field in ("desired_replicas", "reason", "binding", "recommendations", "steps", "message", "next_history"):
        recorded, recomputed = getattr(record.decision, field), getattr(again, field)
        if recorded != recomputed:
            found.append(f"{field}: recorded {recorded!r}, decided again {recomputed!r}")
    return tuple(found)


class DecisionLog(Protocol):
    """Where records go."""

    def write(self, record: DecisionRecord) -> None:
        """Appends one record; never raises for a full disk (the loop must go on), but logs it once a tick."""
        ...


class NoDecisionLog:
    """Keeps no records."""

    def write(self, record: DecisionRecord) -> None:
        """Does nothing."""


class JsonLinesLog:
    """Records as JSON lines, to a file that is rotated at 64 MiB (four old ones are kept) or to stdout."""

    def __init__(self, path: Path | None) -> None:
        self._logger = logging.Logger("tokenscaler.decisions")
        handler: logging.Handler
        if path is None:
            handler = logging.StreamHandler(sys.stdout)
        else:
            handler = RotatingFileHandler(path, maxBytes=MAXIMUM_FILE_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(message)s"))
        self._logger.addHandler(handler)

    def write(self, record: DecisionRecord) -> None:
        """Appends one record. A failed write is reported on stderr by the logging module and does not raise."""
        self._logger.info(record.to_json_line())
