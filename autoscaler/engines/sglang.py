"""SGLang's metrics (needs --enable-metrics; names from its documentation and source, v0.4 to v0.5)."""

from __future__ import annotations

from autoscaler.engines.engine_metrics import EngineMetrics, Metric, MetricKind, SignalSource, spelled
from policies.signals import Signal

PREFIXES = (
    "sglang:",
    "sglang_",  # the colon escaped by prometheus-client >= 0.23 for Prometheus 2.x
)

# Ranks of tensor and pipeline parallelism show the same numbers; those of data parallelism add up.
RANKS = ("dp_rank",)


def _metrics(*names: str) -> tuple[Metric, ...]:
    return spelled(PREFIXES, *names, summed_over=RANKS)


def _gauge(name: str, *, is_required: bool = False) -> SignalSource:
    return SignalSource(MetricKind.GAUGE, _metrics(name), is_required, appears_with_traffic=True)


def _counter(name: str, *, is_required: bool = False) -> SignalSource:
    # Token and request counters move when a request finishes.
    return SignalSource(MetricKind.COUNTER, _metrics(name), is_required, appears_with_traffic=True)


def _per_request(tokens: str) -> tuple[Metric, ...]:
    return tuple(
        Metric(prefix + tokens, summed_over=RANKS, divided_by=Metric(prefix + "num_requests_total", summed_over=RANKS))
        for prefix in PREFIXES
    )


SGLANG = EngineMetrics(
    title="SGLang",
    signals={
        Signal.RUNNING_REQUESTS: _gauge("num_running_reqs", is_required=True),
        Signal.WAITING_REQUESTS: _gauge("num_queue_reqs", is_required=True),
        Signal.KV_CACHE_USAGE: _gauge("token_usage", is_required=True),
        Signal.KV_CACHE_USED_TOKENS: _gauge("num_used_tokens", is_required=True),
        Signal.KV_CACHE_CAPACITY_TOKENS: SignalSource(MetricKind.GAUGE, _metrics("max_total_num_tokens")),
        Signal.CACHE_CONFIG: SignalSource(MetricKind.GAUGE, _metrics("max_total_num_tokens")),
        Signal.PROMPT_TOKENS: _counter("prompt_tokens_total", is_required=True),
        Signal.GENERATION_TOKENS: _counter("generation_tokens_total", is_required=True),
        Signal.REQUESTS_FINISHED: _counter("num_requests_total", is_required=True),
        # Retracted requests are computed anew, which is what a preemption is.
        Signal.PREEMPTIONS: _counter("num_retracted_requests_total"),
        Signal.PREFIX_CACHE_HITS: SignalSource(
            MetricKind.COUNTER,
            spelled(PREFIXES, "cached_tokens_total", summed_over=(*RANKS, "cache_source")),
            appears_with_traffic=True,
        ),
        Signal.PREFIX_CACHE_QUERIES: _counter("prompt_tokens_total"),
        # Nothing below 100 ms in current releases.
        Signal.TIME_TO_FIRST_TOKEN: SignalSource(MetricKind.HISTOGRAM, _metrics("time_to_first_token_seconds")),
        # time_per_output_token_seconds in older releases.
        Signal.INTER_TOKEN_LATENCY: SignalSource(
            MetricKind.HISTOGRAM, _metrics("inter_token_latency_seconds", "time_per_output_token_seconds")
        ),
        Signal.PROMPT_TOKENS_PER_REQUEST: SignalSource(MetricKind.RATIO, _per_request("prompt_tokens_total")),
        Signal.GENERATION_TOKENS_PER_REQUEST: SignalSource(MetricKind.RATIO, _per_request("generation_tokens_total")),
    },
    page_marks=_metrics("num_running_reqs", "num_queue_reqs", "max_total_num_tokens", "cache_config_info"),
)
