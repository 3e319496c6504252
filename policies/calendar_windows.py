"""Is a window of the calendar open, and does it open soon? Judged to the minute, in the window's own time zone.

A window opens at its starts and closes at its ends, both cron expressions; `dates` lets it open on these days alone,
`except_dates` keeps it shut on others. Without start and end it is open on its dates from midnight to midnight.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim


@dataclass(frozen=True, slots=True)
class WindowTimes:
    """When a window is open. Dates are YYYY-MM-DD, or two of them with a slash between: from the first to the last."""

    timezone: str
    start: str | None = None
    end: str | None = None
    dates: tuple[str, ...] = ()
    except_dates: tuple[str, ...] = ()


def is_open(times: WindowTimes, now_seconds: float) -> bool:
    """Whether the last start is later than the last end, on a day that the window may open on.

    A start at the very minute of an end opens the window. In the hour that a clock change repeats, a start or an end
    within it comes a second time.
    """
    return _is_open(times, int(now_seconds // 60))


def is_open_within(times: WindowTimes, now_seconds: float, lead_seconds: float) -> bool:
    """Whether the window is open now, or opens in at most `lead_seconds` (also where it closes again within them)."""
    minute = int(now_seconds // 60)
    if _is_open(times, minute):
        return True
    later = int((now_seconds + lead_seconds) // 60)
    return later > minute and _opens_between(times, minute, later)


# Remembered for the minute, because walking a calendar back costs more than all the rest of a decision.
@lru_cache(maxsize=8192)
def _is_open(times: WindowTimes, minute: int) -> bool:
    if times.start is None or times.end is None:
        return _may_open_on(times, minute * 60.0)
    last_start = _last_occurrence(times.start, times.timezone, minute)
    return _may_open_on(times, last_start) and last_start >= _last_occurrence(times.end, times.timezone, minute)


@lru_cache(maxsize=8192)
def _opens_between(times: WindowTimes, minute: int, later: int) -> bool:
    if times.start is None:
        return _is_open(times, later)
    last_start = _last_occurrence(times.start, times.timezone, later)
    return last_start > minute * 60 and _may_open_on(times, last_start)


def _may_open_on(times: WindowTimes, seconds: float) -> bool:
    day = datetime.fromtimestamp(seconds, ZoneInfo(times.timezone)).date()
    if any(day in _days(each) for each in times.except_dates):
        return False
    return not times.dates or any(day in _days(each) for each in times.dates)


@dataclass(frozen=True, slots=True)
class Days:
    """From the first day to the last, both included."""

    first: date
    last: date

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last


@lru_cache(maxsize=8192)
def _days(text: str) -> Days:
    return parse_days(text)


def parse_days(text: str) -> Days:
    """The days of "2026-12-24" or "2026-12-24/2026-12-27". Raises ValueError that says what is wrong."""
    first, _, last = text.partition("/")
    try:
        days = Days(date.fromisoformat(first), date.fromisoformat(last or first))
    except ValueError as error:
        raise ValueError(f"{text!r} is no date; write 2026-12-24, or 2026-12-24/2026-12-27 for several days") from error
    if days.first > days.last:
        raise ValueError(f"{text!r} ends before it begins; write the earlier date first")
    return days


def _last_occurrence(expression: str, timezone: str, minute: int) -> float:
    """The last occurrence up to this minute in unix seconds, the first time of a repeated hour included.

    There is one: an expression that never happens is refused where the policy is read.
    """
    moment = datetime.fromtimestamp(minute * 60, ZoneInfo(timezone))
    begins = [moment.timestamp()]
    if moment.fold:
        # Walked back by local time, what was later than now when this hour came first would be left out.
        begins.append(moment.replace(minute=0).timestamp() - 60.0)
    return max(_last_before(expression, datetime.fromtimestamp(begin, ZoneInfo(timezone))) for begin in begins)


def _last_before(expression: str, moment: datetime) -> float:
    # cronsim walks back from its moment and leaves the moment itself out: begin one second into the minute.
    return next(CronSim(expression, moment + timedelta(seconds=1), reverse=True)).timestamp()
