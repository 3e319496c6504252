from __future__ import annotations

from typing import Any

import pytest

from autoscaler.engines import ENGINES
from autoscaler.engines.page_report import REPORTED_SIGNALS, report_page
from policies.signals import Signal
from tests.autoscaler.engines.pages_by_name import all_pages, page

TRITON = page("triton_and_trtllm_serve", "Triton")


def value(metric: str, number: float, series: int = 1) -> dict[str, Any]:
    return {"metric": metric, "series": series, "value": pytest.approx(number)}


def distribution(metric: str, count: float, total: float | None, series: int = 1) -> dict[str, Any]:
    return {"metric": metric, "series": series, "count": count, "sum": total if total is None else pytest.approx(total)}


@pytest.mark.parametrize(
    ("text", "engine", "signals"),
    [
        pytest.param(
            page("vllm_v0_extended"),
            "vllm",
            {
                "runningRequests": value("vllm:num_requests_running", 0),
                "waitingRequests": value("vllm:num_requests_waiting", 0),
                "kvCacheUsage": value("vllm:kv_cache_usage_perc", 0),
                "promptTokensTotal": value("vllm:prompt_tokens_total", 5),
                "generationTokensTotal": value("vllm:generation_tokens_total", 7),
                "preemptionsTotal": value("vllm:num_preemptions_total", 0),
                "requestsFinishedTotal": value("vllm:request_success_total", 1),
                "timeToFirstTokenSeconds": distribution("vllm:time_to_first_token_seconds", 1, 0.31326723098754883),
                "interTokenLatencySeconds": distribution("vllm:time_per_output_token_seconds", 6, 0.19016313552856445),
                "promptTokensPerRequest": distribution("vllm:request_prompt_tokens", 1, 5),
                "prefixCacheHitsTotal": value("vllm:prefix_cache_hits_total", 64),
                "prefixCacheQueriesTotal": value("vllm:prefix_cache_queries_total", 117),
                "cacheConfig": value("vllm:cache_config_info", 1),
            },
            id="vLLM with both names of the KV gauge: the newer one counts",
        ),
        pytest.param(
            page("vllm_v1", "busy single engine"),
            "vllm",
            {
                "runningRequests": value("vllm:num_requests_running", 37),
                "waitingRequests": value("vllm:num_requests_waiting", 12),
                "requestsFinishedTotal": value("vllm:request_success_total", 1),
            },
            id="waiting requests are not counted again by reason",
        ),
        pytest.param(
            page("vllm_v1", "two data-parallel"),
            "vllm",
            {"runningRequests": value("vllm:num_requests_running", 0, series=2)},
            id="two data-parallel engines are two series",
        ),
        pytest.param(
            page("vllm_v1", "TTFT histogram"),
            "vllm",
            {"timeToFirstTokenSeconds": distribution("vllm:time_to_first_token_seconds", 140, None)},
            id="a histogram without a sum",
        ),
        pytest.param(
            page("nim"),
            "vllm",
            {
                "runningRequests": value("num_requests_running", 1),
                "waitingRequests": value("num_requests_waiting", 0),
                "kvCacheUsage": value("gpu_cache_usage_perc", 0.0002848191398461977),
                "promptTokensTotal": value("prompt_tokens_total", 109),
                "generationTokensTotal": value("generation_tokens_total", 174),
                "requestsFinishedTotal": value("request_success_total", 5),
                "timeToFirstTokenSeconds": distribution("time_to_first_token_seconds", 5, 0.6119842529296875),
                "interTokenLatencySeconds": distribution("time_per_output_token_seconds", 169, 1.856855869293213),
            },
            id="NIM is vLLM without a prefix",
        ),
        pytest.param(
            TRITON,
            "triton-tensorrt-llm",
            {
                "runningRequests": value("nv_trt_llm_request_metrics", 1),
                "waitingRequests": value("nv_trt_llm_request_metrics", 1),
                "kvCacheUsage": value("nv_trt_llm_kv_cache_block_metrics", 1 / 6239),
                "cacheConfig": value("nv_trt_llm_kv_cache_block_metrics", 6239 * 64),
            },
            id="Triton's KV usage is used over max blocks",
        ),
        pytest.param(
            page("triton_and_trtllm_serve", "trtllm-serve first release"),
            "tensorrt-llm",
            {"requestsFinishedTotal": value("request_success_total", 2)},
            id="the first trtllm-serve has no prefix and little to tell",
        ),
        pytest.param(
            page("triton_and_trtllm_serve", "trtllm-serve current names"),
            "tensorrt-llm",
            {
                "kvCacheUsage": value("trtllm_kv_cache_utilization", 0.2),
                "timeToFirstTokenSeconds": distribution("trtllm_time_to_first_token_seconds", 3, 0.3),
                "interTokenLatencySeconds": distribution("trtllm_time_per_output_token_seconds", 3, 0.06),
                "timePerOutputTokenSeconds": distribution("trtllm_time_per_output_token_seconds", 3, 0.06),
            },
            id="trtllm-serve under its current names",
        ),
        pytest.param(
            page("triton_and_trtllm_serve", "trtllm-serve gauge with a pid"), "tensorrt-llm", {}, id="one stray gauge"
        ),
        pytest.param(
            page("sglang"),
            "sglang",
            {
                "runningRequests": value("sglang:num_running_reqs", 162, series=2),
                "waitingRequests": value("sglang:num_queue_reqs", 2826, series=2),
                "kvCacheUsage": value("sglang:token_usage", 0.28, series=2),
                "promptTokensTotal": value("sglang:prompt_tokens_total", 8128902),
                "generationTokensTotal": value("sglang:generation_tokens_total", 7557572),
                "requestsFinishedTotal": value("sglang:num_requests_total", 11076),
                "timeToFirstTokenSeconds": distribution("sglang:time_to_first_token_seconds", 11008, 2.3e6),
                "promptTokensPerRequest": distribution("sglang:prompt_tokens_total", 11076, 8128902),
                "generationTokensPerRequest": distribution("sglang:generation_tokens_total", 11076, 7557572),
                "prefixCacheQueriesTotal": value("sglang:prompt_tokens_total", 8128902),
            },
            id="SGLang's tensor-parallel ranks show the same numbers and count once",
        ),
    ],
)
def test_a_page_is_recognised_and_read(text: str, engine: str, signals: dict[str, Any]) -> None:
    document = report_page(text).to_document()
    assert (document["engine"], document["signals"]) == (engine, signals)
    assert document["absent"] == [signal.value for signal in REPORTED_SIGNALS if signal.value not in signals]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "The page is empty", id="an empty body"),
        pytest.param("[]", "The page is JSON", id="the JSON list of trtllm-serve"),
        pytest.param("<!DOCTYPE html><html></html>", "The page is HTML", id="a login page"),
        pytest.param(
            "process_cpu_seconds_total 1\n",
            "No metric of a known engine is on the page: it has 1 others, such as process_cpu_seconds_total.",
            id="some other program",
        ),
    ],
)
def test_what_is_no_page_of_an_engine_is_said_to_be_so(text: str, problem: str) -> None:
    report = report_page(text)
    assert report.engine is None
    assert not report.signals
    assert report.problems[0].startswith(problem)
    assert not report.is_enough_to_scale


