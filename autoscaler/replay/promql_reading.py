"""What does a PromQL expression say? The part of the language that scaling queries are written in, as a tree.

Understood: numbers, selectors with ranges, rate, irate, increase, delta, `*_over_time`, aggregations with
`by`, histogram_quantile, scalar and vector, abs, ceil, floor, round, clamp, clamp_min and clamp_max, arithmetic,
comparisons with and without `bool`, `or`. Not understood: subqueries, offset, `@`, `without`, `on` and `ignoring`,
`and`, `unless`, and every other function. Label matchers are read; whether they choose this pool is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

RANGE_FUNCTIONS = frozenset(
    {"rate", "irate", "increase", "delta", "avg_over_time", "max_over_time", "min_over_time", "sum_over_time"}
    | {"count_over_time", "last_over_time"}
)
FUNCTIONS: Mapping[str, int] = {
    "histogram_quantile": 2,
    "scalar": 1,
    "vector": 1,
    "abs": 1,
    "ceil": 1,
    "floor": 1,
    "round": 1,
    "clamp": 3,
    "clamp_min": 2,
    "clamp_max": 2,
}
AGGREGATIONS = frozenset({"sum", "avg", "max", "min", "count"})
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
# Loosest first; operators of one line bind alike, to the left.
_PRECEDENCE: tuple[frozenset[str], ...] = (
    frozenset({"or"}),
    frozenset({"==", "!=", ">", "<", ">=", "<="}),
    frozenset({"+", "-"}),
    frozenset({"*", "/", "%"}),
)
_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n]*)
    |(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![a-zA-Z_:\d])|(?:Inf|NaN)\b)
    |(?P<duration>(?:\d+(?:ms|[smhdwy]))+)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
    |(?P<operator>==|!=|>=|<=|=~|!~|[-+*/%^()\[\]{},=<>@])""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True, slots=True)
class Selector:
    """The series of one metric; `equal` are its equality matchers. With a range only inside a range function."""

    metric: str
    equal: tuple[tuple[str, str], ...] = ()
    range_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A function of its arguments."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Aggregation:
    """All series of an expression as one, or as one for each value of the `by` labels."""

    operation: str
    by: tuple[str, ...]
    inner: Expression


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and the operator between them; `is_bool` comparisons give 0 or 1, others filter."""

    operator: str
    left: Expression
    right: Expression
    is_bool: bool = False


Expression: TypeAlias = Number | Selector | Call | Aggregation | Binary


class NotUnderstoodError(ValueError):
    """An expression, or a part of one, that is beyond this reader; the text says which part."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    place: int


def read_promql(text: str) -> Expression:
    """The expression as a tree. Raises `NotUnderstoodError` with the place in the text, counted from 1."""
    reader = _Reader(text)
    expression = reader.binary(0)
    reader.expect_end()
    return expression


def metrics_of(expression: Expression) -> Iterator[str]:
    """The names of the metrics that an expression reads, in order."""
    match expression:
        case Selector():
            yield expression.metric
        case Call():
            for argument in expression.arguments:
                yield from metrics_of(argument)
        case Aggregation():
            yield from metrics_of(expression.inner)
        case Binary():
            yield from metrics_of(expression.left)
            yield from metrics_of(expression.right)
        case Number():
            return


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def binary(self, level: int) -> Expression:
        if level == len(_PRECEDENCE):
            return self._unary()
        left = self.binary(level + 1)
        while (token := self._peek()) is not None and token.text in _PRECEDENCE[level]:
            self._next += 1
            is_bool = self._take("bool")
            if (after := self._peek()) is not None and after.text in {"on", "ignoring", "group_left", "group_right"}:
                raise self._not_understood(after)
            left = Binary(token.text, left, self.binary(level + 1), is_bool)
        return left

    def expect_end(self) -> None:
        token = self._peek()
        if token is not None:
            raise self._not_understood(token)

    def _unary(self) -> Expression:
        if self._take("-"):
            return Binary("*", Number(-1.0), self._unary())
        self._take("+")
        return self._primary()

    def _primary(self) -> Expression:
        token = self._token()
        if token.kind == "number":
            return Number(float(token.text))
        if token.text == "(":
            inner = self.binary(0)
            self._expect(")")
            return inner
        if token.text == "{":
            self._next -= 1
            return self._selector("", token)
        if token.kind != "name":
            raise self._not_understood(token)
        if token.text in AGGREGATIONS:
            return self._aggregation(token)
        if token.text in FUNCTIONS or token.text in RANGE_FUNCTIONS:
            return self._call(token)
        after = self._peek()
        if after is not None and after.text == "(":
            raise self._not_understood(token)
        return self._selector(token.text, token)

    def _aggregation(self, token: _Token) -> Expression:
        by = self._by()
        self._expect("(")
        inner = self.binary(0)
        self._expect(")")
        return Aggregation(token.text, by or self._by(), inner)

    def _by(self) -> tuple[str, ...]:
        if not self._take("by"):
            return ()
        self._expect("(")
        labels = []
        while not self._take(")"):
            labels.append(self._token().text)
            self._take(",")
        return tuple(labels)

    def _call(self, token: _Token) -> Expression:
        self._expect("(")
        arguments = [self.binary(0)]
        while self._take(","):
            arguments.append(self.binary(0))
        self._expect(")")
        wanted = FUNCTIONS.get(token.text, 1)
        has_range = isinstance(arguments[0], Selector) and arguments[0].range_seconds is not None
        if len(arguments) != wanted or has_range != (token.text in RANGE_FUNCTIONS):
            raise self._not_understood(token)
        return Call(token.text, tuple(arguments))

    def _selector(self, metric: str, token: _Token) -> Selector:
        equal: list[tuple[str, str]] = []
        if self._take("{"):
            while not self._take("}"):
                name, operator, value = self._token(), self._token(), self._token()
                if value.kind != "text":
                    raise self._not_understood(value)
                if operator.text == "=":
                    equal.append((name.text, value.text[1:-1]))
                self._take(",")
        metric = metric or dict(equal).get("__name__", "")
        if not metric:
            raise self._not_understood(token)
        range_seconds = None
        if self._take("["):
            duration = self._token()
            if duration.kind != "duration":
                raise self._not_understood(duration)
            range_seconds = _seconds(duration.text)
            self._expect("]")
        return Selector(metric, tuple(equal), range_seconds)

    def _peek(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _token(self) -> _Token:
        token = self._peek()
        if token is None:
            raise NotUnderstoodError(f"PromQL ends too early: {self._text}")
        self._next += 1
        return token

    def _take(self, text: str) -> bool:
        token = self._peek()
        if token is None or token.text != text:
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        token = self._token()
        if token.text != text:
            raise self._not_understood(token)

    def _not_understood(self, token: _Token) -> NotUnderstoodError:
        return NotUnderstoodError(f"PromQL is not understood from {token.text!r} on (character {token.place + 1})")


def _tokens(text: str) -> Iterator[_Token]:
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise NotUnderstoodError(f"PromQL is not understood from {text[place]!r} on (character {place + 1})")
        kind = str(found.lastgroup)
        if kind != "space":
            yield _Token(kind, found.group(), place)
        place = found.end()


def _seconds(duration: str) -> float:
    parts = re.findall(r"(\d+)(ms|[smhdwy])", duration)
    return sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts)
