"""Structured process logs: one JSON object a line on stderr, a fixed message and its variables as fields."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any

import orjson

# What every LogRecord carries; anything else in it was given as `extra` and is a field of ours.
_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """A log record as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON with time, level, logger, message, the fields, and a traceback where there is one."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS | line.keys()}
        if record.exc_info:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return _to_json(line)


def _to_json(line: dict[str, Any]) -> str:
    try:
        return orjson.dumps(line, default=str).decode()
    except TypeError:
        # What orjson refuses (a path that is no UTF-8, a number beyond 64 bits) must not cost the line.
        return json.dumps({name: str(value) for name, value in line.items()})


def configure_process_log(level: str) -> None:
    """Sends all logs from `level` on to stderr as JSON lines; libraries that log each request are kept at warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("kubernetes", "uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    # What these would warn of is told by the loop (a tick that failed) and by whoever made the request.
    for repeating in ("apscheduler", "urllib3"):
        logging.getLogger(repeating).setLevel(logging.CRITICAL)
