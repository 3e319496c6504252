"""Between which values is one parameter searched, and how are its values written?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | None
# A value for every parameter that is searched, by the parameter's path.
Values: TypeAlias = Mapping[str, Value]
# Values that have been tried, and the aims (missed share, accelerator-hours); None where they make no valid policy.
Tried: TypeAlias = tuple[Values, tuple[float, float] | None]

# Numbers are tried in so many digits: nobody wants to read more in a policy, and no replay tells them apart.
DIGITS = 3


@dataclass(frozen=True, slots=True)
class NumberRange:
    """All numbers from `low` to `high`, whole ones where `is_whole`; evenly by their logarithm where `is_log`."""

    path: str
    low: float
    high: float
    is_whole: bool = False
    is_log: bool = False

    def holds(self, value: Value) -> bool:
        """Whether a value lies in it."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def rounded(self, value: float) -> float:
        """A value within the range in three digits, never outside of it."""
        if self.is_whole:
            size = 10 ** max(0, math.floor(math.log10(abs(value))) - DIGITS + 1) if value else 1
            return int(min(max(round(value / size) * size, self.low), self.high))
        return min(max(float(f"{value:.{DIGITS}g}"), self.low), self.high)

    @property
    def ends(self) -> tuple[Value, ...]:
        """The least and the largest value."""
        return (int(self.low), int(self.high)) if self.is_whole else (self.low, self.high)

    @property
    def size(self) -> float:
        """How many values there are; infinite where not whole."""
        return self.high - self.low + 1 if self.is_whole else math.inf

    def shown(self) -> str:
        """As it is asked for on the command line."""
        scale = ":log" if self.is_log else ""
        return f"{self.path}={shown_value(self.low)}..{shown_value(self.high)}{scale}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values without an order."""

    path: str
    values: tuple[Value, ...]

    def holds(self, value: Value) -> bool:
        """Whether a value is one of them."""
        return any(value == each and isinstance(value, bool) == isinstance(each, bool) for each in self.values)

    @property
    def ends(self) -> tuple[Value, ...]:
        """All of them."""
        return self.values

    @property
    def size(self) -> float:
        """How many there are."""
        return len(self.values)

    def shown(self) -> str:
        """As it is asked for on the command line."""
        return f"{self.path}={','.join(shown_value(each) for each in self.values)}"


Dimension: TypeAlias = NumberRange | Choice


def told_value(value: Value) -> str:
    """A value for a reader: a parameter that is left out has none."""
    return "not set" if value is None else shown_value(value)


def shown_value(value: Value) -> str:
    """A value as YAML has it, numbers without a needless fraction or exponent."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.10g}"
        case str():
            return value
