from __future__ import annotations

import math
from dataclasses import replace

import pytest

from autoscaler.replay.promql_reading import read_promql
from autoscaler.replay.scraped_pages import ScrapedPages, ScrapedSample
from autoscaler.replay.serving_counters import INTER_TOKEN_LATENCY_EDGES, ServingCounters, ServingSnapshot
from autoscaler.replay.simulated_prometheus import (
    SeveralSeriesError,
    SimulatedPrometheus,
    single_value,
    unsimulated_metrics,
)

NOW = 1000.0
CAPACITY = 1000


def a_page(**numbers: float) -> ServingSnapshot:
    return replace(ServingCounters().snapshot(0, 0, 0.0), **numbers)  # type: ignore[arg-type]


def a_prometheus() -> SimulatedPrometheus:
    """Pods a and b are there, c has gone; sampled at 930, 960 and 990, seen a second later."""
    pages = ScrapedPages(delay_seconds=1.0)
    for number, at in enumerate((930.0, 960.0, 990.0)):
        pages.add("a", ScrapedSample(at, a_page(waiting_requests=number, prompt_tokens=3000 * number)))
        pages.add("b", ScrapedSample(at, a_page(waiting_requests=5, prompt_tokens=6000 * number, kv_cache_usage=0.5)))
    pages.add("c", ScrapedSample(930.0, a_page(waiting_requests=9)))
    pages.add("c", ScrapedSample(960.0, a_page(waiting_requests=9, prompt_tokens=300)))
    return SimulatedPrometheus(pages, CAPACITY, lambda: ["a", "b"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("sum(vllm:num_requests_waiting)", 7.0, id="a sum over the pods that are there"),
        pytest.param("avg(vllm_num_requests_waiting)", 3.5, id="the name as it is written with an underscore"),
        pytest.param("max(vllm:num_requests_waiting{namespace='x'})", 5.0, id="matchers choose this pool"),
        pytest.param("count(up)", 2.0, id="how many are scraped"),
        pytest.param("sum(rate(vllm:prompt_tokens_total[80s]))", 310.0, id="a rate, of the pod that has gone as well"),
        pytest.param("sum(increase(vllm:prompt_tokens_total[60s]))", 18_000.0, id="an increase"),
        pytest.param("sum(max_over_time(vllm:num_requests_waiting[1m]))", 16.0, id="the largest of a range"),
        pytest.param("sum(avg_over_time(vllm:num_requests_waiting[80s]))", 15.0, id="the mean of a range"),
        pytest.param("sum(vllm:kv_cache_usage_perc) / count(vllm:kv_cache_usage_perc)", 0.25, id="a ratio"),
        pytest.param("sum(vllm:num_requests_waiting + vllm:num_requests_running)", 7.0, id="a sum pod by pod"),
        pytest.param("sum(vllm:num_requests_waiting > 3)", 5.0, id="a comparison chooses"),
        pytest.param("sum(vllm:num_requests_waiting > bool 3)", 1.0, id="a bool comparison counts"),
        pytest.param("sum(nothing_like_it) or vector(3)", 3.0, id="or in the place of nothing"),
        pytest.param("clamp_max(sum(vllm:num_requests_waiting), 4)", 4.0, id="a clamp"),
        pytest.param("ceil(sum(vllm:num_requests_waiting) / 2) - 1", 3.0, id="arithmetic"),
        pytest.param("scalar(sum(vllm:num_requests_waiting)) * 2", 14.0, id="a scalar"),
        pytest.param("1 > bool 2", 0.0, id="two numbers compared"),
    ],
)
def test_a_query_is_answered_from_the_scraped_pages(query: str, expected: float) -> None:
    assert single_value(a_prometheus().ask(read_promql(query), NOW)) == pytest.approx(expected)


def test_a_metric_that_nobody_exposes_has_no_series() -> None:
    assert single_value(a_prometheus().ask(read_promql("sum(gateway_queue)"), NOW)) is None
    assert unsimulated_metrics(read_promql("sum(gateway_queue) + sum(up) + sum(vllm:num_requests_waiting)")) == (
        "gateway_queue",
    )


def test_several_series_are_no_single_value() -> None:
    with pytest.raises(SeveralSeriesError, match=r"has 2 series; one is wanted: add sum\(\)"):
        single_value(a_prometheus().ask(read_promql("vllm:num_requests_waiting"), NOW))


def test_nothing_is_seen_before_its_delay_has_passed() -> None:
    prometheus = a_prometheus()
    assert single_value(prometheus.ask(read_promql("sum(vllm:num_requests_waiting)"), 990.5)) == 6.0
    assert single_value(prometheus.ask(read_promql("sum(vllm:num_requests_waiting)"), 991.0)) == 7.0


def test_a_sample_older_than_five_minutes_is_not_taken_and_a_division_by_nothing_is_not_a_number() -> None:
    prometheus = a_prometheus()
    assert prometheus.ask(read_promql("vllm:num_requests_waiting"), 1291.0) == {}
    answer = single_value(prometheus.ask(read_promql("sum(vllm:num_preemptions_total) / 0"), NOW))
    assert answer is not None
    assert math.isnan(answer)


def test_a_quantile_is_read_from_the_buckets_of_all_pods() -> None:
    counters = ServingCounters()
    counters.inter_token_latency.observe(0.06, 100)  # between 50 and 75 ms
    pages = ScrapedPages(delay_seconds=0.0)
    for pod in ("a", "b"):
        pages.add(pod, ScrapedSample(930.0, a_page()))
        pages.add(pod, ScrapedSample(990.0, counters.snapshot(0, 0, 0.0)))
    prometheus = SimulatedPrometheus(pages, CAPACITY, lambda: ["a", "b"])
    query = "histogram_quantile(0.5, sum by (le) (rate(vllm:inter_token_latency_seconds_bucket[2m])))"
    assert 0.05 in INTER_TOKEN_LATENCY_EDGES
    assert single_value(prometheus.ask(read_promql(query), NOW)) == pytest.approx(0.0625)


def test_a_metric_with_a_meaning_in_its_labels_is_told_apart_by_them() -> None:
    query = 'sum(nv_trt_llm_request_metrics{request_type="waiting"})'
    waiting = single_value(a_prometheus().ask(read_promql(query), NOW))
    running = single_value(a_prometheus().ask(read_promql(query.replace("waiting", "active")), NOW))
    assert waiting != running
