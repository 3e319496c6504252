from __future__ import annotations

from itertools import combinations

import pytest

from autoscaler.engines import ENGINES
from autoscaler.prometheus.promql import is_self_contained
from autoscaler.prometheus.query_plan import Purpose, plan_queries
from autoscaler.prometheus.settings import QuerySettings

SETTINGS = QuerySettings()


@pytest.mark.parametrize(
    "engines",
    [
        pytest.param(engines, id=" and ".join(engines))
        for size in (1, 2, len(ENGINES))
        for engines in combinations(ENGINES, size)
    ],
)
def test_the_number_of_questions_does_not_depend_on_engines_or_namespaces(engines: tuple[str, ...]) -> None:
    plan = plan_queries(engines, {f"team-{number}" for number in range(1000)}, SETTINGS)
    assert len(plan.every_tick) <= 9
    assert len(plan.slow) <= 10
    for question in [*plan.every_tick.values(), *plan.slow.values()]:
        assert is_self_contained(question.promql)
        assert len(question.promql) < 16_000


def test_custom_pools_ask_nothing_about_engines() -> None:
    plan = plan_queries(["custom"], ["prod"], SETTINGS)
    assert (plan.every_tick, plan.slow) == ({}, {})


def test_a_gauge_is_reduced_per_engine_then_chained_then_added_up() -> None:
    promql = plan_queries(["sglang"], ["b", "a"], SETTINGS).every_tick[Purpose.RUNNING_REQUESTS].promql
    assert promql == (
        'sum by (namespace, pod) (max by (namespace, pod, dp_rank) (sglang:num_running_reqs{namespace=~"a|b"}) '
        'or on (namespace, pod) max by (namespace, pod, dp_rank) (sglang_num_running_reqs{namespace=~"a|b"}))'
    )


def test_a_counter_becomes_a_rate_before_anything_is_added_up() -> None:
    promql = plan_queries(["triton-tensorrt-llm"], ["a"], SETTINGS).every_tick[Purpose.REQUESTS_FINISHED].promql
    assert promql == (
        'sum by (namespace, pod) (max by (namespace, pod) (rate(nv_inference_request_success{namespace="a"}[60s])))'
    )


def test_lengths_are_asked_for_where_an_engine_has_histograms_of_them_and_not_two_counters() -> None:
    slow = plan_queries(["tensorrt-llm", "sglang", "triton-tensorrt-llm"], ["a"], SETTINGS).slow
    assert not {Purpose.PROMPT_LENGTHS, Purpose.ANSWER_LENGTHS} & set(slow)
    slow = plan_queries(["tensorrt-llm", "vllm"], ["a"], SETTINGS).slow
    assert 'rate(vllm:request_prompt_tokens_bucket{namespace="a"}[120s])' in slow[Purpose.PROMPT_LENGTHS].promql
    assert 'rate(vllm:request_generation_tokens_bucket{namespace="a"}[120s])' in slow[Purpose.ANSWER_LENGTHS].promql
    assert "trtllm" not in slow[Purpose.PROMPT_LENGTHS].promql


def test_the_latencies_of_vllm_are_asked_for_at_one_tick() -> None:
    purposes = list(plan_queries(["vllm"], ["a"], SETTINGS).slow)
    latencies = [Purpose.TIME_TO_FIRST_TOKEN, Purpose.INTER_TOKEN_LATENCY, Purpose.TIME_PER_OUTPUT_TOKEN]
    assert [purposes[place : place + 3] for place in range(0, len(purposes), 3)][-1] == latencies


def test_where_all_samples_come_late_a_rates_window_ends_where_they_do() -> None:
    plan = plan_queries(["triton-tensorrt-llm"], ["a"], SETTINGS, lag_seconds=60).every_tick
    assert 'rate(nv_inference_request_success{namespace="a"}[60s] offset 60s)' in plan[Purpose.REQUESTS_FINISHED].promql
    assert "[15s] offset 105s" in plan[Purpose.WINDOW_START].promql
    assert "offset" not in plan[Purpose.KV_CACHE_USAGE].promql


def test_a_ratio_of_two_metrics_is_taken_per_model() -> None:
    promql = plan_queries(["triton-tensorrt-llm"], ["a"], SETTINGS).every_tick[Purpose.KV_CACHE_USAGE].promql
    blocks = 'nv_trt_llm_kv_cache_block_metrics{namespace="a", kv_cache_block_type='
    assert promql == (
        f'(max by (namespace, pod, model, version) ({blocks}"used"}}) '
        f'/ max by (namespace, pod, model, version) ({blocks}"max"}}))'
    )


def test_the_names_of_the_labels_can_be_other_ones() -> None:
    settings = QuerySettings(namespace_label="kubernetes_namespace", pod_label="kubernetes_pod_name")
    plan = plan_queries(["vllm"], ["a"], settings)
    for question in [*plan.every_tick.values(), *plan.slow.values()]:
        text = question.promql.replace("kubernetes_namespace", "").replace("kubernetes_pod_name", "")
        assert "namespace" not in text
        assert '"pod"' not in text
