"""trtllm-serve's metrics (names read in TensorRT-LLM's source and on pages of the first and of current releases).

They are at /prometheus/metrics; /metrics is a JSON list that reading empties. `return_perf_metrics` and
`enable_iter_perf_stats` must be true. Counters move when a request finishes.
"""

from __future__ import annotations

from autoscaler.engines.engine_metrics import EngineMetrics, Metric, MetricKind, SignalSource, spelled
from policies.signals import Signal

PREFIXES = (
    "trtllm_",  # current
    "trtllm:",  # as passed on by Dynamo for a while
)
# The first releases had no prefix; only request counts and latencies existed.
FIRST_PREFIXES = (*PREFIXES, "")


def _tokens(blocks: str) -> tuple[Metric, ...]:
    return tuple(Metric(prefix + blocks, times=Metric(prefix + "kv_cache_tokens_per_block")) for prefix in PREFIXES)


def _gauge(name: str, *, is_required: bool = False) -> SignalSource:
    # Gauges come with the first iteration's statistics.
    return SignalSource(MetricKind.GAUGE, spelled(PREFIXES, name), is_required, appears_with_traffic=True)


def _per_request(tokens: str) -> tuple[Metric, ...]:
    reasons = ("finished_reason", "finish_reason")
    return tuple(
        Metric(prefix + tokens, divided_by=Metric(prefix + "request_success_total", summed_over=reasons))
        for prefix in PREFIXES
    )


TENSORRT_LLM = EngineMetrics(
    title="TensorRT-LLM (trtllm-serve)",
    signals={
        Signal.RUNNING_REQUESTS: _gauge("num_requests_running", is_required=True),
        Signal.WAITING_REQUESTS: _gauge("num_requests_waiting", is_required=True),
        # used / max blocks, 0-1.
        Signal.KV_CACHE_USAGE: _gauge("kv_cache_utilization", is_required=True),
        Signal.KV_CACHE_USED_TOKENS: SignalSource(
            MetricKind.GAUGE, _tokens("kv_cache_used_blocks"), appears_with_traffic=True
        ),
        # The legacy KV manager counts host blocks too; with attention data parallelism only rank 0 is exposed.
        Signal.KV_CACHE_CAPACITY_TOKENS: SignalSource(MetricKind.GAUGE, _tokens("kv_cache_max_blocks")),
        Signal.CACHE_CONFIG: SignalSource(MetricKind.GAUGE, _tokens("kv_cache_max_blocks")),
        Signal.PROMPT_TOKENS: SignalSource(
            MetricKind.COUNTER, spelled(PREFIXES, "prompt_tokens_total"), is_required=True, appears_with_traffic=True
        ),
        Signal.GENERATION_TOKENS: SignalSource(
            MetricKind.COUNTER,
            spelled(PREFIXES, "generation_tokens_total"),
            is_required=True,
            appears_with_traffic=True,
        ),
        # The label is finish_reason on pages of the first releases.
        Signal.REQUESTS_FINISHED: SignalSource(
            MetricKind.COUNTER,
            spelled(FIRST_PREFIXES, "request_success_total", summed_over=("finished_reason", "finish_reason")),
            is_required=True,
            appears_with_traffic=True,
        ),
        # In tokens. Not the hit-rate gauge: it counts the misses of the warm-up for life.
        Signal.PREFIX_CACHE_HITS: SignalSource(
            MetricKind.COUNTER, spelled(PREFIXES, "prompt_cached_tokens_total"), appears_with_traffic=True
        ),
        Signal.PREFIX_CACHE_QUERIES: SignalSource(
            MetricKind.COUNTER, spelled(PREFIXES, "prompt_tokens_total"), appears_with_traffic=True
        ),
        Signal.TIME_TO_FIRST_TOKEN: SignalSource(
            MetricKind.HISTOGRAM, spelled(FIRST_PREFIXES, "time_to_first_token_seconds")
        ),
        # One observation a request: the mean gap of a request, not the gap of a token.
        Signal.INTER_TOKEN_LATENCY: SignalSource(
            MetricKind.HISTOGRAM, spelled(FIRST_PREFIXES, "time_per_output_token_seconds")
        ),
        Signal.TIME_PER_OUTPUT_TOKEN: SignalSource(
            MetricKind.HISTOGRAM, spelled(FIRST_PREFIXES, "time_per_output_token_seconds")
        ),
        Signal.PROMPT_TOKENS_PER_REQUEST: SignalSource(MetricKind.RATIO, _per_request("prompt_tokens_total")),
        Signal.GENERATION_TOKENS_PER_REQUEST: SignalSource(MetricKind.RATIO, _per_request("generation_tokens_total")),
    },
    page_marks=(
        *spelled(
            PREFIXES, "num_requests_running", "kv_cache_utilization", "model_config_info", "kv_cache_tokens_per_block"
        ),
        *spelled(FIRST_PREFIXES, "request_success_total", "e2e_request_latency_seconds_count"),
    ),
)
