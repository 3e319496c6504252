"""How are thousands of users' own PromQL expressions asked in few requests, without one spoiling the others?

Forty expressions travel as one, each summed to a single number and marked with its place:

    label_replace(sum((\\nEXPRESSION\\n)), "tokenscaler_query", "7", "", "") or label_replace(...

When such a batch is refused, each of its expressions is asked alone in the same tick, and those at fault stay alone
for ten minutes. An expression that reaches out of its parentheses is never put into a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autoscaler.prometheus.answer import FailureKind, PrometheusFailure, Vector
from autoscaler.prometheus.promql import is_self_contained, quoted
from autoscaler.prometheus.source import Answer, Question
from policies.observation import QueryUnknown, QueryValue

QUERY_LABEL = "tokenscaler_query"
APART_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Batch:
    """One request and the expressions it answers, by place."""

    question: Question
    expressions: tuple[str, ...]
    is_alone: bool


@dataclass(frozen=True, slots=True)
class NotANumber:
    """An answer of NaN: unknown, except for a pool that provably has no traffic, where 0/0 is zero."""


QueryResult = QueryValue | QueryUnknown | NotANumber


class UserQueries:
    """Remembers which expressions have to be asked alone."""

    def __init__(self, expressions_per_request: int) -> None:
        self._expressions_per_request = expressions_per_request
        self._apart_until_seconds: dict[str, float] = {}

    def batches(self, expressions: Iterable[str], now_seconds: float) -> list[Batch]:
        """The requests for these expressions; equal ones are asked once."""
        distinct = list(dict.fromkeys(expressions))
        for expression in list(self._apart_until_seconds):
            if self._apart_until_seconds[expression] <= now_seconds:
                del self._apart_until_seconds[expression]
        together = [each for each in distinct if each not in self._apart_until_seconds and is_self_contained(each)]
        apart = [each for each in distinct if each in self._apart_until_seconds or not is_self_contained(each)]
        size = self._expressions_per_request
        chunks = [together[start : start + size] for start in range(0, len(together), size)]
        return [_batch(tuple(chunk)) for chunk in chunks] + self.alone(apart)

    def alone(self, expressions: Iterable[str]) -> list[Batch]:
        """One request an expression."""
        return [_alone(expression) for expression in expressions]

    def read(
        self, batches: Sequence[Batch], answers: Sequence[Answer], now_seconds: float
    ) -> tuple[dict[str, QueryResult], list[str]]:
        """Results by expression, and the expressions that must be asked again, alone, before anything is known."""
        results: dict[str, QueryResult] = {}
        again: list[str] = []
        for batch, answer in zip(batches, answers, strict=True):
            if batch.is_alone:
                expression = batch.expressions[0]
                results[expression] = _read_alone(answer)
                self._judge_alone(expression, answer, now_seconds)
            elif isinstance(answer, PrometheusFailure) and answer.is_of_the_query:
                again += batch.expressions
            else:
                results |= _read_batch(batch, answer)
                if isinstance(answer, PrometheusFailure) and answer.kind is FailureKind.TIMEOUT:
                    # One of them may be too heavy; asked alone it harms only itself.
                    self._keep_apart(batch.expressions, now_seconds)
        return results, again

    def learn_culprits(self, again: Sequence[str], now_seconds: float) -> None:
        """After the expressions of refused batches were asked alone: when none of them was at fault, all stay alone."""
        if again and not any(expression in self._apart_until_seconds for expression in again):
            self._keep_apart(again, now_seconds)

    def _judge_alone(self, expression: str, answer: Answer, now_seconds: float) -> None:
        is_at_fault = answer.is_scalar if isinstance(answer, Vector) else not answer.is_of_transport
        if is_at_fault:
            self._keep_apart((expression,), now_seconds)

    def _keep_apart(self, expressions: Iterable[str], now_seconds: float) -> None:
        for expression in expressions:
            self._apart_until_seconds[expression] = now_seconds + APART_SECONDS


def _batch(expressions: tuple[str, ...]) -> Batch:
    # Line breaks, so that a comment at the end of an expression does not swallow our parenthesis.
    marked = [
        f'label_replace(sum((\n{expression}\n)), {quoted(QUERY_LABEL)}, {quoted(str(place))}, "", "")'
        for place, expression in enumerate(expressions)
    ]
    return Batch(Question(f"{len(expressions)} user queries", " or ".join(marked)), expressions, is_alone=False)


def _alone(expression: str) -> Batch:
    return Batch(Question("user query", expression), (expression,), is_alone=True)


def _read_batch(batch: Batch, answer: Answer) -> dict[str, QueryResult]:
    if isinstance(answer, PrometheusFailure):
        return dict.fromkeys(batch.expressions, QueryUnknown(answer.message))
    numbers = {labels.get(QUERY_LABEL, ""): number for labels, number in answer.samples}
    return {
        expression: _result([numbers[str(place)]] if str(place) in numbers else [], answer)
        for place, expression in enumerate(batch.expressions)
    }


def _read_alone(answer: Answer) -> QueryResult:
    if isinstance(answer, PrometheusFailure):
        return QueryUnknown(answer.message)
    return _result([number for _, number in answer.samples], answer)


def _result(numbers: Sequence[float], answer: Vector) -> QueryResult:
    """The sum of the series. A part of the truth counts as unknown: the missing part could be the larger one."""
    if answer.is_partial:
        return QueryUnknown(f"Prometheus gave a partial answer: {answer.warnings[0]}")
    if not numbers:
        return QueryUnknown("the query has no series")
    total = sum(numbers)
    if math.isnan(total):
        return NotANumber()
    if math.isinf(total):
        return QueryUnknown("the query is infinite")
    if total < 0:
        return QueryUnknown(f"the query is negative ({total:g})")
    return QueryValue(total, 0.0)
