"""vLLM's metrics, V0 to V1 (names read in its source and on pages up to 0.29), in every spelling they arrive in."""

from __future__ import annotations

from autoscaler.engines.engine_metrics import EngineMetrics, Metric, MetricKind, SignalSource, spelled
from policies.signals import Signal

PREFIXES = (
    "vllm:",  # vLLM itself
    "vllm_",  # the colon escaped: prometheus-client >= 0.23 scraped as OpenMetrics, which Prometheus 2.x asks for
    "ray_vllm:",  # Ray Serve, older releases
    "ray_vllm_",  # Ray Serve, newer releases
    "",  # NVIDIA NIM for LLMs 1.x, which runs vLLM inside
)

# `engine` is the data-parallel rank inside one process (V1); Ray tells its engines apart by worker and replica.
ENGINES_OF_A_POD = ("engine", "WorkerId", "ReplicaId")


def _metrics(*names: str, also_over: tuple[str, ...] = ()) -> tuple[Metric, ...]:
    return spelled(PREFIXES, *names, summed_over=ENGINES_OF_A_POD + also_over)


VLLM = EngineMetrics(
    title="vLLM",
    signals={
        # Capped by max_num_seqs.
        Signal.RUNNING_REQUESTS: SignalSource(MetricKind.GAUGE, _metrics("num_requests_running"), is_required=True),
        # V1 counts preempted and deferred requests too. num_requests_waiting_by_reason (2026) is the same, split.
        Signal.WAITING_REQUESTS: SignalSource(MetricKind.GAUGE, _metrics("num_requests_waiting"), is_required=True),
        # 0-1 despite its name. kv_ since 0.9; gpu_ until about 0.11, beside it since 0.9. Cached blocks that no
        # request holds count as free.
        Signal.KV_CACHE_USAGE: SignalSource(
            MetricKind.GAUGE, _metrics("kv_cache_usage_perc", "gpu_cache_usage_perc"), is_required=True
        ),
        # No model_name label. kv_cache_size_tokens in 2026 releases; num_gpu_blocks may be the text "None".
        Signal.CACHE_CONFIG: SignalSource(MetricKind.INFO, _metrics("cache_config_info")),
        # Counted when the prefill of a prompt completes, cached tokens included.
        Signal.PROMPT_TOKENS: SignalSource(MetricKind.COUNTER, _metrics("prompt_tokens_total"), is_required=True),
        # Counted at every step.
        Signal.GENERATION_TOKENS: SignalSource(
            MetricKind.COUNTER, _metrics("generation_tokens_total"), is_required=True
        ),
        # Aborted requests count as well.
        Signal.REQUESTS_FINISHED: SignalSource(
            MetricKind.COUNTER,
            _metrics("request_success_total", also_over=("finished_reason",)),
            is_required=True,
        ),
        Signal.PREEMPTIONS: SignalSource(MetricKind.COUNTER, _metrics("num_preemptions_total")),
        # In tokens since 0.9; gpu_ in early V1 (blocks at first: a share of blocks is near enough to one of tokens).
        Signal.PREFIX_CACHE_HITS: SignalSource(
            MetricKind.COUNTER, _metrics("prefix_cache_hits_total", "gpu_prefix_cache_hits_total")
        ),
        Signal.PREFIX_CACHE_QUERIES: SignalSource(
            MetricKind.COUNTER, _metrics("prefix_cache_queries_total", "gpu_prefix_cache_queries_total")
        ),
        # V0's buckets end at 10 s, V1's at 2560 s.
        Signal.TIME_TO_FIRST_TOKEN: SignalSource(MetricKind.HISTOGRAM, _metrics("time_to_first_token_seconds")),
        # inter_token_ since 0.11; time_per_output_ removed in 0.13. The first bucket is 10 ms wide.
        Signal.INTER_TOKEN_LATENCY: SignalSource(
            MetricKind.HISTOGRAM, _metrics("inter_token_latency_seconds", "time_per_output_token_seconds")
        ),
        # One observation a request, since 0.11.
        Signal.TIME_PER_OUTPUT_TOKEN: SignalSource(
            MetricKind.HISTOGRAM, _metrics("request_time_per_output_token_seconds")
        ),
        Signal.PROMPT_TOKENS_PER_REQUEST: SignalSource(MetricKind.HISTOGRAM, _metrics("request_prompt_tokens")),
        Signal.GENERATION_TOKENS_PER_REQUEST: SignalSource(MetricKind.HISTOGRAM, _metrics("request_generation_tokens")),
    },
    page_marks=_metrics("num_requests_running", "num_requests_waiting", "generation_tokens_total", "cache_config_info"),
    counts_tokens_by_step=True,
)
