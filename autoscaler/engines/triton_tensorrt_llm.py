"""The metrics of Triton's TensorRT-LLM backend (port 8002; names from its README and the server's source)."""

from __future__ import annotations

from autoscaler.engines.engine_metrics import EngineMetrics, Metric, MetricKind, SignalSource
from policies.signals import Signal

# Several models, or versions of one, may run in a server.
MODELS_OF_A_POD = ("model", "version")


def _requests(*types: str) -> tuple[Metric, ...]:
    return tuple(Metric("nv_trt_llm_request_metrics", (("request_type", each),), MODELS_OF_A_POD) for each in types)


def _blocks(block_type: str, times: Metric | None = None, divided_by: Metric | None = None) -> Metric:
    where = (("kv_cache_block_type", block_type),)
    return Metric("nv_trt_llm_kv_cache_block_metrics", where, MODELS_OF_A_POD, times, divided_by)


TRITON_TENSORRT_LLM = EngineMetrics(
    title="Triton with the TensorRT-LLM backend",
    signals={
        # `active` holds scheduled and waiting ones; `waiting` is missing in older backends.
        Signal.RUNNING_REQUESTS: SignalSource(MetricKind.GAUGE, _requests("scheduled", "active"), is_required=True),
        Signal.WAITING_REQUESTS: SignalSource(MetricKind.GAUGE, _requests("waiting"), is_required=True),
        # Not block type "fraction": the README's own page shows 0.4875 with 1 of 6239 blocks used.
        Signal.KV_CACHE_USAGE: SignalSource(
            MetricKind.GAUGE, (_blocks("used", divided_by=_blocks("max")),), is_required=True
        ),
        Signal.KV_CACHE_USED_TOKENS: SignalSource(
            MetricKind.GAUGE, (_blocks("used", times=_blocks("tokens_per")),), is_required=True
        ),
        Signal.KV_CACHE_CAPACITY_TOKENS: SignalSource(
            MetricKind.GAUGE, (_blocks("max", times=_blocks("tokens_per")),), is_required=True
        ),
        Signal.CACHE_CONFIG: SignalSource(MetricKind.GAUGE, (_blocks("max", times=_blocks("tokens_per")),)),
        # No `_total`. Each model of an ensemble counts the request once more, so the largest model counts, not the sum.
        Signal.REQUESTS_FINISHED: SignalSource(MetricKind.COUNTER, (Metric("nv_inference_request_success"),)),
    },
    page_marks=(Metric("nv_trt_llm_request_metrics"), Metric("nv_trt_llm_kv_cache_block_metrics")),
)
