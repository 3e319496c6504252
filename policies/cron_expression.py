"""Which cron expressions may stand in a policy? Five fields, in Python and as CEL rules that say the same.

Taken are `*`, numbers, names of months and days, ranges, lists and steps: what every cron knows. Not taken are `L`,
`#`, `@daily` and steps from a single number, which differ from one cron to the next.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from policies.parameter_model import CelRule

# Any moment will do: an expression is tried once when it is read, to learn whether it ever happens.
_SOME_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)

_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"

_NAMES = f"{_MONTHS}|{_DAYS}"


def _field(value: str, names: str = "") -> str:
    a_range = f"({value})-({value})" + (f"|({names})-({names})" if names else "")
    single = f"{value}|{names}" if names else value
    element = f"([*](/[1-9][0-9]*)?|({a_range})(/[1-9][0-9]*)?|{single})"
    return f"{element}(,{element})*"


# No backslash in it, so that the same text can stand in a CEL string.
_FIELDS = (
    _field("[0-5]?[0-9]"),
    _field("[01]?[0-9]|2[0-3]"),
    _field("0?[1-9]|[12][0-9]|3[01]"),
    _field("0?[1-9]|1[0-2]", _MONTHS),
    _field("[0-7]", _DAYS),
)
CRON_PATTERN = "^" + " +".join(_FIELDS) + "$"
# The 30th or 31st of February, or the 31st of months that have 30 days, on whatever weekday.
_NEVER = (
    "^[^ ]+ +[^ ]+ +("
    "3[01]([-,]3[01])* +(0?2|FEB)(,(0?2|FEB))*|"
    "31([-,]31)* +(0?[2469]|11|FEB|APR|JUN|SEP|NOV)(,(0?[2469]|11|FEB|APR|JUN|SEP|NOV))*"
    ") +[*]$"
)
_FORM = 'five fields are wanted: minute hour day-of-month month day-of-week, such as "30 7 * * 1-5"'


def check_cron_expression(expression: str) -> str:
    """The expression itself; raises ValueError with a sentence that says what is wrong with it and what is wanted."""
    if re.fullmatch(CRON_PATTERN, expression) is None:
        raise ValueError(f"{expression!r} is no cron expression: {_FORM}")
    if any(_runs_backwards(*ends.split("-")) for ends in re.findall("[0-9]+-[0-9]+|[A-Z]+-[A-Z]+", expression)):
        raise ValueError(f"{expression!r} has a range that runs backwards; write the smaller value first")
    try:
        next(CronSim(expression, _SOME_MOMENT))
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"{expression!r} never happens: no such day in any of its months") from error
    return expression


def _runs_backwards(first: str, last: str) -> bool:
    return int(first) > int(last) if first.isdigit() else _NAMES.index(first) > _NAMES.index(last)


def cron_rules(field: str) -> tuple[CelRule, ...]:
    """The same checks for a string field of a model. Dates that never come are found where they are written plainly."""
    return (
        CelRule(
            f"!has(self.{field}) || self.{field}.matches('{CRON_PATTERN}')",
            f"{field} is no cron expression: {_FORM}",
            f".{field}",
        ),
        CelRule(
            f"!has(self.{field}) || self.{field}.findAll('[0-9]+-[0-9]+')"
            ".all(r, int(r.split('-')[0]) <= int(r.split('-')[1]))",
            f"{field} has a range that runs backwards; write the smaller value first",
            f".{field}",
        ),
        CelRule(
            f"!has(self.{field}) || self.{field}.findAll('[A-Z]+-[A-Z]+').all(r, "
            f"'{_NAMES}'.indexOf(r.split('-')[0]) <= '{_NAMES}'.indexOf(r.split('-')[1]))",
            f"{field} has a range that runs backwards; write the earlier name first",
            f".{field}",
        ),
        CelRule(
            f"!has(self.{field}) || !self.{field}.matches('{_NEVER}')",
            f"{field} never happens: no such day in any of its months",
            f".{field}",
        ),
    )
