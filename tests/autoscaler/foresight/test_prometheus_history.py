"""What is asked of Prometheus for the past, and what becomes of answers that are too large, late or missing."""

from __future__ import annotations

import numpy as np
import pytest

from autoscaler.foresight.foresight import HistoryRequest, PastUnavailable, WorkPast
from autoscaler.foresight.prometheus_history import PrometheusWorkHistory
from autoscaler.observers.metrics import PoolQuery
from autoscaler.observers.workload import LivePod
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeVector
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.prometheus.source import RangeAnswer
from tests.fakes.recorded_ranges import NAMES, FakeRanges, series_of, workload

END, BIN, DAY = 1_900_000_200.0, 300, 86_400
LLAMA, QWEN = ("inference", "llama"), ("inference", "qwen")
TOO_LARGE = PrometheusFailure(FailureKind.TOO_LARGE, "the answer has more than 64 bytes")
TOO_MANY_SAMPLES = PrometheusFailure(FailureKind.REJECTED, "query processing would load too many samples", 422)
DOWN = PrometheusFailure(FailureKind.UNREACHABLE, "connection refused")


def two_pools(question: RangeQuestion) -> RangeAnswer:
    return RangeVector([workload("llama", 100.0, question), workload("qwen", 7.0, question)])


def a_request(key: tuple[str, str], days: int = 1, engine: str = "vllm") -> HistoryRequest:
    pod = f"{key[1]}-7d4b9c6f5-bbbbb"
    return HistoryRequest(PoolQuery(key, engine, key[1], (LivePod(pod, pod, True, 0.0),), {}), days)


REQUESTS = (a_request(LLAMA), a_request(QWEN))


def read(ranges: FakeRanges, requests: tuple[HistoryRequest, ...] = REQUESTS) -> WorkPast | PastUnavailable:
    return PrometheusWorkHistory(ranges, QuerySettings(), ranges.clock).read(requests, END, BIN)


def read_loads(ranges: FakeRanges, requests: tuple[HistoryRequest, ...] = REQUESTS) -> np.ndarray:
    past = read(ranges, requests)
    assert isinstance(past, WorkPast)
    assert past.warnings == ()
    return past.loads


def test_a_day_of_few_pools_is_one_question() -> None:
    ranges = FakeRanges(processed=two_pools)
    loads = read_loads(ranges)
    assert loads.shape == (288, 2)
    assert (loads == [100.0, 7.0]).all()
    assert [(each.ends_at_seconds, each.steps) for each in ranges.asked_for("the past load")] == [(END, 288)]
    assert ranges.asked_for("the recorded load") == []  # there is none


def test_of_many_pools_an_answer_has_no_more_numbers() -> None:
    ranges = FakeRanges(processed=two_pools)
    read_loads(ranges, tuple(a_request(("inference", f"pool-{number}x")) for number in range(1000)) + REQUESTS)
    pieces = {each.ends_at_seconds: each.steps for each in ranges.asked_for("the past load")}
    assert max(pieces.values()) * 1002 <= 144_000
    assert sum(pieces.values()) == 288


def test_only_names_that_are_there_are_asked_for() -> None:
    ranges = FakeRanges(names=("vllm:prompt_tokens_total", "vllm:generation_tokens_total"), processed=two_pools)
    read_loads(ranges)
    promql = ranges.asked_for("the past load")[0].promql
    assert "vllm:prompt_tokens_total" in promql
    assert "ray_vllm" not in promql
    assert " or " not in promql
    assert ranges.asked_for("the past queues") == []


@pytest.mark.parametrize(
    ("names", "parts_among_rows", "is_reduced"),
    [
        pytest.param(NAMES, 1.0, False, id="scraped once: rates are added up"),
        pytest.param(NAMES, 0.5, True, id="scraped twice: the largest of each part counts"),
        pytest.param(NAMES, np.nan, False, id="on days without samples nothing is seen twice"),
        pytest.param(
            (*NAMES, "vllm_prompt_tokens_total"), 1.0, True, id="under two names: the first of each pod counts"
        ),
    ],
)
def test_twins_are_looked_for_where_there_are_some(
    names: tuple[str, ...], parts_among_rows: float, is_reduced: bool
) -> None:
    ranges = FakeRanges(names=names, parts_among_rows=parts_among_rows, processed=two_pools)
    read_loads(ranges)
    assert ("max by" in ranges.asked_for("the past load")[0].promql) is is_reduced


