"""How many replicas does the calendar ask for?"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Self
from zoneinfo import ZoneInfo

from cronsim import CronSim
from pydantic import Field, field_validator, model_validator

from policies.cron_expression import check_cron_expression, cron_rules
from policies.parameter_model import CelRule, ParameterModel
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation, vote

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here

NAME = "schedule"

# UTC or Area/City. Not Local, and no offset: what they mean depends on the machine, or on the time of year.
_ZONE_PATTERN = "^(UTC|GMT|[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+)$"


class ScheduleWindow(ParameterModel):
    """Recurring times at which a pool has a minimum or a maximum of its own."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Names the window; lower case letters, digits and dashes, unique within the policy.",
    )
    timezone: str = Field(
        default="UTC",
        max_length=64,
        description="IANA time zone of start and end, such as America/New_York. Default UTC.",
    )
    start: str = Field(max_length=128, description="When the window opens: minute hour day-of-month month day-of-week.")
    end: str = Field(max_length=128, description="When it closes, in the same form.")
    min_replicas: int | None = Field(
        default=None, ge=0, le=100_000, description="Replicas to have at least while the window is open."
    )
    max_replicas: int | None = Field(
        default=None, ge=1, le=100_000, description="Replicas to have at most while the window is open."
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("has(self.minReplicas) || has(self.maxReplicas)", "give minReplicas, maxReplicas or both"),
        CelRule("self.start != self.end", "end must not be the same as start", ".end"),
        CelRule(
            "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
            "minReplicas must not be above maxReplicas",
            ".minReplicas",
        ),
        # An unknown zone makes the expression itself fail, with the zone's name in the message.
        CelRule(
            f"self.timezone.matches('{_ZONE_PATTERN}') "
            "&& timestamp('2024-01-01T00:00:00Z').getHours(self.timezone) >= 0",
            "timezone must be an IANA time zone such as UTC or America/New_York",
            ".timezone",
        ),
        *cron_rules("start"),
        *cron_rules("end"),
    )

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, timezone: str) -> str:
        problem = f"{timezone!r} is no IANA time zone; write one such as UTC or America/New_York"
        if re.fullmatch(_ZONE_PATTERN, timezone) is None:
            raise ValueError(problem)
        try:
            ZoneInfo(timezone)
        except (KeyError, OSError, ValueError) as error:  # ZoneInfoNotFoundError is a KeyError
            raise ValueError(problem) from error
        return timezone

    @field_validator("start", "end")
    @classmethod
    def _check_cron(cls, expression: str) -> str:
        return check_cron_expression(expression)

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.min_replicas is None and self.max_replicas is None:
            raise ValueError(f"schedule {self.name!r} changes nothing: give it minReplicas, maxReplicas or both")
        if self.start == self.end:
            raise ValueError(f"schedule {self.name!r} starts and ends at the same moments ({self.start!r})")
        if self.min_replicas is not None and self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(
                f"schedule {self.name!r}: minReplicas {self.min_replicas} is above its maxReplicas {self.max_replicas}"
            )
        return self


def recommend_schedule(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """The largest minReplicas of the windows that are open now; minReplicas of the policy while none is.

    An exact count, known without any replica: no tolerance applies, and it acts while nothing can be measured. The
    vote of a closed window lets a policy of nothing but schedules come down again.
    """
    parameters = decision_input.parameters
    if all(window.min_replicas is None for window in parameters.schedules):
        return ()
    replicas, opened_by = parameters.min_replicas, None
    for window in open_windows(parameters.schedules, decision_input.now_seconds):
        if window.min_replicas is not None and window.min_replicas > replicas:
            replicas, opened_by = window.min_replicas, window.name
    message = f"schedule {opened_by} asks for" if opened_by else "schedule (no window raises the minimum now) asks for"
    return (
        vote(
            NAME, Reason.SCHEDULE, replicas, 1.0, message, {"replicas": replicas}, reads_replicas=False, is_exact=True
        ),
    )


def open_windows(schedules: tuple[ScheduleWindow, ...], now_seconds: float) -> tuple[ScheduleWindow, ...]:
    """The windows whose last start is later than their last end, both judged to the minute in their own time zone.

    A start at the very minute of an end opens the window. In the hour that a clock change repeats, a start or an end
    within it comes a second time.
    """
    if not schedules:
        return ()
    minute = int(now_seconds // 60)
    return tuple(window for window in schedules if _is_open(window.start, window.end, window.timezone, minute))


@lru_cache(maxsize=4096)
def _is_open(start: str, end: str, timezone: str, minute: int) -> bool:
    """Remembered for the minute, because walking a calendar back costs more than all the rest of a decision."""
    last_start, last_end = _last_occurrence(start, timezone, minute), _last_occurrence(end, timezone, minute)
    if last_start is None:
        return False
    return last_end is None or last_start >= last_end


def _last_occurrence(expression: str, timezone: str, minute: int) -> float | None:
    """The last occurrence up to this minute in unix seconds, the first time of a repeated hour included."""
    moment = datetime.fromtimestamp(minute * 60, ZoneInfo(timezone))
    begins = [moment.timestamp()]
    if moment.fold:
        # Walked back by local time, what was later than now when this hour came first would be left out.
        begins.append(moment.replace(minute=0).timestamp() - 60.0)
    found = (_last_before(expression, datetime.fromtimestamp(begin, ZoneInfo(timezone))) for begin in begins)
    return max((each.timestamp() for each in found if each is not None), default=None)


def _last_before(expression: str, moment: datetime) -> datetime | None:
    # cronsim walks back from its moment and leaves the moment itself out: begin one second into the minute.
    return next(CronSim(expression, moment + timedelta(seconds=1), reverse=True), None)
