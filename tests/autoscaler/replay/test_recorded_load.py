from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeSeries, RangeVector
from autoscaler.prometheus.settings import QuerySettings
from autoscaler.replay.policy_files import PoolIdentity
from autoscaler.replay.recorded_load import PIECE_MOMENTS, RecordedTime, read_recorded_load
from autoscaler.replay.trace import BinnedTrace, TraceError
from autoscaler.replay.trace_load import TRACE_BEGINS_AT_SECONDS, trace_load

STARTS = 1_790_000_000.0
POOL = PoolIdentity("inference", "llama", "vllm-llama", "vllm")


@dataclass
class RecordedCounters:
    """Answers 2 requests, 3000 prompt and 400 generated tokens a second, but for the minutes that are missing."""

    missing: frozenset[int] = frozenset()
    is_empty: bool = False
    failure: PrometheusFailure | None = None
    asked: list[RangeQuestion] = field(default_factory=list)

    def ask_range(self, question: RangeQuestion) -> RangeVector | PrometheusFailure:
        self.asked.append(question)
        if self.failure is not None:
            return self.failure
        if self.is_empty:
            return RangeVector([])
        rates = {"request_success": 2.0, "prompt_tokens": 3000.0, "generation_tokens": 400.0}
        rate = next(value for name, value in rates.items() if f"vllm:{name}_total" in question.promql)
        first = round((question.starts_at_seconds - STARTS) / question.step_seconds) - 1
        values = np.array([np.nan if first + k in self.missing else rate for k in range(question.steps)])
        return RangeVector([RangeSeries({}, values)])


def read(source: RecordedCounters, minutes: float = 30.0) -> object:
    return read_recorded_load(source, QuerySettings(), POOL, RecordedTime(STARTS, STARTS + 60.0 * minutes))


def test_the_load_has_its_rates_and_its_own_time() -> None:
    trace = read_recorded_load(RecordedCounters(), QuerySettings(), POOL, RecordedTime(STARTS, STARTS + 1800.0))
    assert trace.requests_per_second.tolist() == [2.0] * 30
    assert trace.input_tokens_per_request.tolist() == [1500.0] * 30
    assert trace.output_tokens_per_request.tolist() == [200.0] * 30
    assert TRACE_BEGINS_AT_SECONDS + trace.start_seconds == STARTS
    assert trace.bin_seconds == 60.0


def test_minutes_that_were_not_recorded_are_named_and_not_taken_for_zero() -> None:
    source = RecordedCounters(missing=frozenset({3, 4}))
    trace = read_recorded_load(source, QuerySettings(), POOL, RecordedTime(STARTS, STARTS + 1800.0))
    for values in (trace.requests_per_second, trace.input_tokens_per_request, trace.output_tokens_per_request):
        assert np.flatnonzero(np.isnan(values)).tolist() == [3, 4]
    assert "2 of 30 minutes were not recorded" in trace.assumptions[1]


def test_a_long_time_is_read_in_pieces_of_the_pools_own_pods() -> None:
    source = RecordedCounters()
    read(source, PIECE_MOMENTS + 10.0)
    assert [question.steps for question in source.asked[:2]] == [PIECE_MOMENTS, 10]
    assert 'namespace="inference",pod=~"vllm-llama-.+"' in source.asked[0].promql


@pytest.mark.parametrize(
    ("source", "minutes", "problem"),
    [
        pytest.param(RecordedCounters(is_empty=True), 30.0, "no finished request from", id="nothing is recorded"),
        pytest.param(
            RecordedCounters(failure=PrometheusFailure(FailureKind.UNREACHABLE, "POST http://x: refused")),
            30.0,
            "--prometheus: POST http://x: refused",
            id="Prometheus does not answer",
        ),
        pytest.param(RecordedCounters(), 0.0, "--start is not before --end", id="no time at all"),
    ],
)
def test_what_cannot_be_read_is_said(source: RecordedCounters, minutes: float, problem: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(source, minutes)
    assert problem in str(caught.value)


@pytest.mark.parametrize("start_seconds", [-3600.0, 3600.0])
def test_a_load_from_before_a_trace_s_own_zero_is_replayed_too(start_seconds: float) -> None:
    """What was recorded before the moment at which a trace begins in simulation has stamps below zero."""
    recorded = BinnedTrace(start_seconds, 60.0, np.full(10, 2.0), np.full(10, 500.0), np.full(10, 100.0))
    load = trace_load(recorded, 1.0, None, None, 0)
    drawn = load.draw(1)
    found = [request.arrived_at for request in load.requests(drawn)]
    assert len(found) == len(drawn) > 1000
    assert load.starts_at_seconds <= found[0] <= found[-1] <= load.ends_at_seconds