@pytest.mark.parametrize(
    ("seconds_a_question", "stride"),
    [
        pytest.param(0.1, 3, id="in quarters of an hour where Prometheus is quick"),
        pytest.param(3.0, 6, id="in half hours where it is not"),
        pytest.param(9.0, 12, id="in hours where the last days alone have taken long"),
    ],
)
def test_older_days_are_asked_for(seconds_a_question: float, stride: int) -> None:
    ranges = FakeRanges(processed=two_pools, seconds_a_question=seconds_a_question)
    loads = read_loads(ranges, (a_request(LLAMA, days=14),))
    assert loads.shape == (14 * 288, 1)
    assert (loads == 100.0).all()
    pieces = ranges.asked_for("the past load")
    fine = [each for each in pieces if each.step_seconds == BIN]
    assert sum(each.steps for each in fine) == 3.5 * 288
    coarse = [each for each in pieces if each.step_seconds != BIN]
    assert {each.step_seconds for each in coarse} == {stride * BIN}
    assert max(each.ends_at_seconds for each in coarse) == END - 3.5 * DAY
    assert sum(each.steps for each in coarse) == 10.5 * 288 / stride
    assert all(f"[{stride * BIN}s]" in each.promql for each in coarse)


def test_quarters_of_an_hour_become_lines_and_a_missing_one_stays_missing() -> None:
    def processed(question: RangeQuestion) -> RangeAnswer:
        values = np.full(question.steps, 9.0)
        if question.step_seconds == 3 * BIN:
            values[-7:] = [9.0, 9.0, 12.0, 15.0, np.nan, 30.0, 30.0]
        return RangeVector([workload("llama", values, question)])

    loads = read_loads(FakeRanges(processed=processed), (a_request(LLAMA, days=5),))
    quarters = loads[: -round(3.5 * 288), 0][-18:]
    expected = [9, 9, 10, 11, 12, 13, 14, 15, 15, *[np.nan] * 3, 30, 30, 30, 30, 30, 30]
    np.testing.assert_allclose(quarters, expected)


def test_what_is_recorded_whole_is_not_asked_for_again() -> None:
    def recorded(question: RangeQuestion) -> RangeAnswer:
        labels = [{"namespace": "us", "exported_namespace": "inference", "name": name} for name in ("llama", "qwen")]
        return RangeVector([series_of(each, 5.0, question) for each in labels])

    ranges = FakeRanges(processed=two_pools, recorded=recorded)
    assert (read_loads(ranges) == 5.0).all()
    assert ranges.asked_for("the past load") == []


def test_a_hole_in_the_record_hides_nothing_that_is_older() -> None:
    def recorded(question: RangeQuestion) -> RangeAnswer:
        values = np.full(question.steps, 5.0)
        values[question.ends_at_seconds - BIN * np.arange(question.steps)[::-1] > END - DAY] = np.nan
        return RangeVector([series_of({"namespace": "inference", "name": "llama"}, values, question)])

    loads = read_loads(FakeRanges(processed=two_pools, recorded=recorded), (a_request(LLAMA, days=2),))
    assert (loads[:286, 0] == 5.0).all()
    assert (loads[288:, 0] == 100.0).all()


@pytest.mark.parametrize(
    ("narrow", "wide", "loads", "windows"),
    [
        pytest.param([1.0, 1.0], [2.0, 2.0], [1.0, 1.0], ["300s"], id="samples are near: the bin's own rate"),
        pytest.param([np.nan, np.nan], [2.0, 2.0], [2.0, 2.0], ["600s"], id="five minutes apart: over two bins"),
        pytest.param([1.0, np.nan], [2.0, 2.0], [1.0, 2.0], ["300s", "600s"], id="of some pools: each as it can be"),
        pytest.param([1.0, np.nan], [2.0, np.nan], [1.0, np.nan], ["300s"], id="nothing of a pool: asked once more"),
    ],
)
def test_where_samples_are_far_apart(
    narrow: list[float], wide: list[float], loads: list[float], windows: list[str]
) -> None:
    def processed(question: RangeQuestion) -> RangeAnswer:
        values = wide if "[600s]" in question.promql else narrow
        names = ("llama", "qwen")
        return RangeVector([workload(name, value, question) for name, value in zip(names, values, strict=True)])

    ranges = FakeRanges(processed=processed)
    requests = tuple(a_request(key, days=2) for key in (LLAMA, QWEN))
    past = read(ranges, requests)
    assert isinstance(past, WorkPast)
    np.testing.assert_array_equal(past.loads[-1], loads)
    second = [each for each in ranges.asked_for("the past load") if each.ends_at_seconds < END]
    assert [each.promql.split("[")[1].split("]")[0] for each in second] == windows