BUSY = page("vllm_v1", "busy single engine")


@pytest.mark.parametrize(
    ("text", "engine", "problem"),
    [
        pytest.param(
            page("vllm_v0_extended").replace("num_requests_running", "num_requests_active"),
            None,
            "runningRequests: vllm:num_requests_running is not on the page; renamed? Near it: vllm:num_requests_active",
            id="a renamed metric is named with its likely new name",
        ),
        pytest.param(
            BUSY.replace(" 37.0", " NaN"),
            None,
            "runningRequests: vllm:num_requests_running is not a finite number.",
            id="NaN",
        ),
        pytest.param(
            BUSY.replace(" 12.0", " -1"), None, "waitingRequests: vllm:num_requests_waiting is negative (-1).", id="-1"
        ),
        pytest.param(
            'vllm:kv_cache_usage_perc{engine="0"} 57.5\n',
            None,
            "kvCacheUsage: vllm:kv_cache_usage_perc is 57.5, expected a share between 0 and 1.",
            id="percent where a share is due",
        ),
        pytest.param(
            page("vllm_v1", "livelocked engine"),
            None,
            "6 requests wait and none runs: the engine may be stuck.",
            id="a stuck engine",
        ),
        pytest.param(
            page("vllm_v1", 'cache_config_info with num_gpu_blocks="None"'),
            None,
            "cacheConfig: the KV capacity is unknown (num_gpu_blocks is None, no kv_cache_size_tokens).",
            id="a capacity that is the text None",
        ),
        pytest.param(
            TRITON,
            None,
            "kvCacheUsage: block type fraction says 0.4875, used / max is 0.0001603; used / max counts.",
            id="two numbers that contradict each other",
        ),
        pytest.param(
            page("vllm_v1", "TTFT histogram"),
            None,
            "timeToFirstTokenSeconds: vllm:time_to_first_token_seconds has no sum.",
            id="half a histogram",
        ),
        pytest.param(
            'vllm:num_requests_running{server="http://10.0.0.1:8000"} 3\n',
            None,
            "The series have a label `server`: this is a router's page; give the engine's own.",
            id="a router that repeats its engines' names",
        ),
        pytest.param(
            BUSY.replace(" 37.0", " 37.0 1700000000000"),
            None,
            "The samples carry timestamps: Prometheus will go on showing them for 5 min after they stop.",
            id="explicit timestamps",
        ),
        pytest.param(
            BUSY + 'vllm:num_requests_running{engine="1 5\n',
            None,
            '1 lines cannot be read, the first is: vllm:num_requests_running{engine="1 5',
            id="a damaged line does not hide the others",
        ),
        pytest.param(
            BUSY,
            "sglang",
            "The page looks like vLLM (vllm), not SGLang.",
            id="another engine than was said",
        ),
        pytest.param(
            "trtllm_kv_cache_utilization 0.2\n",
            None,
            "waitingRequests: trtllm_num_requests_waiting is not on the page (this engine shows it from the first "
            "request on).",
            id="an engine that shows a metric only once it has served",
        ),
    ],
)
def test_what_looks_wrong_is_named(text: str, engine: str | None, problem: str) -> None:
    assert any(found.startswith(problem) for found in report_page(text, engine).problems), report_page(text).problems


