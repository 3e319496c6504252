"""How many replicas does the calendar ask for?"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Self
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, field_validator, model_validator

from policies.calendar_windows import WindowTimes, is_open, is_open_within, parse_days
from policies.cron_expression import check_cron_expression, cron_rules
from policies.parameter_model import CelRule, ParameterModel
from policies.reasons import Reason
from policies.recommendation import ScalingRecommendation, vote
from policies.wording import duration

if TYPE_CHECKING:
    from policies.decision_input import DecisionInput  # it holds the parameters below, so it cannot be imported here

NAME = "schedule"

# UTC or Area/City. Not Local, and no offset: what they mean depends on the machine, or on the time of year.
_ZONE_PATTERN = "^(UTC|GMT|[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)+)$"


# Whether there is such a day is checked by reading it.
_DATE_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}(/[0-9]{4}-[0-9]{2}-[0-9]{2})?$"


def _date_rules(field: str) -> tuple[CelRule, ...]:
    """No such day makes the expression itself fail, with the date in the message."""
    return (
        CelRule(
            f"self.{field}.all(d, d.split('/').all(each, timestamp(each + 'T00:00:00Z').getFullYear() > 0))",
            f"{field} must be dates such as 2026-12-24 or 2026-12-24/2026-12-27",
            f".{field}",
        ),
        CelRule(
            f"self.{field}.all(d, d.split('/')[0] <= d.split('/')[d.split('/').size() - 1])",
            f"{field} has days that end before they begin; write the earlier date first",
            f".{field}",
        ),
    )


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
    start: str | None = Field(
        default=None,
        max_length=128,
        description=(
            "When the window opens: minute hour day-of-month month day-of-week. Left out with end: it is open on "
            "all of its dates."
        ),
    )
    end: str | None = Field(default=None, max_length=128, description="When it closes, in the same form.")
    dates: tuple[Annotated[str, StringConstraints(max_length=21, pattern=_DATE_PATTERN)], ...] = Field(
        default=(),
        max_length=64,
        description="The only days it opens on (launches, holidays): 2026-12-24, or 2026-12-24/2026-12-27 for several.",
    )
    except_dates: tuple[Annotated[str, StringConstraints(max_length=21, pattern=_DATE_PATTERN)], ...] = Field(
        default=(), max_length=64, description="Days it does not open on, in the same form."
    )
    ready_by: bool = Field(
        default=True,
        description=(
            "True (default): minReplicas are asked for so early that they are Ready when the window opens, by the time "
            "that nine starts in ten take. False: they are asked for when it opens."
        ),
    )
    min_replicas: int | None = Field(
        default=None, ge=0, le=100_000, description="Replicas to have at least while the window is open."
    )
    max_replicas: int | None = Field(
        default=None, ge=1, le=100_000, description="Replicas to have at most while the window is open."
    )

    cel_rules: ClassVar[tuple[CelRule, ...]] = (
        CelRule("has(self.minReplicas) || has(self.maxReplicas)", "give minReplicas, maxReplicas or both"),
        CelRule(
            "has(self.start) == has(self.end)",
            "start and end go together; for whole days give dates without them",
            ".end",
        ),
        CelRule("has(self.start) || self.dates.size() > 0", "give start and end, or dates", ".start"),
        CelRule(
            "!has(self.start) || !has(self.end) || self.start != self.end", "end must not be the same as start", ".end"
        ),
        *_date_rules("dates"),
        *_date_rules("exceptDates"),
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
    def _check_cron(cls, expression: str | None) -> str | None:
        return None if expression is None else check_cron_expression(expression)

    @field_validator("dates", "except_dates")
    @classmethod
    def _check_dates(cls, dates: tuple[str, ...]) -> tuple[str, ...]:
        for each in dates:
            parse_days(each)
        return dates

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.min_replicas is None and self.max_replicas is None:
            raise ValueError(f"schedule {self.name!r} changes nothing: give it minReplicas, maxReplicas or both")
        if (self.start is None) != (self.end is None):
            raise ValueError(
                f"schedule {self.name!r}: start and end go together; for whole days give dates without them"
            )
        if self.start is None and not self.dates:
            raise ValueError(f"schedule {self.name!r} never opens: give it start and end, or dates")
        if self.start is not None and self.start == self.end:
            raise ValueError(f"schedule {self.name!r} starts and ends at the same moments ({self.start!r})")
        if self.min_replicas is not None and self.max_replicas is not None and self.min_replicas > self.max_replicas:
            raise ValueError(
                f"schedule {self.name!r}: minReplicas {self.min_replicas} is above its maxReplicas {self.max_replicas}"
            )
        return self

    @cached_property
    def times(self) -> WindowTimes:
        """When it is open."""
        return WindowTimes(self.timezone, self.start, self.end, self.dates, self.except_dates)


def recommend_schedule(decision_input: DecisionInput) -> tuple[ScalingRecommendation, ...]:
    """The largest minReplicas of the windows that are open, or open within L90; minReplicas of the policy without any.

    An exact count, known without any replica: no tolerance applies, and it acts while nothing can be measured. The
    vote of a closed window lets a policy of nothing but schedules come down again.
    """
    parameters, now_seconds = decision_input.parameters, decision_input.now_seconds
    if all(window.min_replicas is None for window in parameters.schedules):
        return ()
    replicas, opened_by = parameters.min_replicas, None
    for window in raising_windows(parameters.schedules, now_seconds, decision_input.cold_start.l90_seconds):
        if window.min_replicas is not None and window.min_replicas > replicas:
            replicas, opened_by = window.min_replicas, window
    if opened_by is None:
        message = "schedule (no window raises the minimum now) asks for"
    elif is_open(opened_by.times, now_seconds):
        message = f"schedule {opened_by.name} asks for"
    else:
        within = duration(decision_input.cold_start.l90_seconds)
        message = f"schedule {opened_by.name} (it opens within the {within} that starts take) asks for"
    return (
        vote(
            NAME, Reason.SCHEDULE, replicas, 1.0, message, {"replicas": replicas}, reads_replicas=False, is_exact=True
        ),
    )


def open_windows(schedules: tuple[ScheduleWindow, ...], now_seconds: float) -> tuple[ScheduleWindow, ...]:
    """The windows that are open now."""
    return tuple(window for window in schedules if is_open(window.times, now_seconds))


def raising_windows(
    schedules: tuple[ScheduleWindow, ...], now_seconds: float, lead_seconds: float
) -> tuple[ScheduleWindow, ...]:
    """The windows whose minimum holds now: those that are open, and with readyBy those that open within the lead."""
    return tuple(
        window
        for window in schedules
        if is_open_within(window.times, now_seconds, lead_seconds if window.ready_by else 0.0)
    )
