"""What does the /prometheus/metrics page of one trtllm-serve say under a given load?"""

from __future__ import annotations

from collections.abc import Iterator

from tests.servers.vllm_page import ITL_EDGES, KV_BLOCK_TOKENS, KV_BLOCKS, TTFT_EDGES, Counters, PodLoad, histogram


def render_trtllm_page(load: PodLoad, counters: Counters, model: str = "meta-llama/Llama-3.1-70B-Instruct") -> str:
    """The page as text exposition format. Latencies are one observation a request."""
    labels = f'engine_type="pytorch",model_name="{model}",pid="1"'

    def gauge(name: str, value: float) -> Iterator[str]:
        yield f"# TYPE trtllm_{name} gauge"
        yield f"trtllm_{name}{{{labels}}} {float(value)}"

    def counter(name: str, value: float, extra: str = "") -> Iterator[str]:
        yield f"# TYPE trtllm_{name} counter"
        yield f"trtllm_{name}{{{labels}{extra}}} {float(int(value))}"

    lines = [
        *gauge("num_requests_running", load.running),
        *gauge("num_requests_waiting", load.waiting),
        *gauge("kv_cache_utilization", load.kv_cache_usage),
        *gauge("kv_cache_used_blocks", round(load.kv_cache_usage * KV_BLOCKS)),
        *gauge("kv_cache_max_blocks", KV_BLOCKS),
        *gauge("kv_cache_tokens_per_block", KV_BLOCK_TOKENS),
        *counter("prompt_tokens_total", counters.prompt_tokens),
        *counter("prompt_cached_tokens_total", counters.prefix_hits),
        *counter("generation_tokens_total", counters.generation_tokens),
        *counter("request_success_total", counters.requests, ',finished_reason="stop"'),
        *histogram("trtllm_time_to_first_token_seconds", labels, TTFT_EDGES, counters.time_to_first_token),
        *histogram("trtllm_time_per_output_token_seconds", labels, ITL_EDGES, counters.inter_token_latency),
    ]
    return "\n".join(lines) + "\n"
