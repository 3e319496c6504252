"""Structured process logs: one JSON object a line on stderr, a fixed message and its variables as fields."""

from __future__ import annotations

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
        line |= {name: value for name, value in vars(record).items() if name not in _STANDARD_FIELDS}
        if record.exc_info:
            line["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return orjson.dumps(line, default=str).decode()


def configure_process_log(level: str) -> None:
    """Sends all logs to stderr as JSON lines; libraries that log each request are kept at warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for chatty in ("apscheduler", "urllib3", "kubernetes", "uvicorn", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
