"""Which of the records are asked for: all, the one that was in force at a moment, or those of the last while?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from autoscaler.api.duration import seconds_of


@dataclass(frozen=True, slots=True)
class RecordWindow:
    """At most one of a moment (unix seconds) and a length of time back from the newest record."""

    at_seconds: float | None = None
    back_seconds: float | None = None


WHOLE = RecordWindow()


def parse_window(at: str | None, since: str | None) -> RecordWindow | str:
    """The window of `--at TIME` or `--since DURATION`, or a sentence that says what is wanted instead."""
    if at is not None and since is not None:
        return "give --at or --since, not both"
    if since is not None:
        back_seconds = seconds_of(since.strip())
        if back_seconds is None:
            return f"--since {since}: a length of time such as 90s, 30m, 2h or 1d is wanted"
        return RecordWindow(back_seconds=back_seconds)
    if at is not None:
        try:
            moment = datetime.fromisoformat(at.strip())
        except ValueError:
            return f"--at {at}: a time such as 2026-11-30T09:30:00Z is wanted"
        if moment.tzinfo is None:
            return f"--at {at}: of which time zone? Write Z for UTC at its end, or an offset such as +01:00"
        return RecordWindow(at_seconds=moment.timestamp())
    return WHOLE
