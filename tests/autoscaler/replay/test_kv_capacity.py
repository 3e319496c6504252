"""Against the block counts that vLLM has logged (16 tokens a block, gpu_memory_utilization 0.9, cards of 80 GB)."""

from __future__ import annotations

import pytest

from autoscaler.replay.kv_capacity import CachedModel, kv_capacity_tokens

GIB = 2**30


def weights_gib(parameters: float) -> float:
    return 2.0 * parameters / GIB  # 16 bit


@pytest.mark.parametrize(
    ("parameters", "shape", "accelerators", "logged"),
    [
        pytest.param(6.74e9, (32, 32, 128), 1, 119_408, id="Llama-2-7B"),
        pytest.param(7.62e9, (28, 4, 128), 1, 1_045_632, id="Qwen2.5-7B"),
        pytest.param(12.25e9, (40, 8, 128), 1, 308_016, id="Mistral-Nemo on one"),
        pytest.param(12.25e9, (40, 8, 128), 2, 768_144, id="Mistral-Nemo on two"),
        pytest.param(70.55e9, (80, 8, 128), 4, 486_800, id="Llama-3.1-70B on four"),
        pytest.param(34.39e9, (60, 8, 128), 2, 332_688, id="Yi-34B on two"),
    ],
)
def test_the_formula_is_within_two_percent_of_what_engines_log(
    parameters: float, shape: tuple[int, int, int], accelerators: int, logged: int
) -> None:
    model = CachedModel(weights_gib(parameters), *shape)
    assert kv_capacity_tokens(model, accelerators, 79.2) == pytest.approx(logged, rel=0.02)


def test_weights_that_do_not_fit_leave_no_room() -> None:
    assert kv_capacity_tokens(CachedModel(weights_gib(70.55e9), 80, 8, 128), 1, 79.2) == 0
