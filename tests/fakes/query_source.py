"""A QuerySource that answers by the name of the question, without a network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autoscaler.prometheus.answer import FailureKind, LabelledValue, PrometheusFailure, Vector
from autoscaler.prometheus.source import Answer, Question
from autoscaler.prometheus.user_queries import QUERY_LABEL

_IN_A_BATCH = re.compile(r'label_replace\(sum\(\(\n(.*?)\n\)\), "tokenscaler_query", "(\d+)"', re.DOTALL)


class FakeQuerySource:
    """Answers `rows` by question name, users' expressions from `numbers`; what is in `failures` fails.

    The name "*" fails everything, "user" every user query. An expression in `refused` spoils its batch.
    """

    def __init__(self) -> None:
        self.rows: dict[str, list[LabelledValue]] = {}
        self.numbers: dict[str, float] = {}
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.failures: dict[str, PrometheusFailure] = {}
        self.refused: set[str] = set()
        self.now_seconds = 0.0
        self.rounds: list[tuple[str, ...]] = []
        self.newest_promql: dict[str, str] = {}  # by question name

    def ask(self, questions: Sequence[Question]) -> Sequence[Answer]:
        self.rounds.append(tuple(question.name for question in questions))
        self.newest_promql |= {question.name: question.promql for question in questions}
        return [self._answer(question) for question in questions]

    def _answer(self, question: Question) -> Answer:
        is_users = question.name.endswith(("user query", "user queries"))
        for name in (question.name, "*", *(["user"] if is_users else [])):
            if name in self.failures:
                return self.failures[name]
        if is_users:
            return self._users(question.promql)
        rows = self.rows.get(question.name, [])
        return Vector(rows, self.now_seconds if rows else None, self.warnings.get(question.name, ()))

    def _users(self, promql: str) -> Answer:
        batch = _IN_A_BATCH.findall(promql)
        asked: Mapping[str, str] = {place: expression for expression, place in batch} if batch else {"": promql}
        if any(expression in self.refused for expression in asked.values()):
            return PrometheusFailure(FailureKind.REJECTED, "422 execution: refused", 422, "execution")
        rows: list[LabelledValue] = [
            ({QUERY_LABEL: place}, self.numbers[expression])
            for place, expression in asked.items()
            if expression in self.numbers
        ]
        return Vector(rows, self.now_seconds, self.warnings.get("user", ()))
