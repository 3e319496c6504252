"""What does the /metrics page of one vLLM server (V1 engine) say under a given load?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

KV_BLOCK_TOKENS = 16
KV_BLOCKS = 27_000
KV_CAPACITY_TOKENS = KV_BLOCK_TOKENS * KV_BLOCKS

TTFT_EDGES = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160)
ITL_EDGES = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
TOKEN_EDGES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


@dataclass(frozen=True, slots=True)
class PodLoad:
    """What one engine is doing now: gauges, and the rates at which its counters grow."""

    running: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0  # share, 0 to 1
    prompt_tokens_per_second: float = 0.0
    generation_tokens_per_second: float = 0.0
    requests_per_second: float = 0.0
    time_to_first_token_seconds: float = 0.05
    inter_token_latency_seconds: float = 0.02
    prefix_cache_hit_share: float = 0.0
    preemptions_per_second: float = 0.0


@dataclass(slots=True)
class Counters:
    """What one engine process has done since it started; all zero again when it restarts."""

    started_at_seconds: float
    prompt_tokens: float = 0.0
    generation_tokens: float = 0.0
    requests: float = 0.0
    preemptions: float = 0.0
    time_to_first_token: list[float] | None = None  # per edge, then the sum
    inter_token_latency: list[float] | None = None
    prompt_lengths: list[float] | None = None
    generation_lengths: list[float] | None = None
    prefix_hits: float = 0.0

    def advance(self, load: PodLoad, seconds: float) -> None:
        """Adds what the load does in so many seconds."""
        prompt, generated = load.prompt_tokens_per_second * seconds, load.generation_tokens_per_second * seconds
        requests = load.requests_per_second * seconds
        self.prompt_tokens += prompt
        self.generation_tokens += generated
        self.requests += requests
        self.preemptions += load.preemptions_per_second * seconds
        self.prefix_hits += prompt * load.prefix_cache_hit_share
        self.time_to_first_token = _observe(
            self.time_to_first_token, TTFT_EDGES, load.time_to_first_token_seconds, requests
        )
        self.inter_token_latency = _observe(
            self.inter_token_latency, ITL_EDGES, load.inter_token_latency_seconds, generated
        )
        mean_prompt, mean_generated = (prompt / requests, generated / requests) if requests else (0.0, 0.0)
        self.prompt_lengths = _observe(self.prompt_lengths, TOKEN_EDGES, mean_prompt, requests)
        self.generation_lengths = _observe(self.generation_lengths, TOKEN_EDGES, mean_generated, requests)


def _observe(buckets: list[float] | None, edges: Sequence[float], value: float, count: float) -> list[float]:
    # Cumulative counts for each edge, then +Inf, then the sum.
    counts = list(buckets) if buckets is not None else [0.0] * (len(edges) + 2)
    for index, edge in enumerate(edges):
        if value <= edge:
            counts[index] += count
    counts[-2] += count
    counts[-1] += count * value
    return counts


def histogram(name: str, labels: str, edges: Sequence[float], buckets: list[float] | None) -> Iterator[str]:
    """The lines of one histogram; `buckets` as `Counters` has them."""
    counts = buckets if buckets is not None else [0.0] * (len(edges) + 2)
    yield f"# TYPE {name} histogram"
    for edge, count in zip((*map(float, edges), "+Inf"), counts, strict=False):
        yield f'{name}_bucket{{{labels},le="{edge}"}} {float(int(count))}'
    yield f"{name}_count{{{labels}}} {float(int(counts[-2]))}"
    yield f"{name}_sum{{{labels}}} {counts[-1]}"


def render_page(load: PodLoad, counters: Counters, model: str = "meta-llama/Llama-3.1-70B-Instruct") -> str:
    """The page as text exposition format. Whole requests and tokens only, as a real server counts them."""
    labels = f'engine="0",model_name="{model}"'

    def gauge(name: str, value: float, extra: str = "") -> Iterator[str]:
        yield f"# TYPE {name} gauge"
        yield f"{name}{{{labels}{extra}}} {float(value)}"

    def counter(name: str, value: float, extra: str = "") -> Iterator[str]:
        yield f"# TYPE {name} counter"
        yield f"{name}{{{labels}{extra}}} {float(int(value))}"

    lines = [
        "# TYPE process_start_time_seconds gauge",
        f"process_start_time_seconds {counters.started_at_seconds}",
        *gauge("vllm:num_requests_running", load.running),
        *gauge("vllm:num_requests_waiting", load.waiting),
        "# TYPE vllm:num_requests_waiting_by_reason gauge",
        f'vllm:num_requests_waiting_by_reason{{{labels},reason="capacity"}} {float(load.waiting)}',
        f'vllm:num_requests_waiting_by_reason{{{labels},reason="deferred"}} 0.0',
        *gauge("vllm:kv_cache_usage_perc", load.kv_cache_usage),
        "# TYPE vllm:cache_config_info gauge",
        f'vllm:cache_config_info{{block_size="{KV_BLOCK_TOKENS}",cache_dtype="auto",enable_prefix_caching="True",'
        f'engine="0",gpu_memory_utilization="0.9",num_cpu_blocks="None",num_gpu_blocks="{KV_BLOCKS}"}} 1.0',
        *counter("vllm:prompt_tokens_total", counters.prompt_tokens),
        *counter("vllm:generation_tokens_total", counters.generation_tokens),
        *counter("vllm:num_preemptions_total", counters.preemptions),
        *counter("vllm:request_success_total", counters.requests, ',finished_reason="stop"'),
        f'vllm:request_success_total{{{labels},finished_reason="length"}} 0.0',
        f'vllm:request_success_total{{{labels},finished_reason="abort"}} 0.0',
        *counter("vllm:prefix_cache_queries_total", counters.prompt_tokens),
        *counter("vllm:prefix_cache_hits_total", counters.prefix_hits),
        *histogram("vllm:time_to_first_token_seconds", labels, TTFT_EDGES, counters.time_to_first_token),
        *histogram("vllm:inter_token_latency_seconds", labels, ITL_EDGES, counters.inter_token_latency),
        *histogram("vllm:request_prompt_tokens", labels, TOKEN_EDGES, counters.prompt_lengths),
        *histogram("vllm:request_generation_tokens", labels, TOKEN_EDGES, counters.generation_lengths),
    ]
    return "\n".join(lines) + "\n"
