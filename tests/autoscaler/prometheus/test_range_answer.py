"""Range queries over real HTTP: what comes back, and every way in which nothing does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from autoscaler.clock import SystemClock
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeVector
from autoscaler.prometheus.settings import PrometheusSettings
from autoscaler.prometheus.source import PrometheusSource, RangeAnswer
from tests.fakes.prometheus_server import FakePrometheus, Reply, rejection, vector

END = 1_800_000_000.0
QUESTION = RangeQuestion("the past load", "sum(rate(x[5m]))", END, 300, 4)


def matrix(*rows: dict[str, Any], warnings: tuple[str, ...] = ()) -> Reply:
    document = {"status": "success", "data": {"resultType": "matrix", "result": rows}, "warnings": list(warnings)}
    return Reply(body=json.dumps(document).encode())


def asked(reply: Reply) -> tuple[RangeAnswer, FakePrometheus]:
    # Only what is to be late gets little time: a busy machine is late by itself.
    settings = {"read_timeout_seconds": 0.5 if reply.delay_seconds else 10.0, "round_seconds": 20.0}
    with FakePrometheus(lambda promql: reply) as fake:
        source = PrometheusSource(PrometheusSettings(url=fake.url, **settings), SystemClock())
        answer = source.ask_range(QUESTION)
        source.close()
    return answer, fake


def test_values_stand_at_their_moments_and_missing_ones_are_nan() -> None:
    rows = {"metric": {"pod": "a"}, "values": [[END - 900, "1"], [END - 300, "2.5"], [END, "NaN"]]}
    answer, fake = asked(matrix(rows, warnings=("a store did not answer",)))
    assert isinstance(answer, RangeVector)
    assert answer.is_partial
    assert answer.series[0].labels == {"pod": "a"}
    np.testing.assert_array_equal(answer.series[0].values, [1.0, np.nan, 2.5, np.nan])
    received = fake.requests[0]
    assert (received.method, received.path) == ("POST", "/api/v1/query_range")
    assert {name: received.form[name] for name in ("query", "start", "end", "step")} == {
        "query": QUESTION.promql,
        "start": f"{END - 900:.0f}",
        "end": f"{END:.0f}",
        "step": "300s",
    }


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(
            rejection(422, "execution", "too many samples"), FailureKind.REJECTED, id="a query that is refused"
        ),
        pytest.param(vector([]), FailureKind.BAD_ANSWER, id="a vector where a range was asked for"),
        pytest.param(matrix({"metric": {}, "values": [[END, "x"]]}), FailureKind.BAD_ANSWER, id="no numbers"),
        pytest.param(Reply(body=b"<html>login"), FailureKind.BAD_ANSWER, id="a login page"),
        pytest.param(Reply(body=b"{}", delay_seconds=1.0), FailureKind.TIMEOUT, id="an answer that is late"),
    ],
)
def test_a_failure_is_a_value(reply: Reply, kind: FailureKind) -> None:
    answer, _ = asked(reply)
    assert isinstance(answer, PrometheusFailure)
    assert answer.kind is kind
    assert "the past load" in answer.message
