from __future__ import annotations

import pytest

from autoscaler.commands.forecast_source import PoolRequest, from_prometheus
from autoscaler.prometheus.answer import FailureKind, PrometheusFailure
from autoscaler.prometheus.range_answer import RangeVector
from autoscaler.prometheus.settings import PrometheusSettings, QuerySettings
from forecasting.series_text import SeriesUnreadable
from forecasting.time_series import TimeSeries
from tests.fakes.recorded_ranges import FakeRanges, workload

NOW = 1_900_000_321.0


def a_request(**more: object) -> PoolRequest:
    settings = PrometheusSettings(url="http://localhost:9090")
    return PoolRequest("inference", "chat", settings, QuerySettings(), days=1, **more)  # type: ignore[arg-type]


def ranges_of(name: str) -> FakeRanges:
    """Knows the load of one workload."""
    return FakeRanges(processed=lambda question: RangeVector([workload(name, 9.0, question)]))


def test_a_pools_load_ends_with_the_last_whole_five_minutes() -> None:
    series = from_prometheus(a_request(), ranges_of("chat"), NOW)
    assert isinstance(series, TimeSeries)
    assert (series.end_seconds, series.step_seconds, len(series.values)) == (1_900_000_200.0, 300, 288)
    assert (series.values == 9.0).all()


@pytest.mark.parametrize(
    ("request_", "ranges", "problem"),
    [
        pytest.param(a_request(), ranges_of("vllm-chat"), "--target names it", id="a target of another name"),
        pytest.param(
            a_request(),
            FakeRanges(failure=PrometheusFailure(FailureKind.UNREACHABLE, "connection refused")),
            "connection refused",
            id="no Prometheus",
        ),
    ],
)
def test_without_a_load_it_says_why(request_: PoolRequest, ranges: FakeRanges, problem: str) -> None:
    unreadable = from_prometheus(request_, ranges, NOW)
    assert isinstance(unreadable, SeriesUnreadable)
    assert problem in unreadable.message


def test_the_target_can_be_named() -> None:
    assert isinstance(from_prometheus(a_request(target="vllm-chat"), ranges_of("vllm-chat"), NOW), TimeSeries)