@pytest.mark.parametrize(
    ("text", "votes"),
    [
        pytest.param(
            page("vllm_v0_extended"),
            ("tokensInFlight", "tokenRate", "workRate", "kvCache", "waitingRequests", "interTokenLatencyDivergence"),
            id="a whole vLLM page feeds every vote",
        ),
        pytest.param(BUSY, ("waitingRequests",), id="gauges of the queue alone"),
        pytest.param(
            page("nim"),
            ("tokenRate", "workRate", "kvCache", "waitingRequests", "interTokenLatencyDivergence"),
            id="NIM has no KV capacity",
        ),
        pytest.param(page("vllm_v1", "two data-parallel"), (), id="running requests alone say too little"),
        pytest.param(BUSY.replace(" 12.0", " NaN"), (), id="NaN feeds nothing"),
        pytest.param(page("vllm_v1", "cache_config_info, vLLM 0.11.0"), (), id="a capacity without a load"),
        pytest.param(
            'vllm:kv_cache_usage_perc 0.5\nvllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1\n',
            ("kvCache",),
            id="a cache whose size is not said cannot be counted in tokens",
        ),
    ],
)
def test_which_votes_a_page_can_feed(text: str, votes: tuple[str, ...]) -> None:
    report = report_page(text)
    assert report.possible_votes == votes
    assert report.is_enough_to_scale is bool(votes)


def test_escaped_and_rays_names_are_the_same_engine() -> None:
    for prefix in ("vllm_", "ray_vllm:", "ray_vllm_"):
        report = report_page(page("vllm_v0_extended").replace("vllm:", prefix))
        assert report.engine == "vllm"
        assert report.signals[Signal.KV_CACHE_USAGE].metric == f"{prefix}kv_cache_usage_perc"


def test_exemplars_and_the_end_mark_of_open_metrics_are_tolerated() -> None:
    text = 'vllm:num_requests_waiting{engine="0"} 3.0 # {trace="a b"} 1.0 1700000000.0\n# EOF\n'
    report = report_page(text)
    assert report.signals[Signal.WAITING_REQUESTS].value == 3.0
    assert not any("cannot be read" in problem for problem in report.problems)


@pytest.mark.parametrize("name", all_pages())
def test_every_page_read_as_every_engine_gives_a_whole_report(name: str) -> None:
    for engine in ENGINES:
        report = report_page(all_pages()[name], engine)
        assert set(report.signals) | set(report.absent) == set(REPORTED_SIGNALS)
        assert not set(report.signals) & set(report.absent)