def test_what_was_left_waiting_has_arrived() -> None:
    """Requests of 50 tokens; the queue grows by 60 in one bin, stands, and is worked off in the last two."""
    queue = np.zeros(289)
    queue[-5:] = [0.0, 60.0, 60.0, 30.0, 0.0]
    ranges = FakeRanges(
        processed=two_pools,
        waiting=lambda question: RangeVector([workload("llama", queue, question)]),
        finished=lambda question: RangeVector([workload("llama", 2.0, question)]),
    )
    loads = read_loads(ranges)
    assert loads[-5:, 0].tolist() == [100.0, 110.0, 100.0, 95.0, 95.0]
    assert (loads[:, 1] == 7.0).all()
    assert [each.steps for each in ranges.asked_for("the past requests")] == [1]


def test_a_queue_that_is_not_seen_for_a_while_has_not_gone() -> None:
    def processed(question: RangeQuestion) -> RangeAnswer:
        values = np.full(question.steps, 100.0)
        values[-3] = np.nan
        return RangeVector([workload("llama", values, question)])

    queue = np.full(289, 60.0)
    queue[-3] = np.nan
    ranges = FakeRanges(
        processed=processed,
        waiting=lambda question: RangeVector([workload("llama", queue, question)]),
        finished=lambda question: RangeVector([workload("llama", 2.0, question)]),
    )
    np.testing.assert_array_equal(read_loads(ranges)[-4:, 0], [100.0, np.nan, 100.0, 100.0])


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(TOO_LARGE, id="too large"),
        pytest.param(TOO_MANY_SAMPLES, id="of too many samples"),
    ],
)
def test_an_answer_is_asked_for_in_smaller_pieces_where_it_is(failure: PrometheusFailure) -> None:
    ranges = FakeRanges(processed=lambda question: failure if question.steps > 80 else two_pools(question))
    assert np.isfinite(read_loads(ranges)).all()
    assert {each.steps for each in ranges.asked_for("the past load")} == {288, 144, 72}


def test_an_answer_that_is_too_large_for_an_hour_is_given_up() -> None:
    assert read(FakeRanges(processed=lambda question: TOO_LARGE)) == PastUnavailable(TOO_LARGE.message)


def test_a_prometheus_that_does_not_answer_is_asked_once() -> None:
    ranges = FakeRanges(failure=DOWN)
    assert read(ranges) == PastUnavailable(DOWN.message)
    assert len(ranges.asked) == 1


def test_where_prometheus_stops_answering_what_was_read_is_the_past() -> None:
    ranges = FakeRanges(processed=lambda question: DOWN if question.ends_at_seconds < END else two_pools(question))
    past = read(ranges, (a_request(LLAMA, days=2),))
    assert isinstance(past, WorkPast)
    assert past.loads.shape == (288, 1)
    assert past.warnings == ("only 288 of 576 bins were read: connection refused",)


@pytest.mark.parametrize(
    ("values", "loads"),
    [
        pytest.param([1.0, -1.0, 3.0], [1.0, np.nan, 3.0], id="a negative rate is no load"),
        pytest.param([1.0, np.inf, 3.0], [1.0, np.nan, 3.0], id="nor is an infinite one"),
    ],
)
def test_what_is_no_quantity_of_work_is_missing(values: list[float], loads: list[float]) -> None:
    def processed(question: RangeQuestion) -> RangeAnswer:
        whole = np.concatenate([np.full(question.steps - len(values), 2.0), values])
        return RangeVector([workload("llama", whole, question)])

    np.testing.assert_array_equal(read_loads(FakeRanges(processed=processed))[-3:, 0], loads)


def test_a_pool_whose_engine_counts_no_tokens_has_no_past_and_costs_no_query_of_its_own() -> None:
    ranges = FakeRanges(processed=two_pools)
    assert read_loads(ranges, (a_request(LLAMA, engine="custom"),)).size == 0
    assert [each.name for each in ranges.asked] == ["the recorded days"]
