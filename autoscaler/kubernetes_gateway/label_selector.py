"""Which labels a selector asks for, and whether an object has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. Operators: In, NotIn, Exists, DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it; an absent label meets NotIn, as on the API server."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case _:
                return value is None


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Conditions that must all hold. One without conditions is not used: it would select everything."""

    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected; never where there are no conditions."""
        return bool(self.requirements) and all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def equalities(self) -> tuple[tuple[str, str], ...]:
        """The labels that every selected object has: what an index can be asked for."""
        return tuple((r.key, r.values[0]) for r in self.requirements if r.operator == "In" and len(r.values) == 1)


def selector_from_object(document: Any) -> LabelSelector | None:
    """A selector from `matchLabels` and `matchExpressions`; None where it is absent, empty or unreadable."""
    if not isinstance(document, dict):
        return None
    found = [Requirement(key, "In", (str(value),)) for key, value in (document.get("matchLabels") or {}).items()]
    for expression in document.get("matchExpressions") or ():
        operator = str(expression.get("operator"))
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return None
        found.append(Requirement(str(expression.get("key")), operator, tuple(expression.get("values") or ())))
    return LabelSelector(tuple(found)) if found else None


_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^()]*)\)$")
_PAIR = re.compile(r"^([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)$")
_KEY = re.compile(r"^(!?)\s*([^\s!=,()]+)$")


def selector_from_text(text: str) -> LabelSelector | None:
    """A selector as `/scale` gives it ("a=b,c!=d,e in (f,g),h,!i"); None where it is empty or unreadable."""
    found = []
    for part in re.split(r",(?![^(]*\))", text):
        requirement = _requirement(part.strip())
        if requirement is None:
            return None
        found.append(requirement)
    return LabelSelector(tuple(found))


def _requirement(part: str) -> Requirement | None:
    if match := _SET.match(part):
        values = tuple(value.strip() for value in match[3].split(","))
        return Requirement(match[1], "In" if match[2] == "in" else "NotIn", values)
    if match := _PAIR.match(part):
        return Requirement(match[1], "NotIn" if match[2] == "!=" else "In", (match[3],))
    if match := _KEY.match(part):
        return Requirement(match[2], "DoesNotExist" if match[1] else "Exists")
    return None
