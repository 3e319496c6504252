"""Which pools does a request's label selector ask for? The whole grammar of Kubernetes, read strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

_NAME = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?"
_KEY = re.compile(rf"(?:{_DOMAIN}/)?{_NAME}")
_VALUE = re.compile(rf"(?:{_NAME})?")
_TOKEN = re.compile(r"\s*(==|!=|[=!<>,()]|[^\s=!<>,()]+)\s*")
_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")

MAXIMUM_SELECTOR_CHARACTERS = 4096
# An HPA sends the same short one every 15 seconds. What is longer is read again: a thousand of those would take 150 MB.
MAXIMUM_KEPT_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on one label. Operators: in, notin, exists, absent, above, below (the last two: whole numbers)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet it; an absent label meets `notin`, as on the API server."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        if value is None or not _WHOLE_NUMBER.fullmatch(value):
            return False
        bound = int(self.values[0])
        return int(value) > bound if self.operator == "above" else int(value) < bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Conditions that must all hold; without any, everything is selected."""

    conditions: tuple[Condition, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether something with these labels is selected."""
        return all(condition.holds(labels) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class BadSelector:
    """What is wrong with a selector's text."""

    problem: str


def parse_selector(text: str) -> Selector | BadSelector:
    """The selector in `labelSelector=`: "a=b,c!=d,e in (f,g),h,!i,j>5". Empty text selects everything."""
    return _parse_once(text) if len(text) <= MAXIMUM_KEPT_CHARACTERS else _parse(text)


def _parse(text: str) -> Selector | BadSelector:
    if len(text) > MAXIMUM_SELECTOR_CHARACTERS:
        return BadSelector(f"it is longer than {MAXIMUM_SELECTOR_CHARACTERS} characters")
    if not text.strip():
        return Selector()
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != "".join(text.split()):
        return BadSelector("it holds characters that no selector has")
    reader = _Reader(tokens)
    conditions = []
    try:
        while True:
            conditions.append(reader.condition())
            if not reader.take(","):
                break
        reader.end()
    except _SyntaxProblemError as problem:
        return BadSelector(str(problem))
    return Selector(tuple(conditions))


_parse_once = lru_cache(maxsize=1024)(_parse)


class _SyntaxProblemError(Exception):
    pass


class _Reader:
    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def take(self, *wanted: str) -> str | None:
        """The next token if it is one of these."""
        if self._at < len(self._tokens) and self._tokens[self._at] in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise _SyntaxProblemError(f"{self._tokens[self._at]!r} is not expected there")

    def condition(self) -> Condition:
        if self.take("!"):
            return Condition(self._key(), "absent")
        key = self._key()
        if self.take("=", "=="):
            return Condition(key, "in", (self._value(),))
        if self.take("!="):
            return Condition(key, "notin", (self._value(),))
        if order := self.take(">", "<"):
            return Condition(key, "above" if order == ">" else "below", (self._whole_number(),))
        if operator := self.take("in", "notin"):
            return Condition(key, operator, self._list())
        return Condition(key, "exists")

    def _list(self) -> tuple[str, ...]:
        if not self.take("("):
            raise _SyntaxProblemError("a list in parentheses must follow in and notin")
        values = [self._value()]
        while self.take(","):
            values.append(self._value())
        if not self.take(")"):
            raise _SyntaxProblemError("a list is not closed")
        return tuple(values)

    def _word(self) -> str:
        if self._at < len(self._tokens) and self._tokens[self._at] not in (
            "=",
            "==",
            "!=",
            "!",
            "<",
            ">",
            ",",
            "(",
            ")",
        ):
            self._at += 1
            return self._tokens[self._at - 1]
        return ""

    def _key(self) -> str:
        word = self._word()
        if not _KEY.fullmatch(word):
            raise _SyntaxProblemError(f"{word!r} is no label" if word else "a label is missing")
        return word

    def _value(self) -> str:
        word = self._word()
        if not _VALUE.fullmatch(word):
            raise _SyntaxProblemError(f"{word!r} is no value of a label")
        return word

    def _whole_number(self) -> str:
        word = self._word()
        if not _WHOLE_NUMBER.fullmatch(word):
            raise _SyntaxProblemError(f"{word!r} is no whole number")
        return word
