from __future__ import annotations

from math import inf, nan

import pytest

from autoscaler.prometheus.answer import FailureKind, PrometheusFailure, Vector
from autoscaler.prometheus.source import Answer
from autoscaler.prometheus.user_queries import QUERY_LABEL, NotANumber, QueryResult, UserQueries
from policies.observation import QueryUnknown, QueryValue

REFUSED = PrometheusFailure(FailureKind.REJECTED, "422 execution: no", 422, "execution")
LATE = PrometheusFailure(FailureKind.TIMEOUT, "no answer within 5 s")


def numbers(*values: float | None, warnings: tuple[str, ...] = ()) -> Vector:
    rows = [({QUERY_LABEL: str(place)}, value) for place, value in enumerate(values) if value is not None]
    return Vector(list(rows), 1.0, warnings)


def test_many_expressions_are_few_requests_and_equal_ones_are_asked_once() -> None:
    queries = UserQueries(expressions_per_request=40)
    batches = queries.batches([f"q{number % 100}" for number in range(1000)], now_seconds=0)
    assert [len(batch.expressions) for batch in batches] == [40, 40, 20]
    assert batches[0].question.promql.startswith(
        'label_replace(sum((\nq0\n)), "tokenscaler_query", "0", "", "") or label_replace(sum((\nq1\n))'
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(numbers(3.0), QueryValue(3.0, 0.0), id="a number"),
        pytest.param(numbers(0.0), QueryValue(0.0, 0.0), id="zero is a number"),
        pytest.param(numbers(), QueryUnknown("the query has no series"), id="no series"),
        pytest.param(numbers(nan), NotANumber(), id="not a number"),
        pytest.param(numbers(inf), QueryUnknown("the query is infinite"), id="infinite"),
        pytest.param(numbers(-1.0), QueryUnknown("the query is negative (-1)"), id="negative"),
        pytest.param(
            numbers(3.0, warnings=("store 2 is down",)),
            QueryUnknown("Prometheus gave a partial answer: store 2 is down"),
            id="a part of the truth",
        ),
        pytest.param(numbers(3.0, warnings=("PromQL info: x",)), QueryValue(3.0, 0.0), id="a remark on the query"),
        pytest.param(LATE, QueryUnknown("no answer within 5 s"), id="no answer"),
    ],
)
def test_what_an_answer_means(answer: Answer, expected: QueryResult) -> None:
    queries = UserQueries(40)
    results, again = queries.read(queries.batches(["q"], 0), [answer], 0)
    assert (results, again) == ({"q": expected}, [])


def test_an_expression_alone_is_the_sum_of_its_series() -> None:
    queries = UserQueries(40)
    results, _ = queries.read(queries.alone(["q"]), [Vector([({"a": "1"}, 1.0), ({"a": "2"}, 2.0)], 1.0)], 0)
    assert results == {"q": QueryValue(3.0, 0.0)}


def test_after_a_refused_batch_only_the_culprit_stays_alone_for_ten_minutes() -> None:
    queries = UserQueries(40)
    batches = queries.batches(["good", "bad"], 0)
    results, again = queries.read(batches, [REFUSED], 0)
    assert (results, again) == ({}, ["good", "bad"])
    alone = queries.alone(again)
    results, _ = queries.read(alone, [Vector([({}, 1.0)], 1.0), REFUSED], 0)
    queries.learn_culprits(again, 0)
    assert results == {"good": QueryValue(1.0, 0.0), "bad": QueryUnknown("422 execution: no")}
    assert [batch.expressions for batch in queries.batches(["good", "bad"], 15)] == [("good",), ("bad",)]
    assert [batch.expressions for batch in queries.batches(["good", "bad"], 600)] == [("good", "bad")]


def test_when_nobody_is_at_fault_alone_all_stay_alone() -> None:
    queries = UserQueries(40)
    _, again = queries.read(queries.batches(["a", "b"], 0), [REFUSED], 0)
    queries.read(queries.alone(again), [numbers(1.0), numbers(1.0)], 0)
    queries.learn_culprits(again, 0)
    assert [batch.is_alone for batch in queries.batches(["a", "b"], 15)] == [True, True]


def test_a_batch_that_takes_too_long_is_taken_apart() -> None:
    queries = UserQueries(40)
    queries.read(queries.batches(["a", "b"], 0), [LATE], 0)
    assert [batch.is_alone for batch in queries.batches(["a", "b"], 15)] == [True, True]


def test_a_text_that_reaches_for_its_neighbours_is_never_batched() -> None:
    batches = UserQueries(40).batches(['up)), "tokenscaler_query", "0", "", "") or label_replace(sum((up', "q"], 0)
    assert [batch.expressions for batch in batches if not batch.is_alone] == [("q",)]
