from __future__ import annotations

import numpy as np
import pytest

from autoscaler.forecast_source import PoolRequest, from_prometheus
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeQuestion, RangeSeries, RangeVector
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from autoscaler.prometheus.source import RangeAnswer
from autoscaler.prometheus.workload_names import WORKLOAD_LABEL
from forecasting.series_text import SeriesUnreadable
from forecasting.time_series import TimeSeries

NOW = 1_900_000_321.0


def a_request(**more: object) -> PoolRequest:
    settings = PrometheusSettings(url="http://localhost:9090")
    return PoolRequest("inference", "chat", settings, QuerySettings(), days=1, **more)  # type: ignore[arg-type]


class Ranges:
    """Knows the load of one workload, or fails."""

    def __init__(self, workload: str, failure: PrometheusFailure | None = None) -> None:
        self._workload = workload
        self._failure = failure

    def ask_range(self, question: RangeQuestion) -> RangeAnswer:
        if self._failure is not None:
            return self._failure
        labels = {"namespace": "inference", WORKLOAD_LABEL: self._workload}
        return RangeVector([RangeSeries(labels, np.full(question.steps, 9.0))])


def test_a_pools_load_ends_with_the_last_whole_five_minutes() -> None:
    series = from_prometheus(a_request(), Ranges("chat"), NOW)
    assert isinstance(series, TimeSeries)
    assert (series.end_seconds, series.step_seconds, len(series.values)) == (1_900_000_200.0, 300, 288)
    assert (series.values == 9.0).all()


@pytest.mark.parametrize(
    ("request_", "ranges", "problem"),
    [
        pytest.param(a_request(), Ranges("vllm-chat"), "--target names it", id="a target of another name"),
        pytest.param(
            a_request(),
            Ranges("chat", PrometheusFailure(FailureKind.UNREACHABLE, "connection refused")),
            "connection refused",
            id="no Prometheus",
        ),
    ],
)
def test_without_a_load_it_says_why(request_: PoolRequest, ranges: Ranges, problem: str) -> None:
    unreadable = from_prometheus(request_, ranges, NOW)
    assert isinstance(unreadable, SeriesUnreadable)
    assert problem in unreadable.message


def test_the_target_can_be_named() -> None:
    assert isinstance(from_prometheus(a_request(target="vllm-chat"), Ranges("vllm-chat"), NOW), TimeSeries)
