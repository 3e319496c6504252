"""What is asked of Prometheus for the past, and what becomes of answers that are too large, late or missing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.foresight.prometheus_history import RECORDED_METRIC, PrometheusWorkHistory
from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeSeries, RangeVector
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeAnswer
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL

END, BIN = 1_900_000_200.0, 300
LLAMA, QWEN = ("inference", "llama"), ("inference", "qwen")
TOO_LARGE = PrometheusFailure(FailureKind.TOO_LARGE, "the answer has more than 64 bytes")
DOWN = PrometheusFailure(FailureKind.UNREACHABLE, "connection refused")


class FakeRanges:
    """Answers range questions by a function, and keeps them."""

    def __init__(self, answer: Callable[[RangeQuestion], RangeAnswer]) -> None:
        self._answer = answer
        self.asked: list[RangeQuestion] = []

    def ask_range(self, question: RangeQuestion) -> RangeAnswer:
        self.asked.append(question)
        return self._answer(question)


def is_of_the_record(question: RangeQuestion) -> bool:
    return RECORDED_METRIC in question.promql


def workload(name: str, value: float, question: RangeQuestion) -> RangeSeries:
    return RangeSeries({"namespace": "inference", WORKLOAD_LABEL: name}, np.full(question.steps, value))


def two_pools(question: RangeQuestion) -> RangeAnswer:
    if is_of_the_record(question):
        return RangeVector([])
    return RangeVector([workload("llama", 100.0, question), workload("qwen", 7.0, question)])


def a_request(key: tuple[str, str], pod: str, days: int = 1, engine: str = "vllm") -> HistoryRequest:
    return HistoryRequest(PoolQuery(key, engine, key[1], (LivePod(pod, pod, True, 0.0),), {}), days)


REQUESTS = (a_request(LLAMA, "llama-7d4b9c6f5-bbbbb"), a_request(QWEN, "qwen-7d4b9c6f5-bbbbb"))


def read(
    answer: Callable[[RangeQuestion], RangeAnswer], requests: tuple[HistoryRequest, ...] = REQUESTS
) -> tuple[WorkPast | PastUnavailable, FakeRanges]:
    ranges = FakeRanges(answer)
    return PrometheusWorkHistory(ranges, QuerySettings()).read(requests, END, BIN), ranges


def test_a_day_of_all_pools_is_read_in_four_pieces_the_newest_first() -> None:
    past, ranges = read(two_pools)
    assert isinstance(past, WorkPast)
    assert past.loads.shape == (288, 2)
    assert (past.loads == [100.0, 7.0]).all()
    pieces = [each for each in ranges.asked if not is_of_the_record(each)]
    assert [(each.ends_at_seconds, each.steps) for each in pieces] == [(END - 21_600 * place, 72) for place in range(4)]
    # Nothing was recorded in the newest piece, so nothing is looked for in older ones.
    assert sum(map(is_of_the_record, ranges.asked)) == 1


def test_older_days_are_asked_for_in_quarters_of_an_hour() -> None:
    past, ranges = read(two_pools, (a_request(LLAMA, "llama-7d4b9c6f5-bbbbb", days=6),))
    assert isinstance(past, WorkPast)
    assert past.loads.shape == (6 * 288, 1)
    assert (past.loads == 100.0).all()
    pieces = [each for each in ranges.asked if not is_of_the_record(each)]
    assert [each.step_seconds for each in pieces] == [300] * 16 + [900] * 3
    assert pieces[16].ends_at_seconds == END - 4 * 86_400
    assert "[900s]" in pieces[16].promql


def test_what_is_recorded_whole_is_not_asked_for_again() -> None:
    def answer(question: RangeQuestion) -> RangeAnswer:
        assert is_of_the_record(question)
        names = ("llama", "qwen")
        labels = [{"namespace": "tokenscaler", "exported_namespace": "inference", "name": name} for name in names]
        return RangeVector([RangeSeries(each, np.full(question.steps, 5.0)) for each in labels])

    past, _ = read(answer)
    assert isinstance(past, WorkPast)
    assert (past.loads == 5.0).all()


def test_an_answer_that_is_too_large_is_asked_for_in_smaller_pieces() -> None:
    past, ranges = read(lambda question: TOO_LARGE if question.steps > 30 else two_pools(question))
    assert isinstance(past, WorkPast)
    assert np.isfinite(past.loads).all()
    assert {each.steps for each in ranges.asked} == {72, 36, 18}


def test_an_answer_that_is_too_large_for_an_hour_is_given_up() -> None:
    past, _ = read(lambda question: TOO_LARGE)
    assert past == PastUnavailable(TOO_LARGE.message)


def test_a_prometheus_that_does_not_answer_is_asked_once() -> None:
    past, ranges = read(lambda question: DOWN)
    assert past == PastUnavailable(DOWN.message)
    assert len(ranges.asked) == 1


def test_where_prometheus_stops_answering_what_was_read_is_the_past() -> None:
    past, _ = read(lambda question: DOWN if question.ends_at_seconds < END - 30_000 else two_pools(question))
    assert isinstance(past, WorkPast)
    assert past.loads.shape == (144, 2)
    assert past.warnings == ("only 144 of 288 bins were read: connection refused",)


@pytest.mark.parametrize(
    ("values", "loads"),
    [
        pytest.param([1.0, -1.0, 3.0], [1.0, np.nan, 3.0], id="a negative rate is no load"),
        pytest.param([1.0, np.inf, 3.0], [1.0, np.nan, 3.0], id="nor is an infinite one"),
    ],
)
def test_what_is_no_quantity_of_work_is_missing(values: list[float], loads: list[float]) -> None:
    def answer(question: RangeQuestion) -> RangeAnswer:
        if is_of_the_record(question):
            return RangeVector([])
        whole = np.concatenate([np.full(question.steps - len(values), 2.0), values])
        return RangeVector([RangeSeries({"namespace": "inference", WORKLOAD_LABEL: "llama"}, whole)])

    past, _ = read(answer)
    assert isinstance(past, WorkPast)
    np.testing.assert_array_equal(past.loads[-3:, 0], loads)


def test_a_pool_whose_engine_counts_no_tokens_has_no_past_and_costs_no_query_of_its_own() -> None:
    past, ranges = read(two_pools, (a_request(LLAMA, "llama-7d4b9c6f5-bbbbb", engine="custom"),))
    assert isinstance(past, WorkPast)
    assert past.loads.size == 0
    assert all(map(is_of_the_record, ranges.asked))
