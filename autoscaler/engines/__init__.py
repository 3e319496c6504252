"""The inference servers we know: one file each with the names of their metrics, as data.

To add one: copy the file that is nearest to it, state where each name was read and since which version, add its line
to ENGINES and its name to `EngineName`, and put a page of it under tests/autoscaler/engines/pages. Nothing else knows
an engine by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.engines.engine_metrics import EngineMetrics
from autoscaler.engines.sglang import SGLANG
from autoscaler.engines.tensorrt_llm import TENSORRT_LLM
from autoscaler.engines.triton_tensorrt_llm import TRITON_TENSORRT_LLM
from autoscaler.engines.vllm import VLLM

# Signals from the user's own PromQL only.
CUSTOM = EngineMetrics(title="custom PromQL", signals={}, page_marks=())

# By the value of `EngineName`.
ENGINES: Mapping[str, EngineMetrics] = {
    "vllm": VLLM,
    "tensorrt-llm": TENSORRT_LLM,
    "triton-tensorrt-llm": TRITON_TENSORRT_LLM,
    "sglang": SGLANG,
    "custom": CUSTOM,
}
