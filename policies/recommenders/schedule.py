"""How many replicas does the calendar ask for?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Self
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import Field, field_validator, model_validator

from policies.parameter_model import ParameterModel

# Any moment will do: an expression is tried once when it is read, to learn whether it is valid and ever happens.
_SOME_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)


class ScheduleWindow(ParameterModel):
    """Recurring times at which a pool has a minimum or a maximum of its own."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description="Names the window; lower case letters, digits and dashes, unique within the policy.",
    )
    timezone: str = Field(
        default="UTC", min_length=1, max_length=64, description="IANA time zone of start and end. Default UTC."
    )
    start: str = Field(
        min_length=9, max_length=128, description="When the window opens: minute hour day-of-month month day-of-week."
    )
    end: str = Field(min_length=9, max_length=128, description="When it closes, in the same form.")
    min_replicas: int | None = Field(
        default=None, ge=0, le=100_000, description="Replicas to have at least while the window is open."
    )
    max_replicas: int | None = Field(
        default=None, ge=1, le=100_000, description="Replicas to have at most while the window is open."
    )

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, timezone: str) -> str:
        try:
            ZoneInfo(timezone)
        except (KeyError, OSError, ValueError) as error:  # ZoneInfoNotFoundError is a KeyError
            raise ValueError(f"{timezone!r} is no IANA time zone; write one such as UTC or America/New_York") from error
        return timezone

    @field_validator("start", "end")
    @classmethod
    def _check_cron(cls, expression: str) -> str:
        if len(expression.split()) != 5:
            raise ValueError(
                f"{expression!r} has {len(expression.split())} fields; cron needs 5: minute hour day-of-month month "
                'day-of-week, such as "30 7 * * 1-5"'
            )
        try:
            next(CronSim(expression, _SOME_MOMENT))
        except CronSimError as error:
            raise ValueError(f"{expression!r} is no cron expression: {error}") from error
        except StopIteration as error:
            raise ValueError(f"{expression!r} never happens") from error
        return expression

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
