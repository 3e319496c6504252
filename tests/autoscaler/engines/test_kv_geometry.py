from __future__ import annotations

import pytest

from autoscaler.engines.kv_geometry import capacity_tokens


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"num_gpu_blocks": "7281", "block_size": "16"}, 116_496.0, id="blocks times their size"),
        pytest.param(
            {"num_gpu_blocks": "118", "block_size": "4", "kv_cache_size_tokens": "90000"},
            90_000.0,
            id="the stated size counts first: with mixed kinds of attention the product is wrong",
        ),
        pytest.param({"num_gpu_blocks": "None", "block_size": "16"}, None, id="the text None is unknown"),
        pytest.param({"num_gpu_blocks": "0", "block_size": "16"}, None, id="zero blocks are unknown"),
        pytest.param({"num_gpu_blocks": "nan", "block_size": "16"}, None, id="NaN is unknown"),
        pytest.param({"num_gpu_blocks": "118", "kv_cache_size_tokens": "None"}, None, id="no size of a block"),
        pytest.param({}, None, id="no labels"),
    ],
)
def test_the_capacity_in_the_labels(labels: dict[str, str], expected: float | None) -> None:
    assert capacity_tokens(labels) == expected
